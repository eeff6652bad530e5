package conformance_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// faultPatience is short, since most faults are noticed at its end.
const faultPatience = 1500 * time.Millisecond

// The checks themselves, against a server with one fault at a time.
func TestClientChecksSeeFaults(t *testing.T) {
	byName := map[string]client{}
	for _, c := range clients(oldestOverStdio) {
		byName[c.name] = c
	}
	var visits []*visit
	var checks []string // of visits
	const v1, stateless, official, mcpGo = "typescript_v1", "typescript_v2_pinned", "go_sdk_handshake", "mcp_go_newest"
	for _, c := range []struct {
		fault  string
		client string
		check  string // the one that must fail
	}{
		{"deaf", v1, "cancel_wait"},
		{"deaf", stateless, "cancel_wait"},
		{"late-answer", v1, "cancel_ignore"},
		{"late-answer", stateless, "cancel_ignore"},
		{"late-error", v1, "cancel_error"},
		{"late-error", stateless, "cancel_panic"},
		{"lost-reason", v1, "cancel_poll"},
		{"lost-reason", stateless, "cancel_after_nested"},
		{"wrong-origin", v1, "cancel_wait"},
		{"cancels-all", v1, "cancel_one_of_many"},
		{"nested-left-alone", v1, "cancel_while_nested"},
		{"progress-stands-still", v1, "progress"},
		{"progress-stands-still", stateless, "progress"},
		{"stdout-noise", v1, "echo"},
		{"no-exit", v1, "close"},
		{"bad-exit", stateless, "close"},
		{"mangles-text", stateless, "echo"},
		{"missing-tool", v1, "list"},
		// The Go clients hide late answers even from their applications.
		{"deaf", official, "cancel_wait"},
		{"deaf", mcpGo, "cancel_error"},
		{"lost-reason", official, "cancel_poll"},
		{"wrong-origin", mcpGo, "cancel_panic"},
		{"cancels-all", official, "cancel_one_of_many"},
		{"nested-left-alone", official, "cancel_while_nested"},
		{"progress-stands-still", mcpGo, "progress"},
		{"no-exit", official, "close"},
		{"bad-exit", mcpGo, "close"},
		{"mangles-text", official, "echo"},
	} {
		who := byName[c.client]
		visits = append(visits, &visit{
			client: who,
			flags:  []string{"only=" + c.check, who.patience(faultPatience)},
			target: []string{"--", node(t), "testdata/faulty_server.mjs", c.fault},
		})
		checks = append(checks, c.check)
	}
	runAll(t, visits, clientsAtOnce)
	// Those whose patience was too short for a busy machine get more.
	for patience := 4 * faultPatience; patience < surely; patience *= 4 {
		var late []*visit
		for _, v := range visits {
			if v.failed("connect") {
				v.flags[1] = v.client.patience(patience)
				late = append(late, v)
			}
		}
		runAll(t, late, 1)
	}
	for i, v := range visits {
		fault, check := v.target[len(v.target)-1], checks[i]
		t.Run(fault+"/"+v.client.name+"/"+check, func(t *testing.T) {
			require.NoError(t, v.err)
			assert.Truef(t, v.failed(check), "%s is not noticed: %+v", fault, v.verdicts)
			assert.False(t, v.failed("connect"), "only the fault itself may be in the way")
		})
	}
}

// failed says that there is a verdict of the check, and that it is not good.
func (v *visit) failed(check string) bool {
	return slices.ContainsFunc(v.verdicts, func(verdict verdict) bool { return verdict.Check == check && !verdict.OK })
}

// Without a fault the same server passes, so that it is the fault which the
// checks see.
func TestClientChecksPassWithoutFault(t *testing.T) {
	var visits []*visit
	for _, c := range clients(oldestOverStdio) {
		visits = append(visits, &visit{client: c, flags: []string{c.patience(surely)}, target: []string{"--", node(t), "testdata/faulty_server.mjs"}})
	}
	runAll(t, visits, clientsAtOnce)
	for _, v := range visits {
		t.Run(v.client.name, v.judge)
	}
}
