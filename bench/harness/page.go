package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// titles name the servers on the page.
var titles = map[string]string{
	floorServer: "no SDK", heedServer: "Heed", sdkServer: "official Go SDK", peerServer: "mcp-go", "ts": "TypeScript SDK",
}

func title(server string) string { return cmp.Or(titles[server], server) }

// verdict is one target and what became of it.
type verdict struct {
	Figure string
	Metric string
	Value  float64            // Heed's median
	Ratios map[string]float64 // of medians, by server
	Limits map[string]float64 // by server
	Bound  float64            `json:",omitempty"` // of the value itself
	Met    bool
	Reason string `json:",omitempty"` // why it was missed
}

// judge compares a run with the targets. Figures that were not measured are left out.
func judge(x *results, reasons map[string]string) []verdict {
	var all []verdict
	for _, t := range targets {
		own := x.Vals[t.metric][heedServer]
		if len(own) == 0 {
			continue
		}
		v := verdict{Figure: t.figure, Metric: t.metric, Value: median(own), Ratios: map[string]float64{}, Limits: t.ratios, Bound: t.bound, Met: true}
		for _, server := range x.Servers {
			other := x.Vals[t.metric][server]
			if server == heedServer || len(other) == 0 || median(other) <= 0 {
				continue
			}
			ratio := v.Value / median(other)
			v.Ratios[server] = ratio
			if limit, ok := t.ratios[server]; ok && (t.more && ratio < limit || !t.more && ratio > limit) {
				v.Met = false
			}
		}
		if t.bound > 0 && v.Value > t.bound {
			v.Met = false
		}
		if !v.Met {
			v.Reason = reasons[t.metric]
		}
		all = append(all, v)
	}
	return all
}

// cell is a ratio with the limit that it has to keep.
func (v *verdict) cell(server string, more bool) string {
	ratio, measured := v.Ratios[server]
	limit, wanted := v.Limits[server]
	sign := "≤"
	if more {
		sign = "≥"
	}
	switch {
	case !measured && wanted:
		return fmt.Sprintf("– (%s %s)", sign, num(limit))
	case !measured:
		return "–"
	case !wanted:
		return num(ratio)
	}
	text := fmt.Sprintf("%s (%s %s)", num(ratio), sign, num(limit))
	if more && ratio < limit || !more && ratio > limit {
		return "**" + text + "**"
	}
	return text
}

// page is docs/performance.md. more is the run at another GOGC, nil for none.
func page(x, other *results, reasons map[string]string, images string) string {
	var b strings.Builder
	b.WriteString("---\ntitle: Performance\norder: 80\n---\n\n# Performance\n\n")
	b.WriteString("What a call costs, side by side with a server that has no SDK at all (a loop over lines, or a bare handler of net/http, with encoding/json) and with other SDKs. " +
		"Every server is driven by the same load generator in raw JSON-RPC, all of them in every round, in rotating order. " +
		"Validation, limits, tokens and logging of Heed are on, as a user gets them by default. Measured again with `make bench`, which writes this page and `performance.json`.\n\n")
	writeHost(&b, x)
	verdicts := judge(x, reasons)
	writeTargets(&b, x, verdicts)
	writeMisses(&b, verdicts)
	if other != nil {
		writeOther(&b, x, other)
	}
	writeGrowth(&b, x, images)
	writeFigures(&b, x)
	return b.String()
}

func writeHost(b *strings.Builder, x *results) {
	fmt.Fprintf(b, "Measured on %s, %d rounds, on %s.", day(x.Started), rounds(x), x.Host)
	if x.Load != "" {
		fmt.Fprintf(b, " Load average of the machine, by rounds: %s. Other work on it widens the ranges; ratios are of servers that ran side by side.", x.Load)
	}
	b.WriteString("\n\n| server | versions |\n|---|---|\n")
	for _, s := range x.Servers {
		fmt.Fprintf(b, "| %s | %s |\n", title(s), x.Versions[s])
	}
	b.WriteByte('\n')
}

