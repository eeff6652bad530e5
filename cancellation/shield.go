package cancellation

import (
	"context"
	"sync/atomic"

	"github.com/heedmcp/heed/cancellation/internal/probe"
)

// Shield runs f, a commit that a cancellation must not split, and returns its
// error. While f runs, a cancel of ctx's request is accepted but not delivered:
// tokens stay quiet and no context of the request ends, so a database transaction
// that was begun with one of them commits instead of being rolled back under f's
// hands. The last shield to close delivers, also when f panics. Keep f short: the
// peer's cancel waits for it.
//
// f is not called, and Shield returns the [*Error], once a cancel was accepted,
// even while another goroutine's shield still defers it: a stream of commits
// cannot hold off a cancel. Shield also returns without calling f when ctx has
// ended for another reason; the error is what [Checkpoint] returns. A Shield
// inside an open one always runs, being part of the commit that is under way:
// call it with the context that f was given, or one derived from it. That context
// is ctx, marked.
//
// A shield covers the request whose token ctx carries and all requests above it.
// It covers neither a cancel of a request below, nor contexts that end by a
// deadline or a cancel function of their own. When ctx carries no token, or was
// detached with context.WithoutCancel, there is nothing to defer and f just runs.
func Shield(ctx context.Context, f func(context.Context) error) error {
	t := FromContext(ctx)
	outer, _ := ctx.Value(shieldKey{}).(*shield)
	nested := outer.surrounds(t)
	if !nested {
		outer = nil // of another request, or closed
		if probe.Active() {
			probe.Pass(ctx, probe.BeforeShield)
		}
		if err := endOf(ctx); err != nil {
			return err
		}
	}
	if t == nil || ctx.Done() == nil {
		return f(ctx)
	}
	sh, refusal := t.source.openShield(outer)
	if refusal != nil {
		if t.ended.Load() != nil && ctx.Err() == nil {
			return f(ctx) // the request has ended and ctx has not: it was detached
		}
		t.source.markObserved(refusal)
		return refusal.cause()
	}
	defer sh.close()
	if !nested && probe.Active() {
		probe.Pass(ctx, probe.InsideShield)
	}
	return f(context.WithValue(ctx, shieldKey{}, sh))
}

// shieldKey is the key under which the context given to f answers its *shield.
type shieldKey struct{}

// shield is one running Shield. It counts in every Source from source up to top.
type shield struct {
	source *Source     // set by openShield
	top    *Source     // set by openShield: source itself or one above
	open   atomic.Bool // true until close; changed under root.mu
}

// surrounds reports whether sh is an open shield of t's request or of one above it.
func (sh *shield) surrounds(t *Token) bool {
	if sh == nil || t == nil || !sh.open.Load() {
		return false
	}
	for p := t.source; p != nil; p = p.up {
		if p == sh.source {
			return true
		}
	}
	return false
}

// openShield opens a shield on s and on the Sources above, or returns the outcome
// that refuses it (I6). outer is the shield around the caller, nil without one.
func (s *Source) openShield(outer *shield) (*shield, *outcome) {
	s.root.mu.Lock()
	defer s.root.mu.Unlock()
	sh := &shield{source: s}
	for p := s; p != nil; p = p.up {
		out := p.decided.Load()
		open := out == nil || p.token.ended.Load() == nil && outer.defersLocked(out)
		if !open {
			if p == s || out != finished && p.token.ended.Load() == nil {
				return nil, out
			}
			break // p is over, and s is not: nothing to cover from here on
		}
		sh.top = p
	}
	for p := s; ; p = p.up {
		p.shields++
		if p == sh.top {
			break
		}
	}
	sh.open.Store(true)
	return sh, nil
}

// defersLocked reports whether the open shield sh is what defers out: a Source that
// sh covers was decided with it.
func (sh *shield) defersLocked(out *outcome) bool {
	if sh == nil || !sh.open.Load() {
		return false
	}
	for q := sh.source; ; q = q.up {
		if q.decided.Load() == out {
			return true
		}
		if q == sh.top {
			return false
		}
	}
}

// close closes sh and ends what waited for it (I5).
func (sh *shield) close() {
	root := sh.source.root
	root.mu.Lock()
	defer root.mu.Unlock()
	sh.open.Store(false)
	for p := sh.source; ; p = p.up {
		p.shields--
		if p == sh.top {
			break
		}
	}
	for p := sh.source; ; p = p.up {
		p.settleLocked()
		if p == sh.top {
			break
		}
	}
}
