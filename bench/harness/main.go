// Command mcpbench measures MCP servers over raw JSON-RPC. See ../CONTRACT.md.
package main

import (
	"encoding/json"
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

type task struct {
	name string
	http bool
	run  func(s *server, r rec, note func(string)) error
}

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
	names := flag.String("servers", "floor,gosdk,mcpgo,ts", "servers in -bin")
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
	D := func(d time.Duration) time.Duration { return time.Duration(float64(d) * *scale) }
	N := func(n int) int { return max(20, int(float64(n)*(*scale))) }
	// sizes are part of what a figure says, and shrink only for a first look
	size := func(n int) int {
		if *scale >= .5 {
			return n
		}
		return N(n)
	}
	echoArgs := `{"text":"` + echoText + `"}`
	big := strings.Repeat("The quick brown fox jumps over the lazy dog. 0123456789 äöü \\n ", 250)
	// Over HTTP, since servers that read standard input with plain system calls stop for a minute
	// when a collection begins at the wrong instant (Go 1.26), and 1 MB texts make many of them.
	mega := strings.Repeat(big, 60)
	httpTask := func(prefix string, modern bool, tool, args, meta, want string, flags ...string) task {
		return task{prefix, true, func(s *server, r rec, note func(string)) error {
			return mHTTP(s, 32, D(1200*time.Millisecond), modern, flags, tool, args, meta, want, prefix, r, note)
		}}
	}
	tasks := []task{
		{"startup", false, func(s *server, r rec, note func(string)) error { return mStartup(s, N(8), r) }},
		{"seq", false, func(s *server, r rec, note func(string)) error { return mSeq(s, N(4000), r) }},
		{"pipe64", false, func(s *server, r rec, note func(string)) error {
			return mPipe(s, 64, D(1500*time.Millisecond), echoText, "pipe64", r)
		}},
		{"pipe16k", false, func(s *server, r rec, note func(string)) error {
			return mPipe(s, 2, D(700*time.Millisecond), big, "pipe16k", r)
		}},
		{"list100", false, func(s *server, r rec, note func(string)) error {
			return mList(s, N(600), r)
		}},
		{"core100", false, func(s *server, r rec, note func(string)) error {
			return mCore(s, D(500*time.Millisecond), r)
		}},
		{"read50", false, func(s *server, r rec, note func(string)) error {
			return mRead(s, N(1500), r)
		}},
		{"notify", false, func(s *server, r rec, note func(string)) error {
			return mNotify(s, N(20000), r)
		}},
		{"cancel", false, func(s *server, r rec, note func(string)) error { return mCancel(s, N(2000), r) }},
		{"cancel1000", false, func(s *server, r rec, note func(string)) error {
			return mCancelAmong(s, N(1000), size(1000), r, note)
		}},
		{"inflight", false, func(s *server, r rec, note func(string)) error {
			return mInflight(s, size(10000), nil, "inflight", r, note)
		}},
		{"inflightmax", false, func(s *server, r rec, note func(string)) error {
			if s.Name != "mcpgo" {
				return nil
			}
			return mInflight(s, size(10000), []string{"-max"}, "inflightmax", r, note)
		}},
		httpTask("http_legacy_json", false, "echo", echoArgs, "", echoText, "-json"),
		httpTask("http_legacy_sse", false, "echo", echoArgs, "", echoText),
		httpTask("http_modern_json", true, "echo", echoArgs, "", echoText, "-modern", "-json"),
		httpTask("http_modern_sse", true, "echo", echoArgs, "", echoText, "-modern"),
		{"http_1m", true, func(s *server, r rec, note func(string)) error {
			return mHTTP(s, 4, D(900*time.Millisecond), true, []string{"-modern", "-json"}, "echo", `{"text":"`+mega+`"}`, "", "The quick brown fox", "http_1m", r, note)
		}},
		{"http2", true, func(s *server, r rec, note func(string)) error {
			return mHTTP2(s, 32, D(1000*time.Millisecond), r)
		}},
		httpTask("http_legacy_progress", false, "progress", `{"n":3}`, `"progressToken":"p"`, `"done"`),
		httpTask("http_modern_progress", true, "progress", `{"n":3}`, `"progressToken":"p"`, `"done"`, "-modern"),
		{"hcancel_legacy", true, func(s *server, r rec, note func(string)) error {
			return mHTTPCancel(s, N(2000), false, nil, "hcancel_legacy", r)
		}},
		{"hcancel_modern", true, func(s *server, r rec, note func(string)) error {
			return mHTTPCancel(s, N(2000), true, []string{"-modern"}, "hcancel_modern", r)
		}},
		{"hcancel_modern_opt", true, func(s *server, r rec, note func(string)) error {
			if s.Name != "gosdk" {
				return nil
			}
			return mHTTPCancel(s, N(2000), true, []string{"-modern", "-propagate"}, "hcancel_modern_opt", r)
		}},
		{"sessions", true, func(s *server, r rec, note func(string)) error {
			return mSessions(s, size(5000), false, "sessions", r, note)
		}},
		{"sessionsget", true, func(s *server, r rec, note func(string)) error {
			return mSessions(s, size(1000), true, "sessionsget", r, note)
		}},
	}
	re := regexp.MustCompile(*only)
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
	os.MkdirAll(*out, 0o755)
	for round := range *rounds {
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
				var err error
				for try := range 2 {
					err = t.run(s, func(m string, v float64) { x.add(m, s.Name, round, v) }, func(n string) { x.note(s.Name, t.name+": "+n) })
					if err == nil {
						break
					}
					x.note(s.Name, fmt.Sprintf("%s: %v", t.name, err))
					if t.http || try > 0 {
						break
					}
					x.note(s.Name, fmt.Sprintf("%s: retried in round %d after %.1f s", t.name, round+1, time.Since(t1).Seconds()))
				}
				runtime.GC()
				fmt.Fprintf(os.Stderr, "[%5.1fs] round %d %-22s %-8s %5.2fs %v\n", time.Since(begin).Seconds(), round+1, t.name, s.Name, time.Since(t1).Seconds(), errStr(err))
			}
		}
	}
	if *growing != "-" {
		x.grown(regexp.MustCompile(*growing), srvs, *growthRounds, *biggest)
	}
	if *probesOnly != "-" {
		pre := regexp.MustCompile(*probesOnly)
		for _, p := range probes {
			if !pre.MatchString(p.id) {
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
	x.Took = time.Since(begin).Seconds()
	b, _ := json.MarshalIndent(x, "", " ")
	os.WriteFile(filepath.Join(*out, "results.json"), b, 0o644)
	md := report(x)
	os.WriteFile(filepath.Join(*out, "results.md"), []byte(md), 0o644)
	fmt.Print(md)
}

func errStr(err error) string {
	if err == nil {
		return ""
	}
	return "ERROR " + err.Error()
}
