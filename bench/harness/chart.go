package main

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
)

// Colours that keep apart for the colour-blind, on white as on black; each server
// has a mark of its own as well.
var (
	colours = map[string]string{floorServer: "#7f7f7f", heedServer: "#1a7fd4", sdkServer: "#d9730d", peerServer: "#2f9e62"}
	dashes  = map[string]string{floorServer: "2 3", heedServer: "", sdkServer: "7 4", peerServer: "9 3 2 3"}
)

const (
	chartWidth, chartHeight = 680, 360
	left, right             = 70, 165
	top, bottom             = 44, 54
)

// axis is a logarithmic scale between two powers of ten.
type axis struct {
	low, high float64 // exponents
	from, to  float64 // pixels
}

func newAxis(least, greatest, from, to float64) axis {
	low, high := math.Floor(math.Log10(least)+1e-9), math.Ceil(math.Log10(greatest)-1e-9)
	if high <= low {
		high = low + 1
	}
	return axis{low, high, from, to}
}

func (a axis) at(v float64) float64 {
	return a.from + (math.Log10(v)-a.low)/(a.high-a.low)*(a.to-a.from)
}

// tick writes a power of ten as people do.
func tick(e float64) string {
	switch v := math.Pow(10, e); {
	case v >= 1e6:
		return fmt.Sprintf("%.0f M", v/1e6)
	case v >= 1e4:
		return fmt.Sprintf("%.0f 000", v/1e3)
	case v >= 1:
		return fmt.Sprintf("%.0f", v)
	default:
		return fmt.Sprintf("%.*f", int(-e), v)
	}
}

// chart draws a growth as an SVG, both scales logarithmic, a line for each server.
func chart(g *growth, series map[string][]point, servers []string) string {
	leastN, mostN, least, most := math.Inf(1), 0.0, math.Inf(1), 0.0
	for _, points := range series {
		for _, p := range points {
			leastN, mostN = min(leastN, float64(p.N)), max(mostN, float64(p.N))
			if v := median(p.Values); v > 0 {
				least, most = min(least, v), max(most, v)
			}
		}
	}
	if mostN == 0 || most == 0 {
		return ""
	}
	x := newAxis(leastN, mostN, left, chartWidth-right)
	y := newAxis(least, most, chartHeight-bottom, top)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-labelledby="t d" font-family="system-ui, sans-serif" font-size="12">`+"\n", chartWidth, chartHeight)
	fmt.Fprintf(&b, "<title id=\"t\">%s</title>\n<desc id=\"d\">%s, by the number of %s. Both scales are logarithmic.</desc>\n", html.EscapeString(g.title), html.EscapeString(g.unit), html.EscapeString(g.of))
	b.WriteString("<style>.bg{fill:#fff}.ink{fill:#222}.grid{stroke:#ddd}@media (prefers-color-scheme:dark){.bg{fill:#16181c}.ink{fill:#ddd}.grid{stroke:#3a3d44}}</style>\n")
	fmt.Fprintf(&b, `<rect class="bg" width="%d" height="%d"/>`+"\n", chartWidth, chartHeight)
	fmt.Fprintf(&b, `<text class="ink" x="%d" y="20" font-size="15" font-weight="600">%s</text>`+"\n", left, html.EscapeString(g.title))
	fmt.Fprintf(&b, `<text class="ink" x="%d" y="36">%s</text>`+"\n", left, html.EscapeString(g.unit))
	for e := y.low; e <= y.high; e++ {
		at := y.at(math.Pow(10, e))
		fmt.Fprintf(&b, `<line class="grid" x1="%d" y1="%.1f" x2="%d" y2="%.1f"/><text class="ink" x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n",
			left, at, chartWidth-right, at, left-6, at+4, tick(e))
	}
	for e := x.low; e <= x.high; e++ {
		at := x.at(math.Pow(10, e))
		fmt.Fprintf(&b, `<line class="grid" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/><text class="ink" x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n",
			at, top, at, chartHeight-bottom, at, chartHeight-bottom+18, tick(e))
	}
	fmt.Fprintf(&b, `<text class="ink" x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", (left+chartWidth-right)/2, chartHeight-12, html.EscapeString(g.of))
	drawn := 0
	for _, server := range servers {
		points := slices.Clone(series[server])
		if len(points) == 0 {
			continue
		}
		slices.SortFunc(points, func(a, b point) int { return a.N - b.N })
		var line strings.Builder
		for _, p := range points {
			v := median(p.Values)
			if !(v > 0) {
				continue
			}
			fmt.Fprintf(&line, "%.1f,%.1f ", x.at(float64(p.N)), y.at(v))
			fmt.Fprintf(&b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-opacity=".45" stroke-width="4"/>`,
				x.at(float64(p.N)), y.at(slices.Min(p.Values)), x.at(float64(p.N)), y.at(slices.Max(p.Values)), colours[server])
			fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", x.at(float64(p.N)), y.at(v), colours[server])
		}
		fmt.Fprintf(&b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2" stroke-dasharray="%s"/>`+"\n", strings.TrimSpace(line.String()), colours[server], dashes[server])
		at := top + 12 + 36*drawn
		fmt.Fprintf(&b, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="%s" stroke-width="2" stroke-dasharray="%s"/><text class="ink" x="%d" y="%d">%s</text>`,
			chartWidth-right+12, at, chartWidth-right+36, at, colours[server], dashes[server], chartWidth-right+42, at+4, html.EscapeString(title(server)))
		if k := exponent(points); !math.IsNaN(k) {
			fmt.Fprintf(&b, `<text class="ink" x="%d" y="%d" fill-opacity=".7">n^%.2f</text>`, chartWidth-right+42, at+19, tidy(k))
		}
		b.WriteByte('\n')
		drawn++
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// tidy rounds to two digits, without a negative zero.
func tidy(k float64) float64 { return math.Round(k*100)/100 + 0 }
