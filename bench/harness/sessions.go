package main

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// mSessions: n idle legacy sessions, optionally each with an open GET stream.
func mSessions(s *server, n int, get bool, prefix string, r rec, note func(string)) error {
	p, err := spawn(s, true)
	if err != nil {
		return err
	}
	defer p.kill()
	stop := p.watchdog(60 * time.Second)
	defer stop()
	// warm up with a few sessions that are deleted again
	warm, err := hdial(p.addr)
	if err != nil {
		return err
	}
	defer warm.c.Close()
	for range 50 {
		ses, err := warm.openSession()
		if err != nil {
			return err
		}
		warm.do("DELETE", ses.headers("", ""))
	}
	const workers = 16
	var hs []*hconn
	for range workers {
		h, err := hdial(p.addr)
		if err != nil {
			return err
		}
		defer h.c.Close()
		hs = append(hs, h)
	}
	time.Sleep(50 * time.Millisecond)
	m0 := p.mem(true)
	rss0 := p.rss()
	sessions := make([]hsession, n)
	streams := make([]*hconn, n)
	each := func(f func(h *hconn, i int) error) error {
		var next atomic.Int64
		var wg sync.WaitGroup
		var first atomic.Pointer[error]
		for _, h := range hs {
			wg.Go(func() {
				for {
					i := int(next.Add(1)) - 1
					if i >= n {
						return
					}
					if err := f(h, i); err != nil {
						first.CompareAndSwap(nil, &err)
						return
					}
				}
			})
		}
		wg.Wait()
		if e := first.Load(); e != nil {
			return *e
		}
		return nil
	}
	t0 := time.Now()
	if err := each(func(h *hconn, i int) (err error) { sessions[i], err = h.openSession(); return }); err != nil {
		return err
	}
	r(prefix+"_open_per_s", float64(n)/time.Since(t0).Seconds())
	if get {
		for i := range streams {
			g, err := hdial(p.addr)
			if err != nil {
				return err
			}
			streams[i] = g
			if err := g.send("GET", sessions[i].headers("", "")); err != nil {
				return err
			}
			g.c.SetReadDeadline(time.Now().Add(time.Second))
			if i < 3 {
				if err := g.head(); err != nil {
					// some servers send no header until the first event
					if !errors.Is(err, io.EOF) && i == 0 {
						note("GET stream: no response header until the first event")
					}
				} else if g.resp.status != 200 {
					note(fmt.Sprintf("GET stream: HTTP %d", g.resp.status))
				}
			}
		}
		time.Sleep(200 * time.Millisecond)
	}
	p.mem(false) // the statistics themselves allocate: ask once before RSS is read
	rss1raw := p.rss()
	m1 := p.mem(true)
	rss1 := p.rss()
	r(prefix+"_rss_B_per_session", float64(rss1-rss0)/float64(n))
	r(prefix+"_rss_raw_B_per_session", float64(rss1raw-rss0)/float64(n))
	if s.Stats {
		r(prefix+"_heapstack_B_per_session", (float64(m1.HeapInuse+m1.StackInuse)-float64(m0.HeapInuse+m0.StackInuse))/float64(n))
		r(prefix+"_goroutines_per_session", float64(m1.Goroutines-m0.Goroutines)/float64(n))
	}
	dels := map[int]int{}
	var mu sync.Mutex
	if err := each(func(h *hconn, i int) error {
		if err := h.do("DELETE", sessions[i].headers("", "")); err != nil {
			return err
		}
		mu.Lock()
		dels[h.resp.status]++
		mu.Unlock()
		return nil
	}); err != nil {
		return fmt.Errorf("DELETE: %w", err)
	}
	for _, g := range streams {
		if g != nil {
			g.c.Close()
		}
	}
	time.Sleep(300 * time.Millisecond)
	m2 := p.mem(true)
	rss2 := p.rss()
	r(prefix+"_after_delete_B_per_session", float64(rss2-rss0)/float64(n))
	if s.Stats {
		r(prefix+"_after_delete_goroutines_delta", float64(m2.Goroutines-m0.Goroutines))
		r(prefix+"_after_delete_heap_B_per_session", (float64(m2.HeapAlloc)-float64(m0.HeapAlloc))/float64(n))
	}
	for st, c := range dels {
		if st/100 != 2 {
			note(fmt.Sprintf("DELETE answered HTTP %d %d times", st, c))
		}
	}
	return nil
}
