package main

import (
	"fmt"
	"strings"
	"time"
)

// httpProbe starts a server over HTTP, with a session or as a client of the stateless era.
func httpProbe(modern bool, flags []string, f func(p *proc, ses hsession, ctl *hconn) string) func(s *server) string {
	return func(s *server) string {
		p, err := spawn(s, true, flags...)
		if err != nil {
			return "error: " + err.Error()
		}
		defer p.kill()
		stop := p.watchdog(20 * time.Second)
		defer stop()
		ctl, err := hdial(p.addr)
		if err != nil {
			return "error: " + err.Error()
		}
		defer ctl.c.Close()
		ses := hsession{modern: modern}
		if !modern {
			if ses, err = ctl.openSession(); err != nil {
				return "error: " + err.Error()
			}
		}
		return f(p, ses, ctl)
	}
}

var httpProbes = []probe{
	{"http-sse-closed", "legacy HTTP (SDK default response mode): POST of a cancelled call: how it ends within 1 s / what it carried", "ended / nothing", true, httpProbe(false, nil, func(p *proc, ses hsession, ctl *hconn) string { return cancelledPost(p, ses, ctl) })},
	{"http-json-closed", "legacy HTTP (JSON mode): POST of a cancelled call: how it ends within 1 s / what it carried", "ended / nothing", true, httpProbe(false, []string{"-json"}, func(p *proc, ses hsession, ctl *hconn) string { return cancelledPost(p, ses, ctl) })},
	{"http-disconnect", "legacy HTTP: client connection lost mid-call: handler cancelled? (2025-11-25: SHOULD NOT be taken as cancellation)", "no", true, httpProbe(false, nil, func(p *proc, ses hsession, ctl *hconn) string {
		w, err := ses.start(p, 200, "wait", `{"tag":"d"}`, "d")
		if err != nil {
			return err.Error()
		}
		w.c.Close()
		_, got := p.waitTag("C", "d", 700*time.Millisecond)
		return yn(got)
	})},
	{"http-other-session", "legacy HTTP: cancelled sent on another session for the same id: cancels the first session's call?", "no", true, httpProbe(false, nil, func(p *proc, ses hsession, ctl *hconn) string {
		w, err := ses.start(p, 201, "wait", `{"tag":"o"}`, "o")
		if err != nil {
			return err.Error()
		}
		defer w.c.Close()
		h2, _ := hdial(p.addr)
		defer h2.c.Close()
		s2, err := h2.openSession()
		if err != nil {
			return err.Error()
		}
		s2.post(h2, "", cancelled("201", "probe"))
		_, got := p.waitTag("C", "o", 500*time.Millisecond)
		return yn(got)
	})},
	{"http-delete", "legacy HTTP: DELETE of the session with a call in flight: DELETE status / handler cancelled / POST afterwards", "2xx / yes / 404", true, httpProbe(false, nil, func(p *proc, ses hsession, ctl *hconn) string {
		w, err := ses.start(p, 202, "wait", `{"tag":"x"}`, "x")
		if err != nil {
			return err.Error()
		}
		defer w.c.Close()
		h2, _ := hdial(p.addr)
		defer h2.c.Close()
		h2.c.SetDeadline(time.Now().Add(2 * time.Second))
		st := "DELETE hangs (2 s)"
		if err := h2.do("DELETE", ses.headers("", "")); err == nil {
			st = fmt.Sprint(h2.resp.status)
		}
		_, got := p.waitTag("C", "x", 700*time.Millisecond)
		code, body := ses.post(ctl, "", `{"jsonrpc":"2.0","id":203,"method":"ping"}`)
		after := fmt.Sprint(code)
		if code == 0 {
			after = body
		}
		return st + " / " + yn(got) + " / " + after
	})},
	{"http-nested", "legacy HTTP with a GET stream open: outer call cancelled while it waits for sampling/createMessage, 10 times: stream the request came on / handler released / nested request cancelled towards the client (reason, stream) / POST stream ended", "POST / 10 / 10 / 10", true, httpProbe(false, nil, httpNested)},
	{"modern-close", "modern HTTP: connection closed mid-call: handler cancelled? (2026-07-28: closing is the cancellation)", "yes", true, httpProbe(true, []string{"-modern"}, modernClose)},
	{"modern-close-opt", "same with the SDK's opt-in (`-propagate`)", "yes", true, httpProbe(true, []string{"-modern", "-propagate"}, modernClose)},
	{"modern-cross", "modern HTTP: an unrelated client POSTs notifications/cancelled with another client's request id: that call cancelled? / HTTP status", "no", true, httpProbe(true, []string{"-modern"}, func(p *proc, ses hsession, ctl *hconn) string {
		w, err := ses.start(p, 205, "wait", `{"tag":"mx"}`, "mx")
		if err != nil {
			return err.Error()
		}
		defer w.c.Close()
		code, _ := ses.post(ctl, "notifications/cancelled", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":205,"_meta":{`+modernMeta+`}}}`)
		_, got := p.waitTag("C", "mx", 500*time.Millisecond)
		s := yn(got)
		if got {
			s = "**yes: cross-client cancellation**"
		}
		return fmt.Sprintf("%s / %d", s, code)
	})},
	{"modern-first-bytes", "modern HTTP: response header sent while a call is still running (needed for early SSE)?", "-", true, httpProbe(true, []string{"-modern"}, func(p *proc, ses hsession, ctl *hconn) string {
		w, err := ses.start(p, 206, "wait", `{"ms":600,"tag":"fb"}`, "fb")
		if err != nil {
			return err.Error()
		}
		defer w.c.Close()
		w.c.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
		err = w.head()
		return yn(err == nil)
	})},
	{"modern-reuse", "modern HTTP: same request id on two connections at once: both served", "yes", true, httpProbe(true, []string{"-modern"}, func(p *proc, ses hsession, ctl *hconn) string {
		a, err := ses.start(p, 207, "wait", `{"ms":150,"tag":"ra"}`, "ra")
		if err != nil {
			return err.Error()
		}
		b, err := ses.start(p, 207, "wait", `{"ms":150,"tag":"rb"}`, "rb")
		if err != nil {
			return err.Error()
		}
		_, _, ba := a.readUntil(time.Second)
		_, _, bb := b.readUntil(time.Second)
		return yn(strings.Contains(ba, "done") && strings.Contains(bb, "done"))
	})},
}

func modernClose(p *proc, ses hsession, ctl *hconn) string {
	w, err := ses.start(p, 210, "wait", `{"tag":"mc"}`, "mc")
	if err != nil {
		return err.Error()
	}
	w.c.Close()
	_, got := p.waitTag("C", "mc", time.Second)
	if !got {
		return "**no** (handler runs on)"
	}
	return "yes"
}

func cancelledPost(p *proc, ses hsession, ctl *hconn) string {
	w, err := ses.start(p, 220, "wait", `{"tag":"cp"}`, "cp")
	if err != nil {
		return err.Error()
	}
	defer w.c.Close()
	code, body := ses.post(ctl, "", cancelled("220", "probe"))
	_, got := p.waitTag("C", "cp", time.Second)
	if !got {
		return fmt.Sprintf("handler not cancelled (cancel POST: HTTP %d %s)", code, short(body))
	}
	ended, st, b := w.readUntil(time.Second)
	if b == "" {
		b = "nothing"
	} else {
		b = "`" + short(b) + "`"
	}
	return fmt.Sprintf("%s (HTTP %d) / %s", ended, st, b)
}
