package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// repeats is how often something with n parts is done, so that small ones are not
// one chance event.
func repeats(n int) int { return max(1, min(200, 1000/n)) }

// waiting is a stdio server whose answers are discarded.
func waiting(s *server) (*stdioConn, func(), error) {
	c, _, err := dialStdio(s, "-max")
	if err != nil {
		return nil, nil, err
	}
	stop := c.p.watchdog(60 * time.Second)
	go io.Copy(io.Discard, c.r)
	return c, func() { stop(); c.p.kill() }, nil
}

// batch writes n messages, in pieces, while the caller reads what comes of them. It returns how many are
// written so far.
func (p *proc) batch(n int, build func(b []byte, i int) []byte) *atomic.Int64 {
	var written atomic.Int64
	go func() {
		var b []byte
		for i := range n {
			b = build(b, i)
			if len(b) > 32<<10 || i == n-1 {
				if _, err := p.in.Write(b); err != nil {
					return
				}
				written.Store(int64(i + 1))
				b = b[:0]
			}
		}
	}()
	return &written
}

// hear waits until n handlers have logged kind.
func (p *proc) hear(kind byte, n int) error {
	for got := 0; got < n; {
		l, ok := p.waitLog(20 * time.Second)
		if !ok {
			return fmt.Errorf("%d of %d handlers logged %c", got, n, kind)
		}
		if l.kind == kind {
			got++
		}
	}
	return nil
}

// flight starts n calls that wait, looks, and cancels them.
func (p *proc) flight(first int64, n int, look func()) error {
	p.batch(n, func(b []byte, i int) []byte {
		return appendCall(b, first+int64(i), "wait", `{"ms":3600000,"tag":"g"}`)
	})
	if err := p.hear('S', n); err != nil {
		return err
	}
	if look != nil {
		look()
	}
	p.batch(n, func(b []byte, i int) []byte { return appendCancel(b, first+int64(i)) })
	return p.hear('C', n)
}

func gInflight(s *server, n int) (float64, error) {
	c, done, err := waiting(s)
	if err != nil {
		return 0, err
	}
	defer done()
	if err := c.p.flight(10, 200, nil); err != nil { // warm
		return 0, err
	}
	reps, first := repeats(n), int64(1000)
	begin := time.Now()
	for range reps {
		if err := c.p.flight(first, n, nil); err != nil {
			return 0, err
		}
		first += int64(n)
	}
	return us(time.Since(begin)) / float64(n*reps), nil
}

func gInflightBytes(s *server, n int) (float64, error) {
	c, done, err := waiting(s)
	if err != nil {
		return 0, err
	}
	defer done()
	if err := c.p.flight(10, 200, nil); err != nil {
		return 0, err
	}
	before := c.p.mem(true)
	var after memStats
	err = c.p.flight(1000, n, func() { after = c.p.mem(true) })
	return max(0, float64(after.HeapInuse+after.StackInuse)-float64(before.HeapInuse+before.StackInuse)) / float64(n), err
}

func withTools(s *server, n int) (*stdioConn, func(), error) {
	c, _, err := dialStdio(s, "-tools", strconv.Itoa(n))
	if err != nil {
		return nil, nil, err
	}
	stop := c.p.watchdog(30 * time.Second)
	return c, func() { stop(); c.p.kill() }, nil
}

func gTools(s *server, n int) (float64, error) {
	c, done, err := withTools(s, n)
	if err != nil {
		return 0, err
	}
	defer done()
	const calls = 800
	d, _, err := c.each(calls, calls/4, func(b []byte, id int64) []byte {
		return appendCall(b, id, "tool-"+strconv.Itoa(n-1), `{"text":"`+echoText+`"}`)
	}, echoText)
	return us(pct(d, .5)), err
}

// gList reads every page; the first reading, which may encode, is not counted.
func gList(s *server, n int) (float64, error) {
	c, done, err := withTools(s, n)
	if err != nil {
		return 0, err
	}
	defer done()
	c.r = bufio.NewReaderSize(c.p.out, 32<<20) // nothing is buffered between two requests
	var begin time.Time
	reps := max(1, min(50, 500/n))
	for i := range reps + 1 {
		if i == 1 {
			begin = time.Now()
		}
		seen, cursor := 0, ""
		for {
			params := "{}"
			if cursor != "" {
				params = `{"cursor":"` + cursor + `"}`
			}
			if _, err := c.p.in.Write(append(appendRequest(nil, int64(10+i), "tools/list", params), '\n')); err != nil {
				return 0, err
			}
			line, err := c.r.ReadSlice('\n')
			if err != nil {
				return 0, err
			}
			seen += bytes.Count(line, []byte(`"name":"tool-`))
			_, rest, more := bytes.Cut(line, []byte(`"nextCursor":"`))
			if !more {
				break
			}
			next, _, _ := bytes.Cut(rest, []byte(`"`))
			cursor = string(next)
		}
		if seen != n {
			return 0, fmt.Errorf("%d of %d tools were listed", seen, n)
		}
	}
	return us(time.Since(begin)) / float64(n*reps), nil
}

