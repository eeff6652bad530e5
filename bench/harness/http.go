package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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
	n := 0
	for _, c := range line {
		switch {
		case c >= '0' && c <= '9':
			n = n<<4 | int(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			n = n<<4 | int(c|0x20-'a'+10)
		default:
			goto done
		}
	}
done:
	at := len(h.resp.body)
	h.resp.body = append(h.resp.body, make([]byte, n+2)...)
	if _, err := io.ReadFull(h.r, h.resp.body[at:]); err != nil {
		return 0, err
	}
	h.resp.body = h.resp.body[:at+n]
	return n, nil
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
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = strconv.AppendInt(b, id, 10)
	b = append(b, `,"method":"tools/call","params":{"name":"`...)
	b = append(b, tool...)
	b = append(b, `","arguments":`...)
	b = append(b, args...)
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

// mHTTP: conns closed-loop connections calling tool for dur.
func mHTTP(s *server, conns int, dur time.Duration, modern bool, flags []string, tool, args, meta, want, prefix string, r rec, note func(string)) error {
	p, err := spawn(s, true, flags...)
	if err != nil {
		return err
	}
	defer p.kill()
	type worker struct {
		h   *hconn
		s   hsession
		lat []time.Duration
		err error
		sse int
	}
	ws := make([]*worker, conns)
	for i := range ws {
		h, err := hdial(p.addr)
		if err != nil {
			return err
		}
		defer h.c.Close()
		h.c.SetDeadline(time.Now().Add(dur + 20*time.Second))
		w := &worker{h: h, s: hsession{modern: modern}}
		if !modern {
			if w.s, err = h.openSession(); err != nil {
				return err
			}
		}
		ws[i] = w
	}
	var nextID atomic.Int64
	nextID.Store(100)
	wantB := []byte(want)
	run := func(d time.Duration, keep bool) int64 {
		var total atomic.Int64
		var wg sync.WaitGroup
		end := time.Now().Add(d)
		for _, w := range ws {
			wg.Go(func() {
				hd := w.s.headers("tools/call", tool)
				n := int64(0)
				for {
					id := nextID.Add(1)
					w.h.body = w.s.call(w.h.body[:0], id, tool, args, meta)
					t := time.Now()
					if err := w.h.do("POST", hd); err != nil {
						w.err = err
						break
					}
					now := time.Now()
					if w.h.resp.status != 200 || !bytes.Contains(w.h.resp.body, wantB) {
						w.err = fmt.Errorf("HTTP %d %.300s", w.h.resp.status, w.h.resp.body)
						break
					}
					n++
					if keep {
						w.lat = append(w.lat, now.Sub(t))
						if w.h.resp.sse {
							w.sse++
						}
					}
					if now.After(end) {
						break
					}
				}
				total.Add(n)
			})
		}
		wg.Wait()
		return total.Load()
	}
	run(dur/4, false)
	m0, c0, t0 := p.mem(false), p.cpu(), time.Now()
	n := run(dur, true)
	el := time.Since(t0)
	c1, m1 := p.cpu(), p.mem(false)
	var lat []time.Duration
	sse := 0
	for _, w := range ws {
		if w.err != nil {
			return fmt.Errorf("%s: %w (stderr %.200s)", prefix, w.err, p.errB)
		}
		lat = append(lat, w.lat...)
		sse += w.sse
	}
	slices.Sort(lat)
	r(prefix+"_calls_s", float64(n)/el.Seconds())
	r(prefix+"_cpu_us", us(c1-c0)/float64(n))
	r(prefix+"_p50_us", us(pct(lat, .5)))
	r(prefix+"_p99_us", us(pct(lat, .99)))
	r(prefix+"_sse_pct", 100*float64(sse)/float64(n))
	if s.Stats {
		r(prefix+"_alloc_B", float64(m1.TotalAlloc-m0.TotalAlloc)/float64(n))
		r(prefix+"_mallocs", float64(m1.Mallocs-m0.Mallocs)/float64(n))
	}
	return nil
}

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
		gets := 0
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
				} else if g.resp.status == 200 {
					gets++
				} else {
					note(fmt.Sprintf("GET stream: HTTP %d", g.resp.status))
				}
			}
		}
		_ = gets
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
