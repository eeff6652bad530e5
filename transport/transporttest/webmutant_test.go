package transporttest_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heedmcp/heed/transport/streamable"
	"github.com/heedmcp/heed/transport/transporttest"
	"github.com/heedmcp/heed/transport/transporttest/wire"
)

// webMutant is a server with one fault, over HTTP, and the rule that finds it.
type webMutant struct {
	rule    string
	also    []string
	setting transporttest.Setting
	options *streamable.Options
	fault   func(b *brokenWeb, w http.ResponseWriter, r *http.Request, m wire.Message) (served bool)
}

func isCancel(m wire.Message) bool { return m.Method == "notifications/cancelled" && m.ID == nil }

// callOf tells whether m calls a tool.
func callOf(m wire.Message, tool string) bool {
	return m.Method == "tools/call" && string(m.Param("name")) == `"`+tool+`"`
}

// patient serves a request that its client cannot end, and writes nothing once it is gone.
func patient(b *brokenWeb, w http.ResponseWriter, r *http.Request, m wire.Message) bool {
	if !callOf(m, "cancel_wait") {
		return false
	}
	b.next.ServeHTTP(forgiving{w}, r.WithContext(context.WithoutCancel(r.Context())))
	return true
}

// forgiving is a response that can be written to when its client is gone.
type forgiving struct{ http.ResponseWriter }

func (f forgiving) Write(text []byte) (int, error) {
	_, _ = f.ResponseWriter.Write(text)
	return len(text), nil
}

func (f forgiving) FlushError() error {
	_ = http.NewResponseController(f.ResponseWriter).Flush()
	return nil
}

// lingers is a response that does not end before its client leaves.
func lingers(b *brokenWeb, w http.ResponseWriter, r *http.Request, m wire.Message) bool {
	if !callOf(m, "cancel_ignore") || !strings.Contains(string(m.Param("arguments")), `"ms":10000`) {
		return false
	}
	// Headers that are not sent keep the response open in the good handler's place.
	held := &withheld{ResponseWriter: w}
	b.pass(held, r, m)
	<-r.Context().Done()
	return true
}

// elsewhere sends what the server asks for a call on the stream that the client has opened
// by GET.
func elsewhere() func(b *brokenWeb, w http.ResponseWriter, r *http.Request, m wire.Message) bool {
	var mu sync.Mutex
	var listening http.ResponseWriter
	return func(b *brokenWeb, w http.ResponseWriter, r *http.Request, m wire.Message) bool {
		switch {
		case r.Method == http.MethodGet:
			mu.Lock()
			listening = w
			mu.Unlock()
			b.pass(&diverted{ResponseWriter: w, mu: &mu}, r, m)
			mu.Lock()
			listening = nil
			mu.Unlock()
			return true
		case callOf(m, "cancel_nested") || callOf(m, "cancel_sequence"):
			b.pass(&diverted{ResponseWriter: w, mu: &mu, to: &listening}, r, m)
			return true
		}
		return false
	}
}

// diverted is an event stream whose requests go to another one, if there is one.
type diverted struct {
	http.ResponseWriter
	mu *sync.Mutex          // held while either is written to
	to *http.ResponseWriter // guarded by mu; nil: none goes elsewhere
}

func (d *diverted) Write(text []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.to == nil || *d.to == nil {
		return d.ResponseWriter.Write(text)
	}
	for event := range strings.SplitAfterSeq(string(text), "\n\n") {
		to := d.ResponseWriter
		if strings.Contains(event, `"id":`) && strings.Contains(event, `"method":`) {
			to = *d.to
		}
		_, _ = io.WriteString(to, event) // a client that is gone gets nothing
		_ = http.NewResponseController(to).Flush()
	}
	return len(text), nil
}

func (d *diverted) FlushError() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return http.NewResponseController(d.ResponseWriter).Flush()
}

// withheld keeps what is written until it is released.
type withheld struct {
	http.ResponseWriter
	mu       sync.Mutex
	status   int
	text     bytes.Buffer
	released bool
}

func (h *withheld) WriteHeader(status int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.released {
		h.ResponseWriter.WriteHeader(status)
		return
	}
	h.status = status
}

func (h *withheld) Write(text []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.released {
		return h.ResponseWriter.Write(text)
	}
	return h.text.Write(text)
}

func (h *withheld) FlushError() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.released {
		return http.NewResponseController(h.ResponseWriter).Flush()
	}
	return nil
}

func (h *withheld) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.released = true
	if h.status != 0 {
		h.ResponseWriter.WriteHeader(h.status)
	}
	_, _ = h.ResponseWriter.Write(h.text.Bytes()) // a client that is gone gets nothing
}

// lateHeaders sends no headers for eight seconds.
func lateHeaders(b *brokenWeb, w http.ResponseWriter, r *http.Request, m wire.Message) bool {
	if !callOf(m, "cancel_wait") || strings.Contains(string(m.Param("arguments")), `"ms":1500`) {
		return false
	}
	held := &withheld{ResponseWriter: w}
	done := make(chan struct{})
	late := time.AfterFunc(8*time.Second, func() { held.release(); close(done) })
	b.pass(held, r, m)
	if late.Stop() {
		held.release()
	} else {
		<-done
	}
	return true
}

