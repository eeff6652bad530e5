package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// hconn is a minimal HTTP/1.1 client connection: one outstanding request, buffers reused.
type hconn struct {
	c    net.Conn
	r    *bufio.Reader
	addr string
	w    []byte
	body []byte
	resp hresp
}

type hresp struct {
	status int
	sse    bool
	sid    string
	length int64 // -1 chunked, -2 none
	body   []byte
}

func hdial(addr string) (*hconn, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &hconn{c: c, r: bufio.NewReaderSize(c, 16<<10), addr: addr}, nil
}

// send writes one request with the body in h.body.
func (h *hconn) send(method, headers string) error {
	w := h.w[:0]
	w = append(w, method...)
	w = append(w, " /mcp HTTP/1.1\r\nHost: "...)
	w = append(w, h.addr...)
	w = append(w, "\r\n"...)
	w = append(w, headers...)
	if method == "POST" {
		w = append(w, "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: "...)
		w = strconv.AppendInt(w, int64(len(h.body)), 10)
		w = append(w, "\r\n\r\n"...)
		w = append(w, h.body...)
	} else {
		w = append(w, "Accept: text/event-stream\r\n\r\n"...)
	}
	h.w = w
	_, err := h.c.Write(w)
	return err
}

var (
	hCL  = []byte("content-length:")
	hTE  = []byte("transfer-encoding:")
	hCT  = []byte("content-type:")
	hSID = []byte("mcp-session-id:")
)

func foldPrefix(line, p []byte) ([]byte, bool) {
	if len(line) < len(p) || !bytes.EqualFold(line[:len(p)], p) {
		return nil, false
	}
	return bytes.TrimSpace(line[len(p):]), true
}

// head reads status and headers.
func (h *hconn) head() error {
	h.resp = hresp{length: -2, body: h.resp.body[:0]}
	line, err := h.r.ReadSlice('\n')
	if err != nil {
		return err
	}
	if len(line) < 12 {
		return fmt.Errorf("bad status line %q", line)
	}
	h.resp.status, _ = strconv.Atoi(string(line[9:12]))
	for {
		line, err := h.r.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) <= 2 {
			return nil
		}
		switch line[0] | 0x20 {
		case 'c':
			if v, ok := foldPrefix(line, hCL); ok {
				h.resp.length, _ = strconv.ParseInt(string(v), 10, 64)
			} else if v, ok := foldPrefix(line, hCT); ok {
				h.resp.sse = bytes.HasPrefix(v, []byte("text/event-stream"))
			}
		case 't':
			if v, ok := foldPrefix(line, hTE); ok && string(v) == "chunked" {
				h.resp.length = -1
			}
		case 'm':
			if v, ok := foldPrefix(line, hSID); ok {
				h.resp.sid = string(v)
			}
		}
	}
}

// chunk reads one chunk; n==0 means the body ended.
func (h *hconn) chunk() (int, error) {
	line, err := h.r.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	size, _, _ := bytes.Cut(bytes.TrimSpace(line), []byte(";"))
	n, err := strconv.ParseUint(string(size), 16, 31)
	if err != nil {
		return 0, fmt.Errorf("bad size of a chunk: %w", err)
	}
	at := len(h.resp.body)
	h.resp.body = append(h.resp.body, make([]byte, n+2)...)
	if _, err := io.ReadFull(h.r, h.resp.body[at:]); err != nil {
		return 0, err
	}
	h.resp.body = h.resp.body[:at+int(n)]
	return int(n), nil
}

// rest reads the whole body.
func (h *hconn) rest() error {
	switch h.resp.length {
	case -2:
		return nil
	case -1:
		for {
			n, err := h.chunk()
			if err != nil {
				return err
			}
			if n == 0 {
				return nil
			}
		}
	default:
		h.resp.body = slices.Grow(h.resp.body, int(h.resp.length))[:h.resp.length]
		_, err := io.ReadFull(h.r, h.resp.body)
		return err
	}
}

func (h *hconn) do(method, headers string) error {
	if err := h.send(method, headers); err != nil {
		return err
	}
	if err := h.head(); err != nil {
		return err
	}
	return h.rest()
}

func ssePart(b []byte) string {
	var out []string
	for _, l := range strings.Split(string(b), "\n") {
		if d, ok := strings.CutPrefix(strings.TrimSpace(l), "data:"); ok && strings.TrimSpace(d) != "" {
			out = append(out, strings.TrimSpace(d))
		}
	}
	if len(out) == 0 {
		return strings.TrimSpace(string(b))
	}
	return strings.Join(out, " ⏎ ")
}

// readUntil reads a response until its body ends, the connection ends or d passes.
// It says how it ended and what arrived.
func (h *hconn) readUntil(d time.Duration) (ended string, status int, body string) {
	h.c.SetReadDeadline(time.Now().Add(d))
	defer h.c.SetReadDeadline(time.Time{})
	if err := h.head(); err != nil {
		if strings.Contains(err.Error(), "timeout") {
			return "still open, no response header", 0, ""
		}
		return "connection closed without a response", 0, ""
	}
	err := h.rest()
	b := ssePart(h.resp.body)
	switch {
	case err == nil:
		return "ended", h.resp.status, b
	case strings.Contains(err.Error(), "timeout"):
		return "still open", h.resp.status, b
	default:
		return "connection closed", h.resp.status, b
	}
}
