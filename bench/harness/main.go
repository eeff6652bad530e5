// Command mcpbench measures MCP servers over raw JSON-RPC. See ../CONTRACT.md.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

type results struct {
	Servers []string
	Vals    map[string]map[string][]float64 // metric -> server -> value per round
	Rounds  map[string]map[string][]int     // metric -> server -> round numbers
	Notes   map[string][]string             // server -> notes
	Probes  map[string]map[string]string    // probe id -> server -> answer
	Took    float64
	Started string

	Host     string            // the machine
	Load     string            // its load average before each round
	Versions map[string]string // server -> what it is made of
	GOGC     string            // what the servers were given; "" for the default

	Growth map[string]map[string][]point `json:",omitempty"` // growth -> server -> cost by size
}

func readResults(path string) (*results, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	x := &results{}
	if err := json.Unmarshal(b, x); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return x, nil
}

// renderOnly renders results that were written before, and returns the exit status.
func renderOnly(path string, p paths) int {
	x, err := readResults(path)
	switch {
	case err != nil:
	case p.page != "":
		err = writePage(x, p)
	default:
		fmt.Print(report(x))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (x *results) add(metric, srv string, round int, v float64) {
	if x.Vals[metric] == nil {
		x.Vals[metric] = map[string][]float64{}
		x.Rounds[metric] = map[string][]int{}
	}
	x.Vals[metric][srv] = append(x.Vals[metric][srv], v)
	x.Rounds[metric][srv] = append(x.Rounds[metric][srv], round)
}

func (x *results) note(srv, s string) {
	s = s[:min(len(s), 300)] // a stack dump may follow
	if !slices.Contains(x.Notes[srv], s) {
		x.Notes[srv] = append(x.Notes[srv], s)
	}
}

func main() {
	bin := flag.String("bin", "bin", "directory with the built servers")
	names := flag.String("servers", "floor,heed,gosdk,mcpgo,ts", "servers in -bin")
	extra := flag.String("extra", "", "further servers, name=path,...")
	rounds := flag.Int("rounds", 3, "rounds")
	out := flag.String("o", "out", "output directory")
	only := flag.String("only", "", "regexp of task names")
	probesOnly := flag.String("probes", "", "regexp of probe ids ('-' = none)")
	scale := flag.Float64("scale", 1, "scale of durations and counts")
	render := flag.String("render", "", "only render this results.json")
	var p paths
	flag.StringVar(&p.other, "other", "", "with -page: results.json at another GOGC")
	flag.StringVar(&p.page, "page", "", "with -render: write this page, performance.md")
	flag.StringVar(&p.data, "data", "performance.json", "with -page: write this file as well")
	flag.StringVar(&p.images, "images", "images", "with -page: a folder beside the page for its charts")
	flag.StringVar(&p.misses, "misses", "", "with -page: reasons for missed targets, misses.md")
	growing := flag.String("growth", "-", "regexp of growths ('-' = none)")
	growthRounds := flag.Int("growth-rounds", 3, "rounds of growths")
	biggest := flag.Int("biggest", 100_000, "the greatest size of a growth")
	flag.Parse()
	if *render != "" {
		os.Exit(renderOnly(*render, p))
	}
	var srvs []*server
	for _, n := range strings.Split(*names, ",") {
		if n != "" {
			srvs = append(srvs, &server{Name: n, Path: filepath.Join(*bin, n), HTTP: n != "ts", Stats: n != "ts"})
		}
	}
	for _, e := range strings.Split(*extra, ",") {
		if n, p, ok := strings.Cut(e, "="); ok {
			srvs = append(srvs, &server{Name: n, Path: p, HTTP: true, Stats: true})
		}
	}
	x := &results{Vals: map[string]map[string][]float64{}, Rounds: map[string]map[string][]int{}, Notes: map[string][]string{}, Probes: map[string]map[string]string{},
		Host: hostLine(), Versions: map[string]string{}, GOGC: os.Getenv("GOGC")}
	for _, s := range srvs {
		x.Servers = append(x.Servers, s.Name)
		x.Versions[s.Name] = versionOf(s.Path)
		if fi, err := os.Stat(s.Path + "-echo"); err == nil {
			x.add("echo_binary_MB", s.Name, 0, float64(fi.Size())/1e6)
		}
	}
	// The harness itself blocks in read(2) on pipes, and Go 1.26 can stall a stop-the-world for 60 s
	// when it races with entry into such a call, so it collects only between tasks.
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(6 << 30)
	begin := time.Now()
	x.Started = begin.Format(time.RFC3339)
	x.measured(regexp.MustCompile(*only), tasksAt(*scale), srvs, *rounds, begin)
	if *growing != "-" {
		x.grown(regexp.MustCompile(*growing), srvs, *growthRounds, *biggest)
	}
	if *probesOnly != "-" {
		x.probed(regexp.MustCompile(*probesOnly), srvs, begin)
	}
	x.Took = time.Since(begin).Seconds()
	md := report(x)
	fmt.Print(md)
	if err := x.write(*out, md); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// write writes the results and their report into a folder.
func (x *results) write(dir, report string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	b, err := json.MarshalIndent(x, "", " ")
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "results.json"), b, 0o644),
		os.WriteFile(filepath.Join(dir, "results.md"), []byte(report), 0o644),
	)
}

// measured measures all tasks that match, round by round.
func (x *results) measured(re *regexp.Regexp, tasks []task, srvs []*server, rounds int, begin time.Time) {
	for round := range rounds {
		x.Load = strings.TrimPrefix(x.Load+", "+load(), ", ")
		for ti, t := range tasks {
			if !re.MatchString(t.name) {
				continue
			}
			// rotate who goes first, by round and task
			for k := range srvs {
				s := srvs[(k+round+ti)%len(srvs)]
				if t.http && !s.HTTP {
					continue
				}
				t1 := time.Now()
				err := x.measure(t, s, round)
				runtime.GC()
				fmt.Fprintf(os.Stderr, "[%5.1fs] round %d %-22s %-8s %5.2fs %v\n", time.Since(begin).Seconds(), round+1, t.name, s.Name, time.Since(t1).Seconds(), errStr(err))
			}
		}
	}
}

// measure does one task with one server, over stdio once more when it fails.
func (x *results) measure(t task, s *server, round int) (err error) {
	begin := time.Now()
	for try := range 2 {
		err = t.run(s, func(m string, v float64) { x.add(m, s.Name, round, v) }, func(n string) { x.note(s.Name, t.name+": "+n) })
		if err == nil {
			break
		}
		x.note(s.Name, fmt.Sprintf("%s: %v", t.name, err))
		if t.http || try > 0 {
			break
		}
		x.note(s.Name, fmt.Sprintf("%s: retried in round %d after %.1f s", t.name, round+1, time.Since(begin).Seconds()))
	}
	return err
}

// probed asks all probes that match.
func (x *results) probed(re *regexp.Regexp, srvs []*server, begin time.Time) {
	for _, p := range probes {
		if !re.MatchString(p.id) {
			continue
		}
		x.Probes[p.id] = map[string]string{}
		for _, s := range srvs {
			if p.http && !s.HTTP {
				continue
			}
			t1 := time.Now()
			a := p.run(s)
			x.Probes[p.id][s.Name] = a
			fmt.Fprintf(os.Stderr, "[%5.1fs] probe %-20s %-8s %5.2fs %s\n", time.Since(begin).Seconds(), p.id, s.Name, time.Since(t1).Seconds(), a)
		}
	}
}

func errStr(err error) string {
	if err == nil {
		return ""
	}
	return "ERROR " + err.Error()
}
