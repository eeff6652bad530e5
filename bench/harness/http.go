package main

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// mHTTP: conns closed-loop connections calling tool for dur.
func mHTTP(s *server, conns int, dur time.Duration, modern bool, flags []string, tool, args, meta, want, prefix string, r rec, note func(string)) error {
	p, err := spawn(s, true, flags...)
	if err != nil {
		return err
	}
	defer p.kill()
	type worker struct {
		h   *hconn
		s   hsession
		lat []time.Duration
		err error
		sse int
	}
	ws := make([]*worker, conns)
	for i := range ws {
		h, err := hdial(p.addr)
		if err != nil {
			return err
		}
		defer h.c.Close()
		h.c.SetDeadline(time.Now().Add(dur + 20*time.Second))
		w := &worker{h: h, s: hsession{modern: modern}}
		if !modern {
			if w.s, err = h.openSession(); err != nil {
				return err
			}
		}
		ws[i] = w
	}
	var nextID atomic.Int64
	nextID.Store(100)
	wantB := []byte(want)
	run := func(d time.Duration, keep bool) int64 {
		var total atomic.Int64
		var wg sync.WaitGroup
		end := time.Now().Add(d)
		for _, w := range ws {
			wg.Go(func() {
				hd := w.s.headers("tools/call", tool)
				n := int64(0)
				for {
					id := nextID.Add(1)
					w.h.body = w.s.call(w.h.body[:0], id, tool, args, meta)
					t := time.Now()
					if err := w.h.do("POST", hd); err != nil {
						w.err = err
						break
					}
					now := time.Now()
					if w.h.resp.status != 200 || !bytes.Contains(w.h.resp.body, wantB) {
						w.err = fmt.Errorf("HTTP %d %.300s", w.h.resp.status, w.h.resp.body)
						break
					}
					n++
					if keep {
						w.lat = append(w.lat, now.Sub(t))
						if w.h.resp.sse {
							w.sse++
						}
					}
					if now.After(end) {
						break
					}
				}
				total.Add(n)
			})
		}
		wg.Wait()
		return total.Load()
	}
	run(dur/4, false)
	m0, c0, t0 := p.mem(false), p.cpu(), time.Now()
	n := run(dur, true)
	el := time.Since(t0)
	c1, m1 := p.cpu(), p.mem(false)
	var lat []time.Duration
	sse := 0
	for _, w := range ws {
		if w.err != nil {
			return fmt.Errorf("%s: %w (stderr %.200s)", prefix, w.err, p.errB)
		}
		lat = append(lat, w.lat...)
		sse += w.sse
	}
	slices.Sort(lat)
	r(prefix+"_calls_s", float64(n)/el.Seconds())
	r(prefix+"_cpu_us", us(c1-c0)/float64(n))
	r(prefix+"_p50_us", us(pct(lat, .5)))
	r(prefix+"_p99_us", us(pct(lat, .99)))
	r(prefix+"_sse_pct", 100*float64(sse)/float64(n))
	if s.Stats {
		r(prefix+"_alloc_B", float64(m1.TotalAlloc-m0.TotalAlloc)/float64(n))
		r(prefix+"_mallocs", float64(m1.Mallocs-m0.Mallocs)/float64(n))
	}
	return nil
}
