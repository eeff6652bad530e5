package soak_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heedmcp/heed/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// load counts what the clients do, and what goes wrong.
type load struct {
	ctx  context.Context // ends when no more is to be begun
	web  *web
	done [doings]atomic.Int64

	mu        sync.Mutex
	latencies []time.Duration // of echoes since the last sample
	faults    []error         // the first few
	wrong     int
}

// doing is what a client does.
type doing int

const (
	doCall doing = iota
	doSlow
	doCancel
	doDrop
	doAsk
	doResume
	doListen
	doSession
	doings
)

func (d doing) String() string {
	return [...]string{"quick calls", "slow calls with progress", "cancels", "dropped responses", "nested calls", "resumed streams", "subscriptions", "sessions opened and deleted"}[d]
}

func (l *load) note(d doing, err error) {
	l.done[d].Add(1)
	if err == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrong++
	if len(l.faults) < 10 {
		l.faults = append(l.faults, fmt.Errorf("%v: %w", d, err))
	}
}

func (l *load) took(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.latencies = append(l.latencies, d)
}

func expect(m message, want string) error {
	text, err := m.text()
	if err == nil && text != want {
		err = fmt.Errorf("%q instead of %q", text, want)
	}
	return err
}

// pause waits like people and programs do between requests, or until the load ends.
func (l *load) pause(most time.Duration) {
	t := time.NewTimer(rand.N(most))
	defer t.Stop()
	select {
	case <-t.C:
	case <-l.ctx.Done():
	}
}

// think is the longest pause between two requests of a client.
const think = 400 * time.Millisecond

// onLine is one client of a shared stream.
func (l *load) onLine(n int, p *line, stateless bool) {
	for i := 0; l.ctx.Err() == nil; i++ {
		text := fmt.Sprintf("line %d %d", n, i)
		switch k := rand.IntN(10); {
		case k < 5:
			began := time.Now()
			_, answer, err := p.start("tools/call", callParams(stateless, "echo", text, 0, nil))
			if err == nil {
				err = expect(<-answer, text)
			}
			l.took(time.Since(began))
			l.note(doCall, err)
		case k < 7:
			_, answer, err := p.start("tools/call", callParams(stateless, "slow", text, rand.IntN(60), nil))
			if err == nil {
				err = expect(<-answer, text)
			}
			l.note(doSlow, err)
		case k < 9:
			id, answer, err := p.start("tools/call", callParams(stateless, "wait", text, 0, nil))
			if err == nil {
				l.pause(20 * time.Millisecond)
				var answered bool
				if answered, err = p.cancel(id, answer); answered {
					err = errors.New("a cancelled call was answered")
				}
			}
			l.note(doCancel, err)
		default:
			l.note(doAsk, l.askOnLine(p, stateless, text))
		}
		l.pause(think)
	}
}

func (l *load) askOnLine(p *line, stateless bool, text string) error {
	_, answer, err := p.start("tools/call", callParams(stateless, "ask", text, 0, nil))
	if err != nil {
		return err
	}
	m := <-answer
	if stateless {
		if m.Result == nil || m.Result.State == "" {
			return fmt.Errorf("no input was asked for: %+v", m)
		}
		if _, answer, err = p.start("tools/call", callParams(true, "ask", text, 0, retryOf(&m, text))); err != nil {
			return err
		}
		m = <-answer
	}
	return expect(m, "re "+text)
}

func retryOf(m *message, text string) object {
	inputs := object{}
	for name := range m.Result.Inputs {
		inputs[name] = sampled("re " + text)
	}
	return object{"inputResponses": inputs, "requestState": m.Result.State}
}

// stateless is one client of the era without sessions.
func (l *load) stateless(n int) {
	for i := int64(1); l.ctx.Err() == nil; i++ {
		text := fmt.Sprintf("web %d %d", n, i)
		switch k := rand.IntN(10); {
		case k < 4:
			began := time.Now()
			m, err := l.one(context.Background(), "", i, "echo", text, 0, nil)
			if err == nil {
				err = expect(m, text)
			}
			l.took(time.Since(began))
			l.note(doCall, err)
		case k < 6:
			m, err := l.one(context.Background(), "", i, "slow", text, rand.IntN(60), nil)
			if err == nil {
				err = expect(m, text)
			}
			l.note(doSlow, err)
		case k < 8:
			ctx, cancel := context.WithTimeout(context.Background(), rand.N(30*time.Millisecond))
			_, err := l.one(ctx, "", i, "wait", text, 0, nil)
			cancel()
			l.note(doDrop, wanted(err))
		case k < 9:
			m, err := l.one(context.Background(), "", i, "ask", text, 0, nil)
			if err == nil && (m.Result == nil || m.Result.State == "") {
				err = fmt.Errorf("no input was asked for: %+v", m)
			}
			if err == nil {
				m, err = l.one(context.Background(), "", i, "ask", text, 0, retryOf(&m, text))
			}
			if err == nil {
				err = expect(m, "re "+text)
			}
			l.note(doAsk, err)
		default:
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond+rand.N(200*time.Millisecond))
			params := object{"notifications": object{"toolsListChanged": true}, "_meta": object{mcp.MetaKeyProtocolVersion: server.Version20260728, mcp.MetaKeyClientCapabilities: object{}}}
			_, err := l.web.post(ctx, "", "subscriptions/listen", "", request(i, "subscriptions/listen", params), func(*message, string) {})
			cancel()
			l.note(doListen, wanted(err))
		}
		l.pause(think)
	}
}

