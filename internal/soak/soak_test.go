package soak_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/transport/stdio"
	"github.com/heedmcp/heed/transport/streamable"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	briefly     = 5 * time.Second // in make test
	fewClients  = 200
	longEnough  = time.Minute // for memory to be judged
	warmUp      = 30 * time.Second
	patience    = 3 * time.Minute // for what is left to be gone
	slack       = 5               // goroutines that may come and go
	perLine     = 50              // clients of one stream on stdio
	sampleEvery = 2 * time.Second
)

// The run is long, and the machine all its own, with SOAK_TIME and SOAK_CLIENTS; SOAK_OUT is the folder of
// the page and the charts that it writes.
func TestSoak(t *testing.T) {
	duration, clients := briefly, fewClients
	if text := os.Getenv("SOAK_TIME"); text != "" {
		var err error
		duration, err = time.ParseDuration(text)
		require.NoError(t, err, "SOAK_TIME")
		clients = 2000
	}
	if text := os.Getenv("SOAK_CLIENTS"); text != "" {
		var err error
		clients, err = strconv.Atoi(text)
		require.NoError(t, err, "SOAK_CLIENTS")
	}
	before := runtime.NumGoroutine()
	s := newServer()
	h := streamable.NewHandler(s, nil)
	hs := httptest.NewServer(h)
	transport := &http.Transport{MaxIdleConnsPerHost: clients, MaxIdleConns: clients}
	dropping := &http.Transport{MaxIdleConnsPerHost: clients, MaxIdleConns: clients}
	ctx, stop := context.WithCancel(t.Context())
	l := &load{ctx: ctx, web: &web{http: &http.Client{Transport: transport}, drops: &http.Client{Transport: dropping}, url: hs.URL}}

	var streams sync.WaitGroup
	var lines []*line
	for range max(clients/2/perLine, 2) {
		serverIn, clientOut := io.Pipe()
		clientIn, serverOut := io.Pipe()
		streams.Go(func() {
			assert.NoError(t, stdio.ServeStream(context.Background(), s, serverIn, serverOut, nil))
			serverOut.Close()
		})
		p := newLine(clientIn, clientOut)
		_, answer, err := p.start("initialize", initializeParams)
		require.NoError(t, err)
		<-answer
		require.NoError(t, p.write(encode(object{"jsonrpc": "2.0", "method": "notifications/initialized"})))
		lines = append(lines, p)
	}
	var users sync.WaitGroup
	for n := range clients {
		users.Go(func() {
			switch n % 4 {
			case 0:
				l.onLine(n, lines[n/4%len(lines)], false)
			case 1:
				l.onLine(n, lines[n/4%len(lines)], true)
			case 2:
				l.stateless(n)
			default:
				l.inSessions(n)
			}
		})
	}
	samples := l.watch(duration)
	every := within(patience, l.hasDoneEverything) // which on a busy machine may take longer
	stop()
	users.Wait()

	var left server.Stats
	gone := within(patience, func() bool {
		left = s.Stats()
		return left.InFlight+left.Lingering+left.Parked+left.Listening == 0 && left.Sessions == len(lines)
	})
	assert.Truef(t, gone, "left: %+v", left)
	for _, p := range lines {
		assert.NoError(t, p.out.Close())
		p.mu.Lock()
		assert.NoError(t, p.fault)
		p.mu.Unlock()
	}
	streams.Wait()
	transport.CloseIdleConnections()
	dropping.CloseIdleConnections()
	assert.NoError(t, h.Close())
	hs.Close()
	after := 0
	assert.True(t, within(patience, func() bool { after = runtime.NumGoroutine(); return after <= before+slack }), "goroutines: %d, before: %d", after, before)
	assert.Zero(t, l.wrong, "%v", l.faults)
	assert.True(t, every, "some things were not done at all")
	if duration >= longEnough {
		memory := trendOf(samples)
		t.Logf("live heap %.1f MiB, growth %.2f MiB, noise %.2f MiB", memory.mean, memory.growth, memory.noise)
		assert.False(t, memory.grows(), "memory grows: %+v", memory)
	}
	if out := os.Getenv("SOAK_OUT"); out != "" && !t.Failed() {
		l.write(t, out, clients, samples)
	}
}

func (l *load) hasDoneEverything() bool {
	for d := range doings {
		if l.done[d].Load() == 0 {
			return false
		}
	}
	return true
}

