package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// mHTTP2: calls of the stateless era, some outstanding at all times on one HTTP/2
// connection. The client is net/http's; its own cost bounds the calls per second.
func mHTTP2(s *server, outstanding int, dur time.Duration, r rec) error {
	p, err := spawn(s, true, "-modern", "-json", "-h2")
	if err != nil {
		return err
	}
	defer p.kill()
	defer p.watchdog(dur + 20*time.Second)()
	t := &http.Transport{Protocols: new(http.Protocols)}
	t.Protocols.SetUnencryptedHTTP2(true)
	defer t.CloseIdleConnections()
	var id atomic.Int64
	call := func(body []byte) error {
		body = hsession{modern: true}.call(body, id.Add(1), "echo", `{"text":"`+echoText+`"}`, "")
		req, err := http.NewRequest("POST", "http://"+p.addr+"/mcp", bytes.NewReader(body))
		if err != nil {
			return err
		}
		for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "echo"} {
			req.Header.Set(name, value)
		}
		res, err := t.RoundTrip(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		got, err := io.ReadAll(res.Body)
		if err == nil && (res.ProtoMajor != 2 || !bytes.Contains(got, []byte(echoText))) {
			err = fmt.Errorf("%s, HTTP %d, %.200s", res.Proto, res.StatusCode, got)
		}
		return err
	}
	run := func(d time.Duration) ([]time.Duration, error) {
		var (
			wg    sync.WaitGroup
			mu    sync.Mutex
			all   []time.Duration
			first error
		)
		end := time.Now().Add(d)
		for range outstanding {
			wg.Go(func() {
				var took []time.Duration
				var err error
				for err == nil && time.Now().Before(end) {
					begin := time.Now()
					err = call(nil)
					took = append(took, time.Since(begin))
				}
				mu.Lock()
				defer mu.Unlock()
				all = append(all, took...)
				if first == nil {
					first = err
				}
			})
		}
		wg.Wait()
		return all, first
	}
	if _, err := run(dur / 4); err != nil {
		return err
	}
	m0, c0, begin := p.mem(false), p.cpu(), time.Now()
	lat, err := run(dur)
	if err != nil {
		return err
	}
	n := float64(len(lat))
	elapsed := time.Since(begin).Seconds()
	c1, m1 := p.cpu(), p.mem(false)
	slices.Sort(lat)
	r("http2_calls_s", n/elapsed)
	r("http2_cpu_us", us(c1-c0)/n)
	r("http2_p50_us", us(pct(lat, .5)))
	r("http2_p99_us", us(pct(lat, .99)))
	r("http2_mallocs", float64(m1.Mallocs-m0.Mallocs)/n)
	return nil
}
