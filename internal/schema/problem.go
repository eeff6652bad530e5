package schema

import (
	"strconv"
	"strings"
)

// Problem is one thing wrong with a value.
type Problem struct {
	// Path names the part, like items[2].name or headers["x y"]; "" is the whole value.
	Path string
	// Message says what was expected, like `must be one of "a", "b"`. It is one bounded line, with text from
	// the value quoted and cut.
	Message string
}

// String is the path and the message.
func (p *Problem) String() string {
	if p.Path == "" {
		return "the value " + p.Message
	}
	return p.Path + " " + p.Message
}

// ValidationError is returned when a value does not conform to a schema or cannot be decoded. Problems is never
// empty, holds at most 200 and is ordered by path.
type ValidationError struct {
	Problems []Problem
}

const (
	maxProblems   = 10   // shown by Error
	maxErrorBytes = 2000 // of Error
)

// Error is one bounded line that a model can act on: every field that is wrong with what was expected.
func (e *ValidationError) Error() string {
	var b strings.Builder
	for i := range e.Problems {
		text := e.Problems[i].String()
		if i == maxProblems || b.Len()+len(text) > maxErrorBytes && i > 0 {
			b.WriteString("; and " + strconv.Itoa(len(e.Problems)-i) + " more")
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(clip(text, maxErrorBytes))
	}
	return b.String()
}

func problem(path, message string) *ValidationError {
	return &ValidationError{Problems: []Problem{{Path: path, Message: message}}}
}
