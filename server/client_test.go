package server_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// What clients said of themselves is kept once for all that said the same, and mixed up
// for none.
func TestClientsAreWhoTheySaidTheyAre(t *testing.T) {
	s := server.New(&mcp.Implementation{Name: "clients", Version: "1"}, nil)
	type seen struct {
		info         *mcp.Implementation
		capabilities *mcp.ClientCapabilities
	}
	var last seen
	server.MustAddMethod(s, "test/who", func(_ context.Context, req *servercontext.Request, _ struct{}) (struct{}, error) {
		last = seen{req.ClientInfo(), req.ClientCapabilities()}
		return struct{}{}, nil
	})
	who := func(params string) seen {
		answers := make(chan string, 1)
		ss := s.Open(t.Context(), server.SessionOptions{})
		defer ss.Close(0, "")
		send := func(text string) string {
			ss.Receive([]byte(text), keep(answers), nil, func(c *server.Call) { c.Run() })
			return <-answers
		}
		require.NotContains(t, send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"`+params+`}}`), `"error"`)
		require.NotContains(t, send(`{"jsonrpc":"2.0","id":2,"method":"test/who"}`), `"error"`)
		return last
	}
	const info = `,"clientInfo":{"name":"one","version":"1"}`
	one := who(info + `,"capabilities":{"sampling":{}}`)
	require.Equal(t, "one", one.info.Name)
	require.NotNil(t, one.capabilities.Sampling)
	again := who(info + `,"capabilities":{"sampling":{}}`)
	require.Same(t, one.info, again.info)
	require.Same(t, one.capabilities, again.capabilities)

	other := who(info + `,"capabilities":{"elicitation":{}}`)
	require.Nil(t, other.capabilities.Sampling)
	require.NotNil(t, other.capabilities.Elicitation)

	// The same text in the other place is another client.
	require.Nil(t, who(`,"capabilities":{"name":"one","version":"1"}`).info)
	require.Equal(t, "one", who(`,"clientInfo":{"name":"one","version":"1"},"capabilities":{}`).info.Name)

	// Neither many nor long introductions are kept for ever, and all are right.
	for i := range 200 {
		name := fmt.Sprintf("client-%d", i)
		if i%10 == 0 {
			name += strings.Repeat("x", 5000)
		}
		require.Equal(t, name, who(`,"capabilities":{},"clientInfo":{"name":"`+name+`","version":"1"}`).info.Name)
	}
}

// keep is a Reply that hands its answer over.
type keep chan string

func (k keep) Send([]byte) error        { return nil }
func (k keep) Answer(msg []byte, _ int) { k <- string(msg) }
func (k keep) Silence()                 {}
