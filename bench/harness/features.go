package main

import (
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// bare tells whether a server has only the tools of the contract, and so nothing to list
// or to read.
func bare(s *server) bool { return s.Name == floorServer || s.Name == "ts" }

// mEach: one request at a time; request appends one with an id, want is part of each answer.
func mEach(c *stdioConn, n int, prefix string, request func(b []byte, id int64) []byte, want string, r rec) error {
	d, cpu, err := c.each(n, n/10, func(b []byte, id int64) []byte { return append(request(b, id), '\n') }, want)
	if err != nil {
		return err
	}
	r(prefix+"_cpu_us", us(cpu)/float64(n))
	r(prefix+"_p50_us", us(pct(d, .5)))
	r(prefix+"_p99_us", us(pct(d, .99)))
	return nil
}

// mList: tools/list of a server with 100 tools more.
func mList(s *server, n int, r rec) error {
	if bare(s) {
		return nil
	}
	c, _, err := dialStdio(s, "-tools", "100")
	if err != nil {
		return err
	}
	defer c.p.kill()
	defer c.p.watchdog(30 * time.Second)()
	return mEach(c, n, "list100", func(b []byte, id int64) []byte {
		return appendRequest(b, id, "tools/list", "{}")
	}, `"tool-99"`, r)
}

// mCore: tools/list of a server with 100 tools more, without a transport.
func mCore(s *server, d time.Duration, r rec) error {
	if bare(s) {
		return nil
	}
	out, err := exec.Command(s.Path, "-tools", "100", "-core", d.String()).Output()
	if err != nil {
		return err
	}
	ns, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
	if err != nil {
		return err
	}
	r("core100_cpu_us", ns/1e3)
	return nil
}

// mRead: resources/read through the last of 50 templates.
func mRead(s *server, n int, r rec) error {
	if bare(s) {
		return nil
	}
	c, _, err := dialStdio(s, "-templates", "50")
	if err != nil {
		return err
	}
	defer c.p.kill()
	defer c.p.watchdog(30 * time.Second)()
	return mEach(c, n, "read50", func(b []byte, id int64) []byte {
		return appendRequest(b, id, "resources/read", `{"uri":"bench://t49/item-`+strconv.FormatInt(id, 10)+`"}`)
	}, `"item`, r)
}

// mNotify: one call that reports progress n times as fast as it can. A server may merge
// reports in quick succession; what counts is that the last arrives before the answer.
func mNotify(s *server, n int, r rec) error {
	c, _, err := dialStdio(s)
	if err != nil {
		return err
	}
	defer c.p.kill()
	defer c.p.watchdog(30 * time.Second)()
	cpu, start := c.p.cpu(), time.Now()
	io.WriteString(c.p.in, string(appendRequest(nil, 10, "tools/call",
		`{"name":"progress","arguments":{"n":`+strconv.Itoa(n)+`},"_meta":{"progressToken":"p"}}`))+"\n")
	sent, last := 0, ""
	for {
		line, err := c.r.ReadSlice('\n')
		if err != nil {
			return err
		}
		if bytes.Contains(line, []byte(`"notifications/progress"`)) {
			sent++
			last = string(line)
			continue
		}
		if idOf(line) == 10 {
			break
		}
	}
	took := time.Since(start)
	if !strings.Contains(last, `"progress":`+strconv.Itoa(n)) {
		return fmt.Errorf("the last report before the answer is %.200s", last)
	}
	r("notify_per_s", float64(n)/took.Seconds())
	r("notify_sent_pct", 100*float64(sent)/float64(n))
	r("notify_cpu_us", us(c.p.cpu()-cpu)/float64(n))
	return nil
}

// mCancelAmong: latency of n cancels, one at a time, while others are in flight.
func mCancelAmong(s *server, n, others int, r rec, note func(string)) error {
	c, _, err := dialStdio(s, "-max")
	if err != nil {
		return err
	}
	p := c.p
	defer p.kill()
	defer p.watchdog(30 * time.Second)()
	go io.Copy(io.Discard, c.r)
	for i := range others {
		p.in.Write(appendCall(nil, int64(1_000_000+i), "wait", `{"ms":3600000,"tag":"o`+strconv.Itoa(i)+`"}`))
		if _, ok := p.waitLog(2 * time.Second); !ok {
			note(fmt.Sprintf("only %d of %d calls run, the others wait for their turn", i, others))
			return nil
		}
	}
	var d []time.Duration
	for i := range n {
		id := int64(10 + i)
		tag := "c" + strconv.Itoa(i)
		p.in.Write(appendCall(nil, id, "wait", `{"tag":"`+tag+`"}`))
		if _, ok := p.waitTag("S", tag, 2*time.Second); !ok {
			return fmt.Errorf("handler %d never started", i)
		}
		msg := appendCancel(nil, id)
		t := time.Now().UnixNano()
		p.in.Write(msg)
		l, ok := p.waitTag("C", tag, time.Second)
		if !ok {
			return fmt.Errorf("cancellation %d was not observed", i)
		}
		d = append(d, time.Duration(l.at-t))
	}
	slices.Sort(d)
	r("cancel1000_p50_us", us(pct(d, .5)))
	r("cancel1000_p99_us", us(pct(d, .99)))
	return nil
}
