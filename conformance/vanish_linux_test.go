package conformance_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// noticedWithin is the bound of the server's defaults, a comment each 15 s and 30 s for the system to
// give up on it, and some time for a busy machine.
const noticedWithin = 15*time.Second + 30*time.Second + time.Minute

// A client that is gone without a word, as when its power or its network is cut, is noticed
// within the keep-alive bound. The server's calls for it are cancelled then, without a session;
// with one they are not, since it may come back.
func TestClientThatVanishes(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	const address = "10.111.0.1:8080"
	n.serve(t, "0.0.0.0:8080")
	n.await(t, "127.0.0.1:8080")
	near := n.peer(t, n.server, "http://127.0.0.1:8080/mcp")
	far := n.peer(t, n.client, "http://"+address+"/mcp")
	session := far.initialize(t)
	// This one goes without saying goodbye, too.
	t.Cleanup(func() { session.url = near.url; session.http = near.http })

	tags := map[string]*peer{"silent": far, "listening": far, "in-session": session}
	for tag, p := range tags {
		m := p.tool("cancel_wait", M{"tag": tag, "ms": 600_000})
		if tag == "listening" {
			m = p.request("subscriptions/listen", M{"notifications": M{"toolsListChanged": true}})
		}
		response, err := p.post(context.Background(), m)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, response.StatusCode)
		// Only the client's side knows that this is closed: nothing gets out any more by then.
		t.Cleanup(func() { _ = response.Body.Close() })
	}
	before := n.established(t)
	require.GreaterOrEqual(t, before, len(tags), "connections from afar")
	near.event(t, "silent", "started", surely)
	near.event(t, "in-session", "started", surely)

	begin := time.Now()
	n.cut(t)
	e := near.event(t, "silent", "observed", noticedWithin)
	assert.Equal(t, "disconnect", e.Origin)
	t.Logf("noticed after %v", time.Unix(0, e.AtNS).Sub(begin).Round(time.Millisecond))
	require.Eventually(t, func() bool { return n.established(t) == 0 }, noticedWithin, 100*time.Millisecond,
		"the connections, that of the subscription included, are given up")
	assert.Len(t, near.events(t, "in-session"), 1, "it may be resumed")
	near.notifyIn(t, session.session, "notifications/cancelled", M{"requestId": session.lastID.Load()})
}

// network is two hosts on one wire: namespaces with a pair of virtual interfaces.
type network struct {
	ip             string
	server, client string // names of the namespaces
}

var networks atomic.Int32

func newNetwork(t *testing.T) *network {
	t.Helper()
	ip := need(t, "ip", "apt-get install iproute2")
	if os.Getuid() != 0 {
		cannot(t, "only root can make network namespaces")
	}
	id := fmt.Sprintf("heed%d-%d", os.Getpid(), networks.Add(1))
	n := &network{ip: ip, server: id + "s", client: id + "c"}
	for _, name := range []string{n.server, n.client} {
		if output, err := exec.Command(ip, "netns", "add", name).CombinedOutput(); err != nil {
			cannot(t, fmt.Sprintf("this machine has no network namespaces: %v: %s", err, output))
		}
		t.Cleanup(func() { n.run(t, "netns", "del", name) })
	}
	n.run(t, "-n", n.server, "link", "add", "wire", "type", "veth", "peer", "name", "wire", "netns", n.client)
	for name, address := range map[string]string{n.server: "10.111.0.1/24", n.client: "10.111.0.2/24"} {
		n.run(t, "-n", name, "link", "set", "lo", "up")
		n.run(t, "-n", name, "addr", "add", address, "dev", "wire")
		n.run(t, "-n", name, "link", "set", "wire", "up")
	}
	return n
}

func (n *network) run(t *testing.T, args ...string) string {
	t.Helper()
	output, err := exec.Command(n.ip, args...).CombinedOutput()
	require.NoErrorf(t, err, "ip %s: %s", strings.Join(args, " "), output)
	return string(output)
}

// cut takes the client's address away: whatever is sent to it is lost, and it can send nothing.
func (n *network) cut(t *testing.T) {
	t.Helper()
	n.run(t, "-n", n.client, "addr", "flush", "dev", "wire")
}

// serve runs the fixture server on its host.
func (n *network) serve(t *testing.T, address string) {
	t.Helper()
	var log strings.Builder
	command := exec.Command(n.ip, "netns", "exec", n.server, everything(t), "http", "-addr", address)
	command.Stderr = &log
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		assert.NoError(t, command.Process.Signal(os.Interrupt))
		assert.NoError(t, command.Wait(), "the server's log:\n%s", &log)
	})
}

func (n *network) await(t *testing.T, address string) {
	t.Helper()
	require.Eventually(t, func() bool {
		c, err := n.dial(t.Context(), n.server, address)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}, surely, 20*time.Millisecond, "the server does not listen on %s", address)
}

// peer returns a peer of the stateless era that is at home in a namespace.
func (n *network) peer(t *testing.T, namespace, url string) *peer {
	p := newPeer(t, url)
	p.http.Transport.(*http.Transport).DialContext = func(ctx context.Context, _, address string) (net.Conn, error) {
		return n.dial(ctx, namespace, address)
	}
	return p
}

// dial connects from within a namespace. A socket stays in the one that it was made in.
func (n *network) dial(ctx context.Context, namespace, address string) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this goroutine
		handle, err := os.Open("/run/netns/" + namespace)
		if err == nil {
			defer func() { _ = handle.Close() }()
			err = unix.Setns(int(handle.Fd()), unix.CLONE_NEWNET)
		}
		if err != nil {
			done <- result{nil, err}
			return
		}
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, "tcp4", address)
		done <- result{conn, err}
	}()
	r := <-done
	return r.conn, r.err
}

// established counts the server's connections from afar.
func (n *network) established(t *testing.T) int {
	t.Helper()
	handle, err := exec.Command(n.ip, "netns", "exec", n.server, "cat", "/proc/net/tcp", "/proc/net/tcp6").Output()
	require.NoError(t, err)
	count := 0
	for line := range strings.Lines(string(handle)) {
		fields := strings.Fields(line)
		if len(fields) > 3 && strings.HasSuffix(fields[2][:max(0, strings.LastIndexByte(fields[2], ':'))], "02006F0A") && fields[3] == "01" {
			count++
		}
	}
	return count
}