// watch takes samples until the time is over. The time in which everything gets going is left out.
func (l *load) watch(duration time.Duration) (samples []sample) {
	begun := time.Now()
	ticker := time.NewTicker(min(sampleEvery, duration/4))
	defer ticker.Stop()
	for range ticker.C {
		at := time.Since(begun)
		if duration < longEnough || at > warmUp {
			samples = append(samples, l.sample(at))
		} else {
			l.sample(at)
		}
		if at >= duration {
			return samples
		}
	}
	return samples
}

func (l *load) sample(at time.Duration) sample {
	l.mu.Lock()
	took := l.latencies
	l.latencies = nil
	l.mu.Unlock()
	slices.Sort(took)
	s := sample{at: at, goroutines: runtime.NumGoroutine(), calls: len(took)}
	if len(took) > 0 {
		s.p50, s.p99 = took[len(took)/2], took[len(took)*99/100]
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	s.heap = float64(m.HeapAlloc) / (1 << 20)
	return s
}

func within(d time.Duration, holds func() bool) bool {
	late := time.NewTimer(d)
	defer late.Stop()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for !holds() {
		select {
		case <-again.C:
		case <-late.C:
			return false
		}
	}
	return true
}

// write writes the page and its charts.
func (l *load) write(t *testing.T, out string, clients int, samples []sample) {
	memory := trendOf(samples)
	first, last := samples[0], samples[len(samples)-1]
	least, most := first.goroutines, first.goroutines
	var p50s, p99s []time.Duration
	for _, s := range samples {
		least, most = min(least, s.goroutines), max(most, s.goroutines)
		p50s, p99s = append(p50s, s.p50), append(p99s, s.p99)
	}
	slices.Sort(p50s)
	slices.Sort(p99s)
	var b strings.Builder
	fmt.Fprintf(&b, "---\ntitle: Soak\norder: 76\n---\n\n# Soak\n\nThis page is written by `make soak`, from a run of %v with %d clients at once on %d cores (%s).\n", last.at.Round(time.Second), clients, runtime.NumCPU(), runtime.Version())
	fmt.Fprintf(&b, "Half of the clients share streams as on stdio, a quarter speaks HTTP without sessions, a quarter HTTP in\nsessions that come and go; the streams carry both eras. Clients and server are one process, so that memory and goroutines are those of both.\n\n| what | how often |\n| --- | ---: |\n")
	total := int64(0)
	for d := range doings {
		fmt.Fprintf(&b, "| %v | %d |\n", d, l.done[d].Load())
		total += l.done[d].Load()
	}
	fmt.Fprintf(&b, "| wrong, missing or unwanted answers | %d |\n\n", l.wrong)
	fmt.Fprintf(&b, "After a warm-up of %v the live heap is %.1f MiB on average. A line fitted by least squares grows by %.2f MiB over the\nrun, which is %.1f bytes for each of the %d things that were done; the samples scatter around it with a standard deviation of %.2f MiB. There were %d to %d goroutines. At the end nothing was left: no request, session,\nsubscription, parked handler or goroutine.\n\n", warmUp, memory.mean, memory.growth, memory.growth*(1<<20)/float64(total), total, memory.noise, least, most)
	fmt.Fprintf(&b, "A quick call took %v in the median and %v at the 99th percentile (medians over the samples of %v).\n\n", p50s[len(p50s)/2].Round(10*time.Microsecond), p99s[len(p99s)/2].Round(10*time.Microsecond), sampleEvery)
	b.WriteString("![Live heap over time](soak-memory.svg)\n\n![Latency over time](soak-latency.svg)\n\nReproduce with `make soak`; `SOAK_TIME` and `SOAK_CLIENTS` change the run. The run fails for any wrong answer, for anything that is\nleft, and for a heap that grows by more than a tenth and by more than three standard deviations.\n")
	files := map[string]string{
		"soak.md":          b.String(),
		"soak-memory.svg":  chart("Live heap", samples, map[string]func(sample) float64{"live heap": func(s sample) float64 { return s.heap }}, "MiB"),
		"soak-latency.svg": chart("Latency of quick calls", samples, map[string]func(sample) float64{"p50": func(s sample) float64 { return float64(s.p50) / 1e6 }, "p99": func(s sample) float64 { return float64(s.p99) / 1e6 }}, "ms"),
	}
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(out, name), []byte(text), 0o644))
	}
}
