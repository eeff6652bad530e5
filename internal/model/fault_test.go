package model_test

import (
	"bytes"
	"context"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/stretchr/testify/assert"
)

// fault breaks a server, between it and its clients or inside of it, so that the test
// can be seen to fail. The zero value breaks nothing.
type fault struct {
	up         func(p *peer, line string) []string // what becomes of a line to the server
	down       func(p *peer, line []byte) [][]byte // and of one from it
	middleware server.Middleware
	stays      bool // each request leaves a goroutine behind
}

func (f fault) toServer(p *peer, line string) []string {
	if f.up == nil {
		return []string{line}
	}
	return f.up(p, line)
}

func (f fault) fromServer(p *peer, line []byte) [][]byte {
	if f.down == nil {
		return [][]byte{line}
	}
	return f.down(p, line)
}

func isCancel(line string) bool {
	return strings.Contains(line, "notifications/cancelled")
}

func isAnswer(line []byte) bool {
	return bytes.Contains(line, []byte(`"result"`)) && bytes.Contains(line, []byte("tag:"))
}

var cancelledID = regexp.MustCompile(`"requestId":[^,]*`)

// Each fault is one that a server could have. A test that misses one is worth nothing.
func TestTheModelSeesFaults(t *testing.T) {
	var kept []*servercontext.Request // by a fault, until its case is over
	var mu sync.Mutex
	faults := map[string]fault{
		"an answer comes twice": {down: func(_ *peer, line []byte) [][]byte {
			if isAnswer(line) {
				return [][]byte{line, line}
			}
			return [][]byte{line}
		}},
		"an answer is lost": {down: func(_ *peer, line []byte) [][]byte {
			if isAnswer(line) {
				return nil
			}
			return [][]byte{line}
		}},
		"a report is lost": {down: func(_ *peer, line []byte) [][]byte {
			if bytes.Contains(line, []byte("notifications/progress")) {
				return nil
			}
			return [][]byte{line}
		}},
		"a report comes twice": {down: func(_ *peer, line []byte) [][]byte {
			if bytes.Contains(line, []byte("notifications/progress")) {
				return [][]byte{line, line}
			}
			return [][]byte{line}
		}},
		"a retraction is lost": {down: func(_ *peer, line []byte) [][]byte {
			if isCancel(string(line)) {
				return nil
			}
			return [][]byte{line}
		}},
		"cancels are not heard": {up: func(_ *peer, line string) []string {
			if isCancel(line) {
				return nil
			}
			return []string{line}
		}},
		"cancels hit another id": {up: func(_ *peer, line string) []string {
			if isCancel(line) {
				line = cancelledID.ReplaceAllString(line, `"requestId":1`)
			}
			return []string{line}
		}},
		"ids of different kinds are one": {up: func(_ *peer, line string) []string {
			if isCancel(line) {
				line = strings.Replace(line, `"requestId":"1"`, `"requestId":1`, 1)
			}
			return []string{line}
		}},
		"calls run twice": {up: func(p *peer, line string) []string {
			if strings.Contains(line, "tools/call") && !strings.Contains(line, "inputResponses") {
				return []string{line, line}
			}
			return []string{line}
		}},
		"an answer's id is another's": {down: func(_ *peer, line []byte) [][]byte {
			return [][]byte{bytes.Replace(line, []byte(`"id":2,"result"`), []byte(`"id":1,"result"`), 1)}
		}},
		"a map keeps requests": {middleware: func(next server.Handler) server.Handler {
			return func(ctx context.Context, req *servercontext.Request) (any, error) {
				mu.Lock()
				kept = append(kept, req)
				mu.Unlock()
				return next(ctx, req)
			}
		}},
		"a timer keeps requests": {middleware: func(next server.Handler) server.Handler {
			return func(ctx context.Context, req *servercontext.Request) (any, error) {
				time.AfterFunc(time.Hour, func() { _ = req.Method() })
				return next(ctx, req)
			}
		}},
		"a goroutine stays": {stays: true},
		"handlers do not see their token": {middleware: func(next server.Handler) server.Handler {
			return func(ctx context.Context, req *servercontext.Request) (any, error) {
				return next(context.WithoutCancel(ctx), req)
			}
		}},
		"errors become results": {middleware: func(next server.Handler) server.Handler {
			return func(ctx context.Context, req *servercontext.Request) (any, error) {
				result, err := next(ctx, req)
				if err != nil && req.Method() == "tools/call" {
					return map[string]any{"content": []any{}}, nil
				}
				return result, err
			}
		}},
	}
	for name, f := range faults {
		t.Run(name, func(t *testing.T) {
			kept = nil
			found := ""
			for seed := 0; seed < 200 && found == ""; seed++ {
				s := scriptGen.Example(seed)
				if w := run(t, s, f); w.err != nil {
					found = w.err.Error()
					assert.Contains(t, w.report(s), "the wire:")
				}
			}
			assert.NotEmpty(t, found, "nobody noticed")
			first, _, _ := strings.Cut(found, "\n")
			t.Log(first)
		})
	}
}