// wanted: a request that was to be dropped must not have ended before.
func wanted(err error) error {
	if err == nil {
		return errors.New("it ended by itself")
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// one makes a call over HTTP and answers what the server asks in the meantime.
func (l *load) one(ctx context.Context, session string, id int64, tool, text string, ms int, more object) (answer message, err error) {
	answered := 0
	_, err = l.web.post(ctx, session, "tools/call", tool, request(id, "tools/call", callParams(session == "", tool, text, ms, more)), func(m *message, _ string) {
		switch {
		case m == nil:
		case m.Method == "sampling/createMessage":
			// An error shows as a call that is not answered.
			_ = l.web.notify(session, encode(object{"jsonrpc": "2.0", "id": m.ID, "result": sampled("re " + m.Params.Messages[0].Content.Text)}))
		case m.Method == "":
			answer = *m
			answered++
		}
	})
	if err == nil && answered != 1 && tool != "wait" {
		err = fmt.Errorf("%d answers", answered)
	}
	if tool == "wait" && answered > 0 {
		err = errors.New("a cancelled call was answered")
	}
	return answer, err
}

// inSessions is one client that opens session after session.
func (l *load) inSessions(n int) {
	for l.ctx.Err() == nil {
		session, err := l.web.open()
		l.note(doSession, err)
		if err != nil {
			l.pause(think)
			continue
		}
		for i := int64(2); i < 8 && l.ctx.Err() == nil; i++ {
			l.inSession(session, i, fmt.Sprintf("session %d %d", n, i))
			l.pause(think)
		}
		l.note(doSession, l.web.delete(session))
	}
}

func (l *load) inSession(session string, id int64, text string) {
	switch k := rand.IntN(10); {
	case k < 4:
		began := time.Now()
		m, err := l.one(context.Background(), session, id, "echo", text, 0, nil)
		if err == nil {
			err = expect(m, text)
		}
		l.took(time.Since(began))
		l.note(doCall, err)
	case k < 6:
		ended := make(chan error, 1)
		go func() {
			_, err := l.one(context.Background(), session, id, "wait", text, 0, nil)
			ended <- err
		}()
		l.pause(20 * time.Millisecond)
		l.note(doCancel, l.cancelInSession(session, id, ended))
	case k < 8:
		m, err := l.one(context.Background(), session, id, "ask", text, 0, nil)
		if err == nil {
			err = expect(m, "re "+text)
		}
		l.note(doAsk, err)
	default:
		l.note(doResume, l.resume(session, id, text))
	}
}

// cancelInSession cancels a call until it has ended: a cancel that overtakes its request by
// more than five seconds, as on a machine that is overloaded, is forgotten.
func (l *load) cancelInSession(session string, id int64, ended <-chan error) error {
	for {
		if err := l.web.notify(session, encode(object{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": object{"requestId": id}})); err != nil {
			return errors.Join(err, <-ended)
		}
		again := time.NewTimer(time.Second)
		select {
		case err := <-ended:
			again.Stop()
			return err
		case <-again.C:
		}
	}
}

// resume drops a response in the middle and fetches the rest.
func (l *load) resume(session string, id int64, text string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	last, found := "", false
	see := func(m *message, event string) {
		if event != "" {
			last = event
		}
		if m != nil && m.Method == "" {
			found = expect(*m, text) == nil
		}
	}
	_, err := l.web.post(ctx, session, "tools/call", "slow", request(id, "tools/call", callParams(false, "slow", text, 60, nil)), func(m *message, event string) {
		see(m, event)
		if m != nil && m.Method != "" {
			cancel()
		}
	})
	if err == nil && found || last == "" {
		return err // it was over before it could be dropped
	}
	r, err := http.NewRequest(http.MethodGet, l.web.url, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Mcp-Session-Id", session)
	r.Header.Set("MCP-Protocol-Version", server.Version20251125)
	r.Header.Set("Last-Event-ID", last)
	_, err = l.web.do(r, see)
	if err == nil && !found {
		err = errors.New("the answer is not in what was resumed")
	}
	return err
}