func writeTargets(b *strings.Builder, x *results, verdicts []verdict) {
	met := 0
	for _, v := range verdicts {
		if v.Met {
			met++
		}
	}
	fmt.Fprintf(b, "## Targets\n\nRatios of medians in one run, each with the target that it has to keep; %d of %d figures keep all of theirs, and what is missed is bold.\n\n", met, len(verdicts))
	b.WriteString("| figure | Heed | × no SDK | × mcp-go | × official Go SDK |\n|---|---:|---:|---:|---:|\n")
	for _, v := range verdicts {
		t := targets[slices.IndexFunc(targets, func(t target) bool { return t.metric == v.Metric })]
		value := strings.TrimSpace(num(v.Value) + " " + t.unit)
		if t.bound > 0 {
			value += fmt.Sprintf(" (≤ %s)", num(t.bound))
			if v.Value > t.bound {
				value = "**" + value + "**"
			}
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", v.Figure, value,
			v.cell(floorServer, t.more), v.cell(peerServer, t.more), v.cell(sdkServer, t.more))
	}
	b.WriteByte('\n')
}

func writeMisses(b *strings.Builder, verdicts []verdict) {
	reasons := map[string][]string{}
	var order []string
	for _, v := range verdicts {
		if v.Met {
			continue
		}
		reason := cmp.Or(v.Reason, "Not explained yet.")
		if reasons[reason] == nil {
			order = append(order, reason)
		}
		reasons[reason] = append(reasons[reason], v.Figure)
	}
	if len(order) == 0 {
		return
	}
	b.WriteString("## What is missed, and why\n\n")
	for _, reason := range order {
		fmt.Fprintf(b, "- **%s.** %s\n", strings.Join(reasons[reason], "; "), reason)
	}
	b.WriteByte('\n')
}

// writeOther compares with the official SDK when collections are rare: most of what it
// costs at the default is garbage collection.
func writeOther(b *strings.Builder, x, other *results) {
	fmt.Fprintf(b, "## At GOGC=%s\n\nMost of the distance to the official Go SDK is garbage collection, so here is the same comparison with a collector that runs less often, in both servers.\n\n", other.GOGC)
	fmt.Fprintf(b, "| figure | Heed / official, default | Heed / official, GOGC=%s |\n|---|---:|---:|\n", other.GOGC)
	ratio := func(x *results, metric string) string {
		own, sdk := x.Vals[metric][heedServer], x.Vals[metric][sdkServer]
		if len(own) == 0 || len(sdk) == 0 {
			return "–"
		}
		return num(median(own) / median(sdk))
	}
	for _, t := range targets {
		if len(other.Vals[t.metric]) > 0 {
			fmt.Fprintf(b, "| %s | %s | %s |\n", t.figure, ratio(x, t.metric), ratio(other, t.metric))
		}
	}
	b.WriteByte('\n')
}

// writeGrowth shows how costs grow.
func writeGrowth(b *strings.Builder, x *results, images string) {
	if len(x.Growth) == 0 {
		return
	}
	b.WriteString("## How cost grows\n\nEach chart has the cost of one, on logarithmic scales, by how many there are. " +
		"A line that stays level is a total that grows in proportion. The exponent k of each is fitted to the medians, for cost of each ~ n^k: " +
		"0 is level, below 0 gets cheaper by the number, 1 would be a total that grows with its square. Bars show the least and the greatest of the rounds.\n")
	for i := range growths {
		g := &growths[i]
		series := x.Growth[g.name]
		if len(series) == 0 {
			continue
		}
		fmt.Fprintf(b, "\n### %s\n\n![%s, by the number of %s](%s/%s.svg)\n\n| %s |", g.title, g.unit, g.of, images, g.name, g.unit)
		for _, n := range g.sizes {
			fmt.Fprintf(b, " %s |", count(n))
		}
		b.WriteString(" k |\n|---|" + strings.Repeat("---:|", len(g.sizes)+1) + "\n")
		for _, server := range x.Servers {
			points := series[server]
			if len(points) == 0 {
				continue
			}
			fmt.Fprintf(b, "| %s |", title(server))
			for _, n := range g.sizes {
				at := slices.IndexFunc(points, func(p point) bool { return p.N == n })
				if at < 0 {
					b.WriteString(" – |")
					continue
				}
				fmt.Fprintf(b, " %s |", num(median(points[at].Values)))
			}
			if k := exponent(points); math.IsNaN(k) {
				b.WriteString(" – |\n")
			} else {
				fmt.Fprintf(b, " %.2f |\n", tidy(k))
			}
		}
	}
	b.WriteByte('\n')
}

