package conformance_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// fuzzWorkers is how many clients there are at once.
const fuzzWorkers = 3

// Whatever is POSTed, in both eras, with headers right and wrong and bodies that break off: the
// server answers the next good request, sessions live until they are deleted, what is
// written is what the schemas allow, and nothing is left at the end.
func TestFuzzHTTP(t *testing.T) {
	t.Parallel()
	schemas, seed := loadWireSchemas(t), fuzzSeed(t)
	url := serveEverything(t)
	end := time.Now().Add(fuzzFor(t))
	calm := newWeb(t, url, newLedger(schemas), newFuzzer(seed))
	baseline := calm.stats()
	ledger := newLedger(schemas)
	var workers sync.WaitGroup
	for i := range uint64(fuzzWorkers) {
		workers.Go(func() {
			w := newWeb(t, url, ledger, newFuzzer(seed+i+1))
			for (time.Now().Before(end) || !ledger.enough()) && !t.Failed() && w.burst() && len(ledger.found()) == 0 {
			}
			w.finish()
		})
	}
	workers.Wait()
	var left fuzzStats
	awaitNothing(t, func() bool {
		for _, id := range ledger.newTasks() {
			calm.rpc("tasks/cancel", M{"taskId": id})
		}
		left = calm.stats()
		return t.Failed() || left.InFlight+left.Lingering == 0 && left.Sessions <= baseline.Sessions &&
			left.Goroutines <= baseline.Goroutines+2*left.Parked+fuzzSlack
	}, func() string { return fmt.Sprintf("left: %+v, at first: %+v", left, baseline) })
	t.Log(ledger.summary())
	for _, fault := range ledger.found() {
		t.Errorf("the server wrote %s", fault)
	}
}

// web is one client over HTTP that fuzzes.
type web struct {
	t      *testing.T
	url    string
	f      *fuzzer
	ledger *ledger
	http   *http.Client
	life   context.Context // of its streams
	end    context.CancelFunc

	session, version string          // of the handshake era; "" without one
	sessions         map[string]bool // that were opened and not deleted
	recently         []string        // what was sent last, for reports
}

func newWeb(t *testing.T, url string, l *ledger, f *fuzzer) *web {
	w := &web{t: t, url: url, f: f, ledger: l, sessions: map[string]bool{}, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4}}}
	f.lossy = true
	w.life, w.end = context.WithCancel(context.Background())
	t.Cleanup(w.http.CloseIdleConnections)
	return w
}

// webAnswer is what came back for a request.
type webAnswer struct {
	status   int
	session  string
	messages []received
}

// send makes an HTTP request and reads what comes back, for as long as ctx lasts. Only a client that
// gives up itself gets no answer.
func (w *web) send(ctx context.Context, verb string, header http.Header, body io.Reader, version string) (*webAnswer, error) {
	request, err := http.NewRequestWithContext(ctx, verb, w.url, body)
	if err != nil {
		return nil, err
	}
	request.Header = header
	response, err := w.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	a := &webAnswer{status: response.StatusCode, session: response.Header.Get("Mcp-Session-Id")}
	if a.session != "" && response.Request.Header.Get("Mcp-Session-Id") == "" {
		w.sessions[a.session] = true
	}
	if a.status >= 500 && a.status != http.StatusServiceUnavailable {
		w.ledger.note("status %d", a.status)
	}
	kind, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";")
	switch kind {
	case "text/event-stream":
		err = w.events(response.Body, a, version)
	case "application/json":
		var raw []byte
		if raw, err = io.ReadAll(response.Body); err == nil {
			a.messages = w.ledger.got(bytes.TrimSpace(raw), version)
		}
	default:
		var raw []byte
		if raw, err = io.ReadAll(response.Body); err == nil && len(raw) > 0 {
			w.ledger.note("a body of type %q: %.200q", kind, raw)
		}
	}
	return a, err
}

// events reads an event stream, and answers what the server asks.
func (w *web) events(body io.Reader, a *webAnswer, version string) error {
	lines := bufio.NewReader(body)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		data, ok := bytes.CutPrefix(bytes.TrimRight(line, "\r\n"), []byte("data:"))
		if data = bytes.TrimSpace(data); !ok || len(data) == 0 {
			continue
		}
		for _, m := range w.ledger.got(data, version) {
			a.messages = append(a.messages, m)
			if m.Method == "" || m.ID == nil {
				continue
			}
			if version == newest {
				w.ledger.note("a request in the stateless era: %.200s", data)
			}
			if answer := w.f.answer(m); answer != nil && w.session != "" {
				ctx, cancel := context.WithTimeout(w.life, time.Second)
				_, _ = w.send(ctx, http.MethodPost, w.header(w.session, version), bytes.NewReader(answer), version)
				cancel()
			}
		}
	}
}

