package transporttest

import (
	"fmt"
	"time"

	"github.com/heedmcp/heed/transport/transporttest/wire"
)

// Status is how a rule came out.
type Status uint8

const (
	Pass  Status = iota // the server keeps the rule
	Fail                // it breaks it
	Skip                // that cannot be judged here
	Error               // it could not be found out
)

func (s Status) String() string { return [...]string{"pass", "fail", "skip", "error"}[s] }

// MarshalText is the status in words.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Verdict is what came out of one rule in one setting.
type Verdict struct {
	Rule    Rule
	Setting Setting
	Status  Status
	Reason  string        // why it is not Pass
	Took    time.Duration // on the clock
	Wire    []wire.Entry  // what was sent and received, in order
}

// maxEvidence is how many lines of evidence there are at most.
const maxEvidence = 24

// Evidence is what was sent and received, a line each, without the messages that only
// find out what has happened. The middle of a long exchange is left out.
func (v Verdict) Evidence() []string {
	var lines []string
	for _, e := range v.Wire {
		if !e.Control && !isControlAnswer(e.Message) {
			lines = append(lines, e.String())
		}
	}
	if over := len(lines) - maxEvidence; over > 0 {
		head := lines[:maxEvidence/2]
		tail := lines[len(lines)-maxEvidence/2:]
		lines = append(append(append([]string(nil), head...), fmt.Sprintf("… %d more", over)), tail...)
	}
	return lines
}