// count writes a number with its thousands apart.
func count(n int) string {
	if n < 10_000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%d %03d", n/1000, n%1000)
}

// writeFigures lists everything that was measured.
func writeFigures(b *strings.Builder, x *results) {
	b.WriteString("## All figures\n\nMedians over the rounds, and in brackets the least and the greatest.\n")
	for _, g := range groups {
		var rows []row
		for _, r := range g.rows {
			if len(x.Vals[r.metric]) > 0 {
				rows = append(rows, r)
			}
		}
		if len(rows) == 0 {
			continue
		}
		fmt.Fprintf(b, "\n### %s\n\n| |", g.title)
		for _, s := range x.Servers {
			fmt.Fprintf(b, " %s |", title(s))
		}
		b.WriteString("\n|---|" + strings.Repeat("---:|", len(x.Servers)) + "\n")
		for _, r := range rows {
			fmt.Fprintf(b, "| %s |", r.label)
			for _, s := range x.Servers {
				fmt.Fprintf(b, " %s |", spread(x.Vals[r.metric][s]))
			}
			b.WriteByte('\n')
		}
	}
	if notes := noteLines(x); notes != "" {
		b.WriteString("\n### Notes\n\n" + notes)
	}
}

func spread(v []float64) string {
	if len(v) == 0 {
		return "–"
	}
	lo, hi := slices.Min(v), slices.Max(v)
	if lo == hi {
		return num(lo)
	}
	return fmt.Sprintf("%s [%s–%s]", num(median(v)), num(lo), num(hi))
}

func rounds(x *results) int {
	most := 0
	for _, servers := range x.Vals {
		for _, v := range servers {
			most = max(most, len(v))
		}
	}
	return most
}

func day(started string) string { d, _, _ := strings.Cut(started, "T"); return d }

// data is docs/performance.json.
type data struct {
	*results
	Targets []verdict
	Other   *results `json:",omitempty"` // at another GOGC
}

// paths are where the page's parts come from and go to.
type paths struct{ other, page, data, images, misses string }

// writePage writes the page, its charts and its data.
func writePage(x *results, p paths) error {
	var other *results
	if p.other != "" {
		var err error
		if other, err = readResults(p.other); err != nil {
			return err
		}
	}
	reasons, err := readMisses(p.misses)
	if err != nil {
		return err
	}
	images, err := filepath.Rel(filepath.Dir(p.page), p.images)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(p.images, 0o755); err != nil {
		return err
	}
	for i := range growths {
		g := &growths[i]
		if svg := chart(g, x.Growth[g.name], x.Servers); svg != "" {
			if err := os.WriteFile(filepath.Join(p.images, g.name+".svg"), []byte(svg), 0o644); err != nil {
				return err
			}
		}
	}
	if err := os.WriteFile(p.page, []byte(page(x, other, reasons, filepath.ToSlash(images))), 0o644); err != nil {
		return err
	}
	b, err := json.MarshalIndent(data{x, judge(x, reasons), other}, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(p.data, append(b, '\n'), 0o644)
}
