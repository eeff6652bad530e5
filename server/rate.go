package server

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/heedmcp/heed/servercontext"
)

// RateLimit says how often clients may call. The zero value limits nothing.
type RateLimit struct {
	// Rate is how many calls a second each client may make in the long run; 0 or less:
	// any number.
	Rate float64
	// Burst is how many it may make at once after a pause. 0: as many as Rate allows in a
	// second, but at least one.
	Burst int
	// Methods are the methods that count, together. nil: tools/call and completion/complete,
	// which the specification wants to be limited.
	Methods []string
	// Key tells whose calls are counted together; with an empty key a call is not limited. nil:
	// those of a principal, where the transport has authorization, else those of a session; all
	// calls that have neither, as those of the stateless era over HTTP without authorization,
	// are counted together.
	Key func(ctx context.Context, req *servercontext.Request) string
	// MaxKeys bounds the keys that are remembered, sessions excepted; those that come on
	// top are counted together until others have had a pause. 0: 10 000.
	MaxKeys int
}

const defaultMaxKeys = 10_000

// RateLimitError is returned, in place of the handler's result, for a call that came too
// soon. A tool's caller sees it as a result with isError, others as error -32603.
type RateLimitError struct {
	// After is how long to wait before the next call.
	After time.Duration
}

func (e *RateLimitError) Error() string {
	return fmt.Sprintf("too many calls: try again in %v", e.After)
}

// Limit returns middleware that refuses calls with a [*RateLimitError] when their client makes
// more of them than o allows. Retries that bring the input which a parked handler
// waits for do not count. A limit holds in one process.
//
//	s.Use(server.Limit(server.RateLimit{Rate: 5, Burst: 20}))
//
// Specification: server/tools and server/utilities/completion, security considerations.
func Limit(o RateLimit) Middleware {
	if !(o.Rate > 0) {
		return func(next Handler) Handler { return next }
	}
	l := newLimiter(o)
	return func(next Handler) Handler {
		return func(ctx context.Context, req *servercontext.Request) (any, error) {
			if slices.Contains(l.methods, req.Method()) {
				if err := l.take(ctx, req); err != nil {
					return nil, err
				}
			}
			return next(ctx, req)
		}
	}
}

// limiter counts the calls of clients. Fields of the first block are never changed.
type limiter struct {
	interval float64 // between two calls in the long run, in seconds
	burst    float64
	methods  []string
	key      func(ctx context.Context, req *servercontext.Request) string // nil: principal, then session
	max      int
	start    time.Time

	mu     sync.Mutex       // guards the fields below, and every pace
	paces  map[string]*pace // by key; at most max
	others pace             // of the calls without a key, and of keys for which there is no room
	swept  float64          // when paces was looked through last, in seconds since start
}

func newLimiter(o RateLimit) *limiter {
	l := &limiter{
		interval: 1 / o.Rate, burst: float64(o.Burst), methods: o.Methods, key: o.Key,
		max: o.MaxKeys, start: time.Now(), paces: map[string]*pace{},
	}
	if o.Burst <= 0 {
		l.burst = max(o.Rate, 1)
	}
	if l.methods == nil {
		l.methods = []string{methodCallTool, methodComplete}
	}
	if l.max <= 0 {
		l.max = defaultMaxKeys
	}
	return l
}

// take counts a call, or returns why it must not be made.
func (l *limiter) take(ctx context.Context, req *servercontext.Request) error {
	key := ""
	if l.key != nil {
		if key = l.key(ctx, req); key == "" {
			return nil
		}
	} else if info := req.TokenInfo(); info != nil {
		key = info.UserID
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Since(l.start).Seconds()
	after := l.paceLocked(key, req.Session(), now).take(now, l.interval, l.burst)
	if after == 0 {
		return nil
	}
	const unit = 10 * time.Millisecond
	return &RateLimitError{After: (time.Duration(after*float64(time.Second))/unit + 1) * unit}
}

// paceLocked finds the pace of whoever makes a call.
func (l *limiter) paceLocked(key string, session *servercontext.Session, now float64) *pace {
	switch {
	case key != "":
	case session == nil:
		return &l.others
	default:
		p, _ := session.Load(l)
		if p == nil {
			p = &pace{}
			session.Store(l, p)
		}
		return p.(*pace)
	}
	if p := l.paces[key]; p != nil {
		return p
	}
	if len(l.paces) >= l.max && now-l.swept >= l.burst*l.interval {
		l.swept = now
		for key, p := range l.paces {
			if p.due <= now {
				delete(l.paces, key) // as good as new
			}
		}
	}
	if len(l.paces) >= l.max {
		return &l.others
	}
	p := &pace{}
	l.paces[key] = p
	return p
}

// pace is how fast something happens, in comparison to how fast it may. The zero value has
// not happened yet. Times are seconds since an instant of its owner's choice.
type pace struct {
	due float64 // when it will be as if nothing had happened
}

// take reports 0 if it may happen once more, and counts that; else how long it is too soon.
func (p *pace) take(now, interval, burst float64) (after float64) {
	const rounding = 1e-9
	due := max(p.due, now) + interval
	if after = due - now - burst*interval; after > rounding {
		return after
	}
	p.due = due
	return 0
}
