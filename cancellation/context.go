package cancellation

import "time"

// sourceContext is a Source seen as a context: one pointer, so that it costs nothing.
type sourceContext Source

// tokenKey is the key under which a context answers its *Token.
type tokenKey struct{}

func (c *sourceContext) source() *Source { return (*Source)(c) }

// Deadline returns the parent's: a Source has none of its own.
func (c *sourceContext) Deadline() (deadline time.Time, ok bool) { return c.parent.Deadline() }

// Done returns the channel of the standard context inside.
func (c *sourceContext) Done() <-chan struct{} { return c.source().done() }

// Err returns nil until the end, then context.Canceled or, for a Timeout, DeadlineExceeded.
func (c *sourceContext) Err() error {
	if c.token.ended.Load() == nil {
		return nil
	}
	return c.source().observe().contextError()
}

// Value answers the token. Every other key is asked of the standard context
// inside, which knows the key by which package context finds its own kind, and
// then of the parent.
//
// While nobody has asked for Done and the request goes on, there is no standard
// context and none is missed: package context looks for one only after it was
// given a Done channel or an Err.
func (c *sourceContext) Value(key any) any {
	if key == (tokenKey{}) {
		return &c.token
	}
	sig := c.signal.Load()
	if sig == nil && c.token.ended.Load() != nil {
		sig = c.source().materialize()
	}
	if sig != nil {
		if v := sig.std.Value(key); v != nil {
			return v
		}
	}
	return c.parent.Value(key)
}

// String keeps fmt from walking the fields, which change under its hands.
func (c *sourceContext) String() string { return "cancellation.Context" }
