package main

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// mHTTPCancel: legacy: notifications/cancelled by POST on a second connection;
// modern: close of the connection that carries the request.
func mHTTPCancel(s *server, n int, modern bool, flags []string, prefix string, r rec) error {
	p, err := spawn(s, true, flags...)
	if err != nil {
		return err
	}
	defer p.kill()
	stop := p.watchdog(60 * time.Second)
	defer stop()
	ctl, err := hdial(p.addr)
	if err != nil {
		return err
	}
	defer ctl.c.Close()
	ses := hsession{modern: modern}
	if !modern {
		if ses, err = ctl.openSession(); err != nil {
			return err
		}
	}
	var d []time.Duration
	lost := 0
	warm := n / 10
	for i := range n + warm {
		id := int64(100 + i)
		tag := "h" + strconv.FormatInt(id, 10)
		w, err := hdial(p.addr)
		if err != nil {
			return err
		}
		w.body = ses.call(nil, id, "wait", `{"tag":"`+tag+`"}`, "")
		if err := w.send("POST", ses.headers("tools/call", "wait")); err != nil {
			return err
		}
		if _, ok := p.waitTag("S", tag, 2*time.Second); !ok {
			w.c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
			e := w.head()
			if e == nil {
				w.rest()
			}
			return fmt.Errorf("handler %d never started: HTTP %d %.200s %v", i, w.resp.status, w.resp.body, e)
		}
		var t int64
		if modern {
			t = time.Now().UnixNano()
			w.c.Close()
		} else {
			ctl.body = bytes.TrimSpace(appendCancel(ctl.body[:0], id))
			ctl.c.SetDeadline(time.Now().Add(5 * time.Second))
			t = time.Now().UnixNano()
			if err := ctl.do("POST", ses.headers("", "")); err != nil {
				return fmt.Errorf("cancel POST: %w", err)
			}
		}
		l, ok := p.waitTag("C", tag, time.Second)
		w.c.Close()
		if !ok {
			if lost++; lost >= 3 {
				r(prefix+"_lost", float64(lost))
				return fmt.Errorf("not observed within 1 s (%d of %d)", lost, i+1)
			}
			continue
		}
		if i >= warm {
			d = append(d, time.Duration(l.at-t))
		}
	}
	slices.Sort(d)
	r(prefix+"_p50_us", us(pct(d, .5)))
	r(prefix+"_p99_us", us(pct(d, .99)))
	r(prefix+"_lost", float64(lost))
	return nil
}
