package conformance_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// keepAlive is how often the server sends a comment on a silent stream.
const keepAlive = 15 * time.Second

// A call is slow enough to tell what is passed on from what is held back: nginx's
// buffer of 4 KiB holds some thirty reports.
const (
	slowSteps  = 1000
	slowStepMS = 800
	slowTries  = 5  // a busy machine may be too slow once
	slowLast   = 20 // the step at which a call that is dropped after its second report has stopped
)

// proxies are ways to configure nginx. Nothing is said about buffering: it is on. The Host
// header stays nginx's own, the server's address.
var proxies = map[string]string{
	"nothing but proxy_pass": ``,
	"with keep-alive":        `proxy_http_version 1.1; proxy_set_header Connection "";`,
}

// Behind nginx with its default buffering progress arrives as it is sent, and a client that drops its
// response cancels the call.
func TestBehindNginx(t *testing.T) {
	nginx := need(t, "nginx", "apt-get install nginx-light")
	upstream := serveEverything(t)
	direct := newPeer(t, upstream)
	for name, directives := range proxies {
		front := startNginx(t, nginx, upstream, directives)
		t.Run(name, func(t *testing.T) {
			t.Run("stateless", func(t *testing.T) {
				p := newPeer(t, front)
				inTime(t, "the reports were held back", func() bool {
					e := dropAfterTwoReports(t, p, direct)
					assert.Equal(t, "disconnect", e.Origin)
					return e.Step <= slowLast
				})
				inTime(t, "the headers were held back until a comment came", func() bool {
					tag := fmt.Sprintf("silent-%d", direct.next())
					ctx, drop := context.WithCancel(t.Context())
					begin := time.Now()
					response, err := p.post(ctx, p.tool("cancel_wait", M{"tag": tag}))
					require.NoError(t, err)
					took := time.Since(begin)
					drop()
					drain(response)
					assert.Equal(t, "disconnect", direct.event(t, tag, "observed", surely).Origin)
					return took < keepAlive-time.Second
				})
			})
			t.Run("handshake", func(t *testing.T) {
				p := newPeer(t, front).initialize(t)
				inTime(t, "the reports were held back", func() bool {
					e := cancelAfterTwoReports(t, p, direct)
					assert.Equal(t, "peer", e.Origin)
					return e.Step <= slowLast
				})
			})
		})
	}
}

// dropAfterTwoReports makes a call, drops it after two progress reports, and returns how it stopped.
func dropAfterTwoReports(t *testing.T, p, direct *peer) fixtureEvent {
	t.Helper()
	tag := fmt.Sprintf("dropped-%d", direct.next())
	ctx, drop := context.WithCancel(t.Context())
	defer drop()
	response, err := p.post(ctx, p.tool("cancel_poll", M{"tag": tag, "steps": slowSteps, "step_ms": slowStepMS}))
	require.NoError(t, err)
	defer drain(response)
	next, stop := reports(t, response)
	defer stop()
	require.Equal(t, []float64{1, 2}, []float64{next(), next()})
	drop()
	return direct.event(t, tag, "stopped", surely)
}

// cancelAfterTwoReports makes a call, cancels it after two progress reports, and returns how it
// stopped. Its stream ends then.
func cancelAfterTwoReports(t *testing.T, p, direct *peer) fixtureEvent {
	t.Helper()
	tag := fmt.Sprintf("cancelled-%d", direct.next())
	call := p.tool("cancel_poll", M{"tag": tag, "steps": slowSteps, "step_ms": slowStepMS})
	response, err := p.post(t.Context(), call)
	require.NoError(t, err)
	defer drain(response)
	next, stop := reports(t, response)
	defer stop()
	require.Equal(t, []float64{1, 2}, []float64{next(), next()})
	p.notify(t, "notifications/cancelled", M{"requestId": call["id"], "reason": "enough"})
	e := direct.event(t, tag, "stopped", surely)
	for more := next(); more != 0; more = next() {
		assert.LessOrEqual(t, more, float64(e.Step), "the stream ends")
	}
	return e
}

// inTime tries something until it is in time.
func inTime(t *testing.T, late string, try func() bool) {
	t.Helper()
	for n := 1; !try(); n++ {
		require.Less(t, n, slowTries, late)
	}
}

// reports returns a function that waits for the next progress report of a response; it returns 0 at
// the response's end.
func reports(t *testing.T, response *http.Response) (next func() float64, stop func()) {
	pull, stop := pullLines(response)
	return func() float64 {
		for {
			line, ok := pull()
			if !ok {
				return 0
			}
			var m struct {
				Method string
				Params struct{ Progress float64 }
			}
			require.NoError(t, json.Unmarshal([]byte(line), &m), line)
			if m.Method == "notifications/progress" {
				return m.Params.Progress
			}
		}
	}, stop
}

// startNginx starts nginx in front of a server and returns the URL there.
func startNginx(t *testing.T, nginx, upstream, directives string) string {
	t.Helper()
	dir := t.TempDir()
	target, err := url.Parse(upstream)
	require.NoError(t, err)
	address := freeAddress(t)
	var temporary strings.Builder
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&temporary, "\t%s_temp_path %s;\n", kind, filepath.Join(dir, kind))
	}
	config := filepath.Join(dir, "nginx.conf")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `daemon off;
master_process off;
pid %[1]s/nginx.pid;
error_log stderr warn;
events {}
http {
	access_log off;
%[2]s	server {
		listen %[3]s;
		location / {
			proxy_pass http://%[4]s;
			%[5]s
		}
	}
}
`, dir, &temporary, address, target.Host, directives), 0o600))
	var log strings.Builder
	command := exec.Command(nginx, "-p", dir, "-e", "stderr", "-c", config)
	command.Stderr = &log
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		assert.NoError(t, command.Process.Signal(os.Interrupt))
		assert.NoError(t, command.Wait(), "nginx's log:\n%s", &log)
	})
	awaitListener(t, address)
	return "http://" + address + target.Path
}

// freeAddress is a loopback address that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	return listener.Addr().String()
}

// awaitListener waits until somebody listens.
func awaitListener(t *testing.T, address string) {
	t.Helper()
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}, surely, 20*time.Millisecond, "nobody listens on %s", address)
}
