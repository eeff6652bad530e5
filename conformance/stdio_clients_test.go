package conformance_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A client needs some five seconds, most of them waits of the fixture's tools.
const clientLimit = 3 * time.Minute

// checksPerClient is a lower bound: a script that checks next to nothing is
// no success.
const checksPerClient = 15

// The official TypeScript clients list, call, follow progress, answer nested
// requests, cancel and close over stdio, and report no error meanwhile.
func TestTypeScriptClientsOverStdio(t *testing.T) {
	server := everything(t)
	for _, client := range []struct {
		name   string
		era    string
		script []string
	}{
		{"v1", "handshake", []string{"clients/typescript_v1.mjs"}},
		{"v2_legacy", "handshake", []string{"clients/typescript_v2.mjs", "--mode=legacy"}},
		{"v2_pinned", "stateless", []string{"clients/typescript_v2.mjs", "--mode=pin"}},
		{"v2_negotiated", "stateless", []string{"clients/typescript_v2.mjs", "--mode=auto"}},
	} {
		t.Run(client.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), clientLimit)
			defer cancel()
			verdicts, stderr := runClient(ctx, t, append(client.script, "--", server, "stdio")...)
			for _, v := range verdicts {
				t.Run(v.Check, func(t *testing.T) {
					assert.Equal(t, client.era, v.Era)
					assert.True(t, v.OK, v.Error)
				})
			}
			require.GreaterOrEqual(t, len(verdicts), checksPerClient)
			assert.Equal(t, "quiet", verdicts[len(verdicts)-1].Check, "the script has not come to its end")
			if t.Failed() {
				t.Logf("stderr: %s", stderr)
			}
		})
	}
}

// The checks themselves, against a server with one fault at a time.
func TestClientChecksSeeFaults(t *testing.T) {
	v1 := []string{"clients/typescript_v1.mjs"}
	stateless := []string{"clients/typescript_v2.mjs", "--mode=pin"}
	for _, c := range []struct {
		fault  string
		script []string
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
	} {
		t.Run(c.fault+"/"+c.check, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), clientLimit)
			defer cancel()
			args := append(c.script[:len(c.script):len(c.script)],
				"--only="+c.check, "--patience=1500", "--", node(t), "testdata/faulty_server.mjs", c.fault)
			verdicts, _ := runClient(ctx, t, args...)
			failed := map[string]bool{}
			for _, v := range verdicts {
				failed[v.Check] = !v.OK
			}
			assert.Contains(t, failed, c.check)
			assert.Truef(t, failed[c.check], "%s is not noticed: %+v", c.fault, verdicts)
			assert.False(t, failed["connect"], "only the fault itself may be in the way")
		})
	}
}

// Without a fault the same server passes, so that it is the fault which the
// checks see.
func TestClientChecksPassWithoutFault(t *testing.T) {
	for _, script := range [][]string{
		{"clients/typescript_v1.mjs"},
		{"clients/typescript_v2.mjs", "--mode=legacy"},
		{"clients/typescript_v2.mjs", "--mode=pin"},
	} {
		t.Run(script[len(script)-1], func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), clientLimit)
			defer cancel()
			verdicts, _ := runClient(ctx, t, append(script, "--", node(t), "testdata/faulty_server.mjs")...)
			for _, v := range verdicts {
				assert.Truef(t, v.OK, "%s: %s", v.Check, v.Error)
			}
		})
	}
}
