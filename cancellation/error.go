package cancellation

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxReason bounds the length of a reason, in bytes. Reasons come from peers,
// so nobody may make one as long as they please.
const MaxReason = 1024

// ErrCancelled matches, through errors.Is, every [*Error]. It is never returned itself.
var ErrCancelled = errors.New("cancelled")

// ErrFinished is the cause of a request's context once the request was answered
// ([Source.Finish] returned nil). It is returned by [Token.Err], [Checkpoint] and
// [Shield] to goroutines that outlive their handler. It matches context.Canceled
// and never [ErrCancelled]: nobody cancelled the request.
var ErrFinished error = finishedError{}

type finishedError struct{}

func (finishedError) Error() string        { return "request already finished" }
func (finishedError) Is(target error) bool { return target == context.Canceled }

// Error is a cancellation: who asked for it, and why. Through errors.Is it
// matches [ErrCancelled] and what the standard library would have said:
// context.DeadlineExceeded for [Timeout], context.Canceled for every other origin.
//
// All observers of one cancellation are given the same *Error; do not modify it.
// A *Error that is nil means "not cancelled"; do not store it in an error variable
// without checking, since the interface would not be nil.
type Error struct {
	// Origin says who cancelled.
	Origin Origin
	// Reason is untrusted text from whoever cancelled; quote it (%q) wherever it
	// is shown. It may be empty. [Source.Cancel] bounds it to [MaxReason] bytes
	// of valid UTF-8.
	Reason string
}

// Error returns text such as `cancelled by peer: "user pressed stop"`, with the
// reason quoted and bounded.
func (e *Error) Error() string {
	if e == nil {
		return "not cancelled"
	}
	text := "cancelled by " + e.Origin.String()
	if e.Reason == "" {
		return text
	}
	return text + ": " + strconv.Quote(bounded(e.Reason))
}

// Is makes errors.Is match [ErrCancelled], and context.DeadlineExceeded
// ([Timeout]) or context.Canceled (all others).
func (e *Error) Is(target error) bool {
	return e != nil && (target == ErrCancelled || target == e.contextError())
}

// contextError is what ctx.Err of a context ended by e returns.
func (e *Error) contextError() error {
	if e.Origin == Timeout {
		return context.DeadlineExceeded
	}
	return context.Canceled
}

// bounded returns reason as valid UTF-8 of at most MaxReason bytes, cut between
// runes. It shares no memory with a longer reason, which would keep that alive.
func bounded(reason string) string {
	if len(reason) > MaxReason {
		reason = strings.Clone(cut(reason))
	}
	if utf8.ValidString(reason) {
		return reason
	}
	// A replacement rune is longer than the byte it replaces: cut again.
	return strings.Clone(cut(strings.ToValidUTF8(reason, string(utf8.RuneError))))
}

func cut(s string) string {
	if len(s) <= MaxReason {
		return s
	}
	n := MaxReason
	for back := 0; back < utf8.UTFMax && !utf8.RuneStart(s[n]); back++ {
		n--
	}
	return s[:n]
}
