package main

import (
	"bufio"
	"encoding/json"
	"io"
	"strings"
	"time"
)

// message is a parsed JSON-RPC message, for the behaviour probes.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	raw    string
}

// chat is a stdio session whose incoming messages are parsed onto a channel.
type chat struct {
	p  *proc
	in chan message
}

func openChat(s *server, args ...string) (*chat, error) {
	c, _, err := dialStdio(s, args...)
	if err != nil {
		return nil, err
	}
	ch := &chat{c.p, make(chan message, 1<<16)}
	go pump(c.r, ch.in)
	time.Sleep(50 * time.Millisecond)
	return ch, nil
}

func pump(r *bufio.Reader, in chan message) {
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			close(in)
			return
		}
		m := message{raw: strings.TrimSpace(string(line))}
		json.Unmarshal(line, &m)
		in <- m
	}
}

func (c *chat) send(s string) { io.WriteString(c.p.in, s+"\n") }

// next returns the next message satisfying ok within d.
func (c *chat) next(d time.Duration, ok func(m message) bool) (message, bool) {
	t := time.NewTimer(d)
	defer t.Stop()
	for {
		select {
		case m, open := <-c.in:
			if !open {
				return m, false
			}
			if ok(m) {
				return m, true
			}
		case <-t.C:
			return message{}, false
		}
	}
}

func isReply(id string) func(m message) bool {
	return func(m message) bool { return m.Method == "" && string(m.ID) == id }
}

func (c *chat) ping(id string) bool {
	c.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}`)
	m, ok := c.next(time.Second, isReply(id))
	return ok && m.Result != nil
}

func call(id, tool, args string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + args + `}}`
}

func cancelled(id, reason string) string {
	return `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `,"reason":"` + reason + `"}}`
}

func short(s string) string {
	if len(s) > 150 {
		return s[:150] + "…"
	}
	return s
}

func yn(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
