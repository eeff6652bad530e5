package main

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"runtime"
	"slices"
	"time"
)

// growth is how one cost develops as something gets more numerous.
type growth struct {
	name    string // also the name of its chart
	title   string
	of      string // what there are n of
	unit    string // of the cost of each
	sizes   []int
	most    map[string]int // the greatest size for a server; 0: it takes no part
	http    bool
	measure func(s *server, n int) (float64, error)
}

// point is the cost at one size, a value for each round.
type point struct {
	N      int
	Values []float64
}

const everySize = math.MaxInt

var growths = []growth{
	{"growth-calls", "Calls in flight", "calls in flight on one stdio connection", "µs to start and to cancel each",
		[]int{1, 10, 100, 1000, 10_000, 100_000}, map[string]int{floorServer: everySize, heedServer: everySize, sdkServer: 10_000}, false, gInflight},
	{"growth-call-bytes", "Memory of calls in flight", "calls in flight on one stdio connection", "bytes of heap and stack for each",
		[]int{100, 1000, 10_000, 100_000}, map[string]int{floorServer: everySize, heedServer: everySize, sdkServer: 10_000}, false, gInflightBytes},
	{"growth-tools", "Registered tools", "tools, of which the last is called", "µs for a call, one at a time",
		[]int{1, 10, 100, 1000, 10_000}, map[string]int{heedServer: everySize, sdkServer: everySize, peerServer: everySize}, false, gTools},
	{"growth-list", "Listing tools", "tools, listed to the end", "µs for each tool of the list",
		[]int{1, 10, 100, 1000, 10_000}, map[string]int{heedServer: everySize, sdkServer: everySize, peerServer: 1000}, false, gList},
	{"growth-sessions", "HTTP sessions", "sessions of one server, called in turn", "µs for a call, one at a time",
		[]int{1, 10, 100, 1000, 10_000}, map[string]int{floorServer: everySize, heedServer: everySize, sdkServer: everySize, peerServer: everySize}, true, gSessions},
	{"growth-hooks", "Hooks on one token", "hooks on the token of one call", "µs for each, from the cancel to the last",
		[]int{1, 10, 100, 1000}, map[string]int{floorServer: everySize, heedServer: everySize, sdkServer: everySize, peerServer: everySize}, false, gHooks},
	{"growth-listen", "Listen streams", "open subscriptions/listen streams over HTTP", "µs for each, from a change to the last that is told",
		[]int{1, 10, 100, 1000, 10_000}, map[string]int{heedServer: everySize}, true, gListen},
}

// run measures every size once, the servers in rotating order.
func (g *growth) run(x *results, srvs []*server, turn int, biggest int) {
	for i, n := range g.sizes {
		if n > biggest {
			break
		}
		for k := range srvs {
			s := srvs[(k+turn+i)%len(srvs)]
			if n > g.most[s.Name] || g.http && !s.HTTP {
				continue
			}
			begin := time.Now()
			v, err := g.measure(s, n)
			if err != nil {
				x.note(s.Name, fmt.Sprintf("%s of %d: %v", g.name, n, err))
			} else {
				x.grow(g.name, s.Name, n, v)
			}
			fmt.Fprintf(os.Stderr, "%-18s %6d %-6s %8.2f %5.2fs %s\n", g.name, n, s.Name, v, time.Since(begin).Seconds(), errStr(err))
		}
	}
}

// grown measures all growths that match.
func (x *results) grown(re *regexp.Regexp, srvs []*server, rounds, biggest int) {
	for round := range rounds {
		for i := range growths {
			if re.MatchString(growths[i].name) {
				growths[i].run(x, srvs, round+i, biggest)
				runtime.GC()
			}
		}
	}
}

func (x *results) grow(name, server string, n int, v float64) {
	if x.Growth == nil {
		x.Growth = map[string]map[string][]point{}
	}
	if x.Growth[name] == nil {
		x.Growth[name] = map[string][]point{}
	}
	points := x.Growth[name][server]
	i := slices.IndexFunc(points, func(p point) bool { return p.N == n })
	if i < 0 {
		points = append(points, point{N: n})
		i = len(points) - 1
	}
	points[i].Values = append(points[i].Values, v)
	x.Growth[name][server] = points
}

// exponent fits cost = c * n^k by least squares of the logarithms of the medians and
// returns k: 0 is a cost of each that stays the same, 1 one that grows with the number.
func exponent(points []point) float64 {
	var n, sx, sy, sxx, sxy float64
	for _, p := range points {
		v := median(p.Values)
		if p.N <= 0 || !(v > 0) {
			continue
		}
		x, y := math.Log(float64(p.N)), math.Log(v)
		n, sx, sy, sxx, sxy = n+1, sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	if n < 2 {
		return math.NaN()
	}
	return (n*sxy - sx*sy) / (n*sxx - sx*sx)
}
