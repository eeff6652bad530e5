package probe

import (
	"context"
	"sync/atomic"
)

// Point is a kind of point at which a cancel makes a difference.
type Point uint8

const (
	// Checkpoint is a call of cancellation.Checkpoint.
	Checkpoint Point = iota + 1
	// BeforeShield is the moment before a shield opens, when it can still be refused.
	BeforeShield
	// InsideShield is the moment after a shield has opened, from which on it defers delivery.
	InsideShield
)

// String returns words for a test's report.
func (p Point) String() string {
	switch p {
	case Checkpoint:
		return "checkpoint"
	case BeforeShield:
		return "before a shield"
	case InsideShield:
		return "inside a shield"
	default:
		return "no point"
	}
}

type key struct{}

var active atomic.Int32

// Active reports whether any probe is in use.
func Active() bool { return active.Load() != 0 }

// With returns a context whose points call f. The caller calls release once the
// work that uses the context is over.
func With(ctx context.Context, f func(Point)) (probed context.Context, release func()) {
	active.Add(1)
	return context.WithValue(ctx, key{}, f), func() { active.Add(-1) }
}

// Pass calls the probe of ctx, if it has one.
func Pass(ctx context.Context, p Point) {
	if f, ok := ctx.Value(key{}).(func(Point)); ok {
		f(p)
	}
}