// httpMutants break each rule that applies to HTTP alone.
func httpMutants() []webMutant {
	const (
		handshake     = transporttest.HTTPHandshake
		handshakeJSON = transporttest.HTTPHandshakeJSON
		stateless     = transporttest.HTTPStateless
		statelessJSON = transporttest.HTTPStatelessJSON
	)
	accepts200 := func(b *brokenWeb, w http.ResponseWriter, r *http.Request, m wire.Message) bool {
		if !isCancel(m) {
			return false
		}
		b.pass(httptest.NewRecorder(), r, m)
		w.WriteHeader(http.StatusOK)
		return true
	}
	deletes := func(whenRunning bool) func(b *brokenWeb, w http.ResponseWriter, r *http.Request, m wire.Message) bool {
		return func(b *brokenWeb, w http.ResponseWriter, r *http.Request, _ wire.Message) bool {
			if r.Method != http.MethodDelete {
				return false
			}
			b.mu.Lock()
			isRunning := false
			for _, one := range b.running {
				isRunning = isRunning || one.session == session(r)
			}
			b.mu.Unlock()
			if isRunning != whenRunning {
				return false
			}
			w.WriteHeader(http.StatusNoContent)
			return true
		}
	}
	return []webMutant{
		{rule: "response-ends", setting: handshake, fault: lingers},
		{rule: "response-ends", setting: handshakeJSON, fault: lingers},
		{rule: "response-begins", setting: handshake, fault: lateHeaders, also: []string{"resume-cancelled"}},
		{rule: "response-begins", setting: stateless, fault: lateHeaders},
		{rule: "cancel-accepted", setting: handshake, fault: accepts200},
		{rule: "cancel-ignored", setting: statelessJSON, fault: accepts200},
		{rule: "cancel-overtakes", setting: handshake, fault: func(b *brokenWeb, w http.ResponseWriter, r *http.Request, m wire.Message) bool {
			if !isCancel(m) || b.find(session(r), string(m.Param("requestId"))) != nil {
				return false
			}
			w.WriteHeader(http.StatusAccepted)
			return true
		}},
		{rule: "isolation-sessions", setting: handshakeJSON, fault: func(b *brokenWeb, _ http.ResponseWriter, r *http.Request, m wire.Message) bool {
			if !isCancel(m) {
				return false
			}
			b.mu.Lock()
			all := append([]*running(nil), b.running...)
			b.mu.Unlock()
			for _, one := range all {
				if one.session != "" && one.session != session(r) && wire.SameID(one.id, string(m.Param("requestId"))) {
					copied := r.Clone(context.WithoutCancel(r.Context()))
					copied.Header.Set("Mcp-Session-Id", one.session)
					copied.Body = io.NopCloser(bytes.NewReader(m.Raw))
					b.next.ServeHTTP(httptest.NewRecorder(), copied)
				}
			}
			return false
		}},
		{rule: "isolation-stateless", setting: stateless, fault: func(b *brokenWeb, _ http.ResponseWriter, _ *http.Request, m wire.Message) bool {
			if !isCancel(m) {
				return false
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			for _, one := range b.running {
				if one.stateless && wire.SameID(one.id, string(m.Param("requestId"))) {
					one.cancel()
				}
			}
			return false
		}},
		{rule: "disconnect-cancels", setting: stateless, fault: patient, also: []string{"isolation-stateless", "steady"}},
		{rule: "disconnect-cancels", setting: statelessJSON, fault: patient, also: []string{"isolation-stateless", "steady"}},
		{rule: "disconnect-survives", setting: handshake, options: &streamable.Options{DisconnectGrace: 1},
			also: []string{"disconnect-cancellable", "resume", "resume-cancelled"}},
		{rule: "disconnect-cancellable", setting: handshakeJSON, fault: func(b *brokenWeb, w http.ResponseWriter, r *http.Request, m wire.Message) bool {
			if !isCancel(m) {
				return false
			}
			<-time.After(50 * time.Millisecond) // until a dropped connection is noticed
			target := b.find(session(r), string(m.Param("requestId")))
			if target == nil || !target.dropped {
				return false
			}
			w.WriteHeader(http.StatusAccepted)
			return true
		}},
		{rule: "resume", setting: handshake, fault: func(b *brokenWeb, w http.ResponseWriter, r *http.Request, _ wire.Message) bool {
			if r.Method != http.MethodGet || r.Header.Get("Last-Event-ID") == "" {
				return false
			}
			w.WriteHeader(http.StatusMethodNotAllowed)
			return true
		}},
		{rule: "resume-cancelled", setting: handshake, fault: func(b *brokenWeb, w http.ResponseWriter, r *http.Request, _ wire.Message) bool {
			if r.Method != http.MethodGet || r.Header.Get("Last-Event-ID") == "" {
				return false
			}
			b.mu.Lock()
			stopped := false
			for _, one := range b.running {
				stopped = stopped || one.stopped
			}
			b.mu.Unlock()
			if !stopped {
				return false
			}
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush() // a client that is gone sees nothing
			<-r.Context().Done()
			return true
		}},
		{rule: "nested-stream", setting: handshake, fault: elsewhere()},
		{rule: "session-delete", setting: handshake, fault: deletes(true)},
		{rule: "session-gone", setting: handshakeJSON, fault: deletes(false)},
	}
}

func TestEachRuleFindsItsFaultOverHTTP(t *testing.T) {
	for i, m := range slices.Concat(httpMutants(), webTaskMutants()) {
		t.Run(m.rule+"/"+m.setting.String(), func(t *testing.T) {
			t.Parallel()
			target := inMemoryHTTP(m.options, func(next http.Handler) http.Handler { return &brokenWeb{next: next, fault: m.fault} })
			killed(t, target, m.setting, m.rule, m.also, i)
		})
	}
}

func TestBrokenWebWithoutFaultIsGood(t *testing.T) {
	target := inMemoryHTTP(nil, func(next http.Handler) http.Handler { return &brokenWeb{next: next} })
	transporttest.Run(t, target, transporttest.Options{
		Settings: transporttest.OverHTTP, Bubble: true, NoSkips: true, Rules: sample(transporttest.OverHTTP),
	})
}
