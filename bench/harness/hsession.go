package main

import (
	"bytes"
	"fmt"
	"strings"
	"time"
)

// hsession holds the headers of a legacy session or of modern stateless requests.
type hsession struct {
	modern bool
	sid    string
}

const legacyVer = "MCP-Protocol-Version: 2025-11-25\r\n"
const modernMeta = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"mcpbench","version":"1.0.0"},"io.modelcontextprotocol/clientCapabilities":{}`

func (s hsession) headers(method, name string) string {
	if s.modern {
		h := "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: " + method + "\r\n"
		if name != "" {
			h += "Mcp-Name: " + name + "\r\n"
		}
		return h
	}
	h := legacyVer
	if s.sid != "" {
		h += "Mcp-Session-Id: " + s.sid + "\r\n"
	}
	return h
}

func (s hsession) call(b []byte, id int64, tool, args, meta string) []byte {
	b = appendToolCall(b, id, tool, args)
	if s.modern {
		b = append(b, `,"_meta":{`+modernMeta...)
		if meta != "" {
			b = append(b, ',')
			b = append(b, meta...)
		}
		b = append(b, '}')
	} else if meta != "" {
		b = append(b, `,"_meta":{`...)
		b = append(b, meta...)
		b = append(b, '}')
	}
	return append(b, "}}"...)
}

// openSession initializes a legacy session on h.
func (h *hconn) openSession() (hsession, error) {
	h.body = append(h.body[:0], strings.TrimSpace(initReq)...)
	if err := h.do("POST", ""); err != nil {
		return hsession{}, err
	}
	if h.resp.status != 200 || !bytes.Contains(h.resp.body, []byte(`"result"`)) {
		return hsession{}, fmt.Errorf("initialize: HTTP %d %s", h.resp.status, h.resp.body)
	}
	s := hsession{sid: h.resp.sid}
	h.body = append(h.body[:0], strings.TrimSpace(initializedNote)...)
	if err := h.do("POST", s.headers("", "")); err != nil {
		return s, err
	}
	if h.resp.status/100 != 2 {
		return s, fmt.Errorf("initialized: HTTP %d", h.resp.status)
	}
	return s, nil
}

func (s hsession) start(p *proc, id int64, tool, args, tag string) (*hconn, error) {
	w, err := hdial(p.addr)
	if err != nil {
		return nil, err
	}
	w.body = s.call(nil, id, tool, args, "")
	if err := w.send("POST", s.headers("tools/call", tool)); err != nil {
		return nil, err
	}
	if _, ok := p.waitTag("S", tag, 2*time.Second); !ok {
		ended, st, b := w.readUntil(200 * time.Millisecond)
		return nil, fmt.Errorf("handler never started (%s, HTTP %d %.150s)", ended, st, b)
	}
	return w, nil
}

func (s hsession) post(h *hconn, method, body string) (int, string) {
	h.body = append(h.body[:0], body...)
	h.c.SetDeadline(time.Now().Add(3 * time.Second))
	defer h.c.SetDeadline(time.Time{})
	if err := h.do("POST", s.headers(method, "")); err != nil {
		return 0, err.Error()
	}
	return h.resp.status, ssePart(h.resp.body)
}