func gSessions(s *server, n int) (float64, error) {
	p, err := spawn(s, true, "-json")
	if err != nil {
		return 0, err
	}
	defer p.kill()
	defer p.watchdog(60 * time.Second)()
	h, err := hdial(p.addr)
	if err != nil {
		return 0, err
	}
	defer h.c.Close()
	sessions := make([]hsession, n)
	for i := range sessions {
		if sessions[i], err = h.openSession(); err != nil {
			return 0, err
		}
	}
	const calls = 1000
	d := make([]time.Duration, 0, calls)
	for i := range calls + calls/4 {
		ses := sessions[(i*7919)%n]
		h.body = ses.call(h.body[:0], int64(100+i), "echo", `{"text":"`+echoText+`"}`, "")
		headers := ses.headers("tools/call", "echo")
		begin := time.Now()
		if err := h.do("POST", headers); err != nil {
			return 0, err
		}
		if !bytes.Contains(h.resp.body, []byte(echoText)) {
			return 0, fmt.Errorf("HTTP %d %.200s", h.resp.status, h.resp.body)
		}
		if i >= calls/4 {
			d = append(d, time.Since(begin))
		}
	}
	slices.Sort(d)
	return us(pct(d, .5)), nil
}

func gHooks(s *server, n int) (float64, error) {
	c, done, err := waiting(s)
	if err != nil {
		return 0, err
	}
	defer done()
	p := c.p
	reps := repeats(n)
	var took time.Duration
	for i := range reps + reps/4 {
		id := int64(10 + i)
		tag := "h" + strconv.FormatInt(id, 10)
		p.in.Write(appendCall(nil, id, "hooks", `{"n":`+strconv.Itoa(n)+`,"tag":"`+tag+`"}`))
		if _, ok := p.waitTag("S", tag, 5*time.Second); !ok {
			return 0, fmt.Errorf("handler %d never started", i)
		}
		msg := appendCancel(nil, id)
		begin := time.Now().UnixNano()
		p.in.Write(msg)
		l, ok := p.waitTag("C", tag, 5*time.Second)
		if !ok {
			return 0, fmt.Errorf("the last hook of call %d did not run", i)
		}
		if i >= reps/4 {
			took += time.Duration(l.at - begin)
		}
	}
	return us(took) / float64(n*reps), nil
}

// gListen opens n streams, and counts the time from a change to the last stream
// that was told of it; what the server gathers changes for is part of it.
func gListen(s *server, n int) (float64, error) {
	p, err := spawn(s, true, "-modern")
	if err != nil {
		return 0, err
	}
	defer p.kill()
	defer p.watchdog(60 * time.Second)()
	ses := hsession{modern: true}
	headers := ses.headers("subscriptions/listen", "")
	told := make(chan error, n)
	start := make(chan struct{})
	for i := range n {
		h, err := hdial(p.addr)
		if err != nil {
			return 0, err
		}
		defer h.c.Close()
		h.r = bufio.NewReaderSize(h.c, 1<<10)
		h.c.SetDeadline(time.Now().Add(60 * time.Second))
		h.body = appendRequest(nil, int64(i), "subscriptions/listen", `{"notifications":{"toolsListChanged":true},"_meta":{`+modernMeta+`}}`)
		if err := h.send("POST", headers); err != nil {
			return 0, err
		}
		if err := h.await("notifications/subscriptions/acknowledged"); err != nil {
			return 0, err
		}
		go func() {
			<-start
			told <- h.await("notifications/tools/list_changed")
		}()
	}
	ctl, err := hdial(p.addr)
	if err != nil {
		return 0, err
	}
	defer ctl.c.Close()
	close(start)
	begin := time.Now()
	ctl.body = ses.call(nil, 1_000_000, "touch", "{}", "")
	if err := ctl.do("POST", ses.headers("tools/call", "touch")); err != nil {
		return 0, err
	}
	for range n {
		if err := <-told; err != nil {
			return 0, err
		}
	}
	return us(time.Since(begin)) / float64(n), nil
}

// await reads an event stream up to a message.
func (h *hconn) await(method string) error {
	if h.resp.status == 0 {
		if err := h.head(); err != nil {
			return err
		}
		if h.resp.status != 200 || h.resp.length != -1 {
			return fmt.Errorf("HTTP %d, no stream", h.resp.status)
		}
	}
	for {
		h.resp.body = h.resp.body[:0]
		n, err := h.chunk()
		if err != nil {
			return err
		}
		if n == 0 {
			return fmt.Errorf("the stream ended before %s", method)
		}
		if strings.Contains(string(h.resp.body), method) {
			return nil
		}
	}
}
