package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// streamMsg is a message read from an SSE body.
type streamMsg struct {
	from string
	m    message
	end  string // non-empty: the stream ended this way
}

// follow reads a response and passes its messages on.
func (h *hconn) follow(from string, out chan<- streamMsg) {
	if err := h.head(); err != nil {
		out <- streamMsg{from: from, end: err.Error()}
		return
	}
	if h.resp.length != -1 {
		h.rest()
		m := message{raw: string(h.resp.body)}
		json.Unmarshal(h.resp.body, &m)
		out <- streamMsg{from: from, m: m}
		out <- streamMsg{from: from, end: fmt.Sprintf("ended (HTTP %d)", h.resp.status)}
		return
	}
	done := 0
	for {
		n, err := h.chunk()
		for {
			i := bytes.IndexByte(h.resp.body[done:], '\n')
			if i < 0 {
				break
			}
			line := h.resp.body[done : done+i]
			done += i + 1
			if d, ok := bytes.CutPrefix(line, []byte("data:")); ok {
				m := message{raw: string(bytes.TrimSpace(d))}
				if json.Unmarshal(d, &m) == nil {
					out <- streamMsg{from: from, m: m}
				}
			}
		}
		if err != nil || n == 0 {
			out <- streamMsg{from: from, end: "ended"}
			return
		}
	}
}

func httpNested(p *proc, ses hsession, ctl *hconn) string {
	ch := make(chan streamMsg, 1024)
	g, err := hdial(p.addr)
	if err != nil {
		return err.Error()
	}
	defer g.c.Close()
	g.send("GET", ses.headers("", ""))
	go g.follow("GET", ch)
	time.Sleep(100 * time.Millisecond)
	released, nested, ended, answered := 0, 0, 0, 0
	came, where, reason := "", "", ""
	for i := range 10 {
		id := int64(300 + i)
		tag := fmt.Sprintf("hn%d", id)
		w, err := ses.start(p, id, "sample", `{"tag":"`+tag+`"}`, tag)
		if err != nil {
			return err.Error()
		}
		go w.follow("POST", ch)
		var req message
		t := time.NewTimer(time.Second)
	find:
		for {
			select {
			case s := <-ch:
				if s.m.Method == "sampling/createMessage" {
					req, came = s.m, s.from
					break find
				}
			case <-t.C:
				w.c.Close()
				return "no sampling request on either stream"
			}
		}
		ses.post(ctl, "", cancelled(fmt.Sprint(id), "outer cancelled"))
		if _, ok := p.waitTag("CED", tag, time.Second); ok {
			released++
		}
		t.Reset(200 * time.Millisecond)
	collect:
		for {
			select {
			case s := <-ch:
				switch {
				case s.m.Method == "notifications/cancelled":
					var pp struct {
						RequestID json.RawMessage `json:"requestId"`
						Reason    string          `json:"reason"`
					}
					json.Unmarshal(s.m.Params, &pp)
					if bytes.Equal(pp.RequestID, req.ID) {
						nested++
						where, reason = s.from, pp.Reason
					}
				case s.from == "POST" && s.end != "":
					ended++
				case s.from == "POST" && s.m.Method == "":
					answered++
				}
			case <-t.C:
				break collect
			}
		}
		w.c.Close()
		// swallow the end of this stream
		time.Sleep(10 * time.Millisecond)
		for len(ch) > 0 {
			<-ch
		}
	}
	n := fmt.Sprintf("**%d**", nested)
	if nested > 0 {
		n = fmt.Sprintf("%d (%q, on %s)", nested, reason, where)
	}
	out := fmt.Sprintf("%s / %d / %s / %d", came, released, n, ended)
	if answered > 0 {
		out += fmt.Sprintf("; answered %d cancelled calls", answered)
	}
	return out
}
