package streamable

import (
	"context"
	"crypto/tls"
	"net"
)

// ConnContext is for the ConnContext field of an http.Server. It has the system give
// a connection up on which nothing that was sent is acknowledged for twice the
// keep-alive interval of 15 s, so that a client that has vanished without a word is noticed,
// and its requests are cancelled, soon after a keep-alive comment to it. Where the
// system cannot do that, which is anywhere but on Linux, a write has to time out
// first. It returns ctx.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	if t, ok := c.(*net.TCPConn); ok {
		giveUpAfter(t, 2*defaultKeepAlive)
	}
	return ctx
}