// header is the right header for a message, but for its names.
func (w *web) header(session, version string) http.Header {
	h := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	if session != "" {
		h.Set("Mcp-Session-Id", session)
	}
	if version != "" {
		h.Set("MCP-Protocol-Version", version)
	}
	return h
}

// burst sends some requests, then looks whether the server and the session are still there.
func (w *web) burst() bool {
	w.ledger.teach(w.f)
	if w.session == "" && !w.f.odds(3) {
		w.open()
	}
	for range 1 + w.f.IntN(12) {
		w.one()
	}
	if w.f.odds(8) {
		w.stream()
	}
	ok := w.alive()
	if w.session != "" && w.f.odds(6) {
		w.delete(w.session)
	}
	if !ok || len(w.ledger.found()) > 0 {
		w.t.Logf("sent last:\n%.10000s", strings.Join(w.recently, "\n"))
	}
	return ok
}

// one sends one message, right or wrong.
func (w *web) one() {
	stateless := w.session == "" && !w.f.odds(6) || w.f.odds(2)
	raw := w.f.next(stateless)
	session, version := w.session, w.version
	if stateless {
		session, version = "", newest
	} else if session == "" {
		version = pick(w.f, "", "2025-03-26", "2025-06-18", newestHandshake)
	}
	header := w.header(session, version)
	if stateless {
		w.names(header, raw)
	}
	if w.f.odds(8) {
		w.spoil(header)
	}
	patience := 700 * time.Millisecond // for calls that wait until they are cancelled
	if w.f.odds(4) {
		patience = time.Duration(w.f.IntN(40)) * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(w.life, patience)
	defer cancel()
	said := version
	if said == "" {
		said = "2025-03-26" // what is taken for granted
	}
	w.ledger.sent(raw, said)
	w.recently = append(w.recently, fmt.Sprintf("%v %s", header, raw))
	w.recently = w.recently[max(0, len(w.recently)-20):]
	var body io.Reader = bytes.NewReader(raw)
	if w.f.odds(20) && len(raw) > 1 { // breaks off, with a length that says otherwise
		body = io.MultiReader(bytes.NewReader(raw[:len(raw)/2]), brokenBody{})
	}
	_, _ = w.send(ctx, http.MethodPost, header, body, said)
}

// brokenBody is where a body breaks off.
type brokenBody struct{}

func (brokenBody) Read([]byte) (int, error) { return 0, errors.New("the line is dead") }

// names sets the headers that say again what the body says.
func (w *web) names(header http.Header, raw []byte) {
	var m struct {
		Method string
		Params struct{ Name, URI, TaskID string }
	}
	_ = json.Unmarshal(raw, &m) // of what is malformed nothing can be said again
	header.Set("Mcp-Method", strings.Map(printable, m.Method))
	for _, name := range []string{m.Params.Name, m.Params.URI, m.Params.TaskID} {
		if name != "" {
			header.Set("Mcp-Name", strings.Map(printable, name))
			return
		}
	}
}

func printable(r rune) rune {
	if r < ' ' || r > '~' {
		return '?'
	}
	return r
}

// spoil makes one header wrong.
func (w *web) spoil(header http.Header) {
	name := pick(w.f, "Content-Type", "Accept", "MCP-Protocol-Version", "Mcp-Method", "Mcp-Name", "Mcp-Session-Id", "Origin", "Last-Event-ID", "Mcp-Param-Region", "Authorization")
	if w.f.odds(3) {
		header.Del(name)
		return
	}
	header.Set(name, pick(w.f, "", "x", "application/json", "text/event-stream", "*/*", newest, newestHandshake, "tools/call", "echo", "=?base64?ZWNobw==?=", "=?base64?!?=", "http://evil.example", strings.Repeat("a", 3000)))
}

// stream opens a GET stream for a moment.
func (w *web) stream() {
	header := w.header(w.session, w.version)
	if w.f.odds(2) {
		header.Set("Last-Event-ID", pick(w.f, "1", "x", "0_0", "9999"))
	}
	ctx, cancel := context.WithTimeout(w.life, 30*time.Millisecond)
	defer cancel()
	_, _ = w.send(ctx, http.MethodGet, header, nil, w.version)
}
