package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

func stdioProbe(f func(c *chat) string) func(s *server) string {
	return func(s *server) string {
		c, err := openChat(s)
		if err != nil {
			return "error: " + err.Error()
		}
		defer c.p.kill()
		stop := c.p.watchdog(15 * time.Second)
		defer stop()
		return f(c)
	}
}

var stdioProbes = []probe{
	{"stdio-answer", "stdio: answers to 20 cancelled `wait` calls (spec: SHOULD NOT answer)", "0 of 20", false, stdioProbe(func(c *chat) string {
		n, sample := 0, ""
		for i := range 20 {
			id := fmt.Sprint(100 + i)
			c.send(call(id, "wait", `{"tag":"a`+id+`"}`))
			if _, ok := c.p.waitTag("S", "a"+id, 2*time.Second); !ok {
				return "handler never started"
			}
			c.send(cancelled(id, "probe"))
			if _, ok := c.p.waitTag("C", "a"+id, time.Second); !ok {
				return "not cancelled"
			}
			if m, ok := c.next(30*time.Millisecond, isReply(id)); ok {
				n++
				sample = m.raw
			}
		}
		if n == 0 {
			return "0 of 20"
		}
		return fmt.Sprintf("%d of 20, e.g. `%s`", n, short(sample))
	})},
	{"stdio-id-type", "stdio: request id 7 (number), cancelled with requestId \"7\" (string): handler cancelled?", "no", false, stdioProbe(func(c *chat) string {
		c.send(call("7", "wait", `{"tag":"t7"}`))
		if _, ok := c.p.waitTag("S", "t7", 2*time.Second); !ok {
			return "handler never started"
		}
		c.send(cancelled(`"7"`, "probe"))
		_, got := c.p.waitTag("C", "t7", 500*time.Millisecond)
		return yn(got)
	})},
	{"stdio-id-string", "stdio: string request id \"abc-1\": cancellable?", "yes", false, stdioProbe(func(c *chat) string {
		c.send(call(`"abc-1"`, "wait", `{"tag":"ts"}`))
		if _, ok := c.p.waitTag("S", "ts", 2*time.Second); !ok {
			return "handler never started"
		}
		c.send(cancelled(`"abc-1"`, "probe"))
		_, got := c.p.waitTag("C", "ts", 500*time.Millisecond)
		return yn(got)
	})},
	{"stdio-id-big", "stdio: request id 9007199254740993 (2^53+1): cancelled by its own id / by 9007199254740992?", "yes / no", false, stdioProbe(func(c *chat) string {
		c.send(call(`9007199254740993`, "wait", `{"tag":"tb"}`))
		if _, ok := c.p.waitTag("S", "tb", 2*time.Second); !ok {
			return "handler never started"
		}
		c.send(cancelled(`9007199254740992`, "probe"))
		_, wrong := c.p.waitTag("C", "tb", 300*time.Millisecond)
		if wrong {
			return "– / **yes, by a different id**"
		}
		c.send(cancelled(`9007199254740993`, "probe"))
		_, got := c.p.waitTag("C", "tb", 500*time.Millisecond)
		return yn(got) + " / no"
	})},
	{"stdio-id-echo", "stdio: ping with id 9007199254740993 (2^53+1): id of the answer", "the same", false, stdioProbe(func(c *chat) string {
		c.send(`{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`)
		m, ok := c.next(time.Second, func(m message) bool { return m.Method == "" })
		if !ok {
			return "no answer"
		}
		if string(m.ID) == "9007199254740993" {
			return "the same"
		}
		return "**" + string(m.ID) + "**"
	})},
	{"stdio-unknown", "stdio: cancelling an unknown id, a finished id and malformed params: server keeps answering, sends nothing", "yes, silent", false, stdioProbe(func(c *chat) string {
		c.send(call("50", "echo", `{"text":"x"}`))
		if _, ok := c.next(time.Second, isReply("50")); !ok {
			return "no echo"
		}
		c.send(cancelled("999", "probe"))
		c.send(cancelled("50", "probe"))
		c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{"a":1}}}`)
		c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}`)
		c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled"}`)
		var extra []string
		c.next(200*time.Millisecond, func(m message) bool { extra = append(extra, m.raw); return false })
		if !c.ping("51") {
			return "no longer answers ping"
		}
		if len(extra) > 0 {
			return fmt.Sprintf("yes, but sent %d messages, e.g. `%s`", len(extra), short(extra[0]))
		}
		return "yes, silent"
	})},
	{"stdio-same-write", "stdio: `wait` and its cancellation in one write, 200 times: handlers left running", "0 lost", false, stdioProbe(func(c *chat) string {
		lost, started, answered := 0, 0, 0
		for i := range 200 {
			id := fmt.Sprint(1000 + i)
			c.send(call(id, "wait", `{"tag":"r`+id+`"}`) + "\n" + cancelled(id, "probe"))
			if _, ok := c.p.waitTag("S", "r"+id, 20*time.Millisecond); !ok {
				// never started within 20 ms: fine if it never does
				if _, late := c.p.waitTag("S", "r"+id, 10*time.Millisecond); !late {
					if _, a := c.next(time.Millisecond, isReply(id)); a {
						answered++
					}
					continue
				}
			}
			started++
			if _, ok := c.p.waitTag("C", "r"+id, 250*time.Millisecond); !ok {
				lost++
				if lost >= 5 {
					return fmt.Sprintf("**%d lost of the first %d** (cancellation ignored, handler runs on)", lost, i+1)
				}
			}
		}
		return fmt.Sprintf("%d lost (%d handlers started, %d never did)", lost, started, 200-started)
	})},
	{"stdio-init-cancel", "stdio: `initialize` and notifications/cancelled for it in one write, 20 processes: normal results", "20 of 20 (MUST NOT be cancelled)", false, func(s *server) string {
		tries, ok, other, sample := 0, 0, 0, ""
		for tries < 20 && (ok > 0 || other < 5) {
			tries++
			p, err := spawn(s, false)
			if err != nil {
				return err.Error()
			}
			stop := time.AfterFunc(1500*time.Millisecond, func() { p.cmd.Process.Kill() }).Stop
			r := bufio.NewReader(p.out)
			io.WriteString(p.in, initReq+cancelled("1", "probe")+"\n")
			line, err := r.ReadString('\n')
			if err == nil && strings.Contains(line, `"result"`) && strings.Contains(line, `"serverInfo"`) {
				io.WriteString(p.in, initializedNote+`{"jsonrpc":"2.0","id":2,"method":"ping"}`+"\n")
				line, err = r.ReadString('\n')
				if err == nil && strings.Contains(line, `"id":2`) {
					ok++
				} else {
					other++
					sample = line
				}
			} else {
				other++
				sample = strings.TrimSpace(line)
				if err != nil {
					sample = "no answer within 1.5 s"
				}
			}
			stop()
			p.kill()
		}
		if other == 0 {
			return "20 of 20"
		}
		return fmt.Sprintf("**%d of %d**; otherwise `%s`", ok, tries, short(sample))
	}},
	{"stdio-nested", "stdio: outer call cancelled while it waits for sampling/createMessage: handler released / nested request cancelled towards the client (reason) / late answer harmless", "yes / yes / yes", false, stdioProbe(func(c *chat) string {
		c.send(call("60", "sample", `{"tag":"n1"}`))
		m, ok := c.next(2*time.Second, func(m message) bool { return m.Method == "sampling/createMessage" })
		if !ok {
			return "no sampling request"
		}
		c.send(cancelled("60", "outer cancelled"))
		l, released := c.p.waitTag("CED", "n1", time.Second)
		rel := yn(released)
		if released && l.kind != 'C' {
			rel += fmt.Sprintf(" (as %c)", l.kind)
		}
		var reply string
		n, got := c.next(500*time.Millisecond, func(m message) bool {
			if isReply("60")(m) {
				reply = m.raw
			}
			return m.Method == "notifications/cancelled"
		})
		nested := "**no**"
		if got {
			var p struct {
				RequestID json.RawMessage `json:"requestId"`
				Reason    string          `json:"reason"`
			}
			json.Unmarshal(n.Params, &p)
			nested = fmt.Sprintf("yes, reason %q", p.Reason)
			if !bytes.Equal(p.RequestID, m.ID) {
				nested += fmt.Sprintf(" (WRONG id %s for %s)", p.RequestID, m.ID)
			}
		}
		c.send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"role":"assistant","content":{"type":"text","text":"late"},"model":"m"}}`)
		alive := c.ping("61")
		out := rel + " / " + nested + " / " + yn(alive)
		if reply != "" {
			out += "; and answered the cancelled call"
		}
		return out
	})},
	{"stdio-eof", "stdio: stdin closed with a `wait` in flight: handler cancelled / process exits", "yes / quickly", false, stdioProbe(func(c *chat) string {
		c.send(call("70", "wait", `{"tag":"e"}`))
		if _, ok := c.p.waitTag("S", "e", 2*time.Second); !ok {
			return "handler never started"
		}
		t := time.Now()
		c.p.in.Close()
		_, got := c.p.waitTag("C", "e", 2*time.Second)
		select {
		case <-c.p.done:
			return fmt.Sprintf("%s / after %.0f ms", yn(got), time.Unix(0, c.p.exit.Load()).Sub(t).Seconds()*1e3)
		case <-time.After(3 * time.Second):
			return yn(got) + " / **still running after 5 s**"
		}
	})},
	{"stdio-flood", "stdio: 300 `wait` calls that never end, then ping and cancel of the first: ping answered / first cancelled", "yes / yes", false, stdioProbe(func(c *chat) string {
		go func() {
			for i := range 300 {
				c.send(call(fmt.Sprint(2000+i), "wait", fmt.Sprintf(`{"tag":"f%d"}`, i)))
			}
			c.send(`{"jsonrpc":"2.0","id":80,"method":"ping"}`)
			c.send(cancelled("2000", "probe"))
		}()
		_, pong := c.next(2*time.Second, isReply("80"))
		_, got := c.p.waitTag("C", "f0", 2*time.Second)
		b := func(v bool) string {
			if v {
				return "yes"
			}
			return "**no**"
		}
		return b(pong) + " / " + b(got)
	})},
}
