package server_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
)

var levels = []mcp.LoggingLevel{
	servercontext.LevelDebug, servercontext.LevelInfo, servercontext.LevelNotice, servercontext.LevelWarning,
	servercontext.LevelError, servercontext.LevelCritical, servercontext.LevelAlert, servercontext.LevelEmergency,
}

// logging has a tool that logs once at every level, and one at a level that does not exist.
func logging(t *testing.T, o *server.Options) *server.Server {
	s := plain(t, o)
	server.MustAddTool(s, &mcp.Tool{Name: "log"}, func(_ context.Context, req *servercontext.Request, _ struct{}) (string, error) {
		for _, l := range levels {
			req.Log(l, M{"at": l})
		}
		req.Log("loud", "never sent")
		return "", nil
	})
	server.MustAddTool(s, &mcp.Tool{Name: "slog"}, func(_ context.Context, req *servercontext.Request, _ struct{}) (string, error) {
		l := req.Logger("db").With("shard", 3).WithGroup("query")
		l.Warn("slow", "took", 1500*time.Millisecond, slog.Group("rows", "read", 7), "err", errors.New("late"))
		l.Log(context.Background(), mcp.LevelEmergency, "down")
		l.Debug("quiet")
		return "", nil
	})
	return s
}

func (p *peer) logged(tool string, meta M) (sent []*message) {
	before := len(p.Sent("notifications/message"))
	params := M{"name": tool}
	if meta != nil {
		params["_meta"] = meta
	}
	p.Get("tools/call", params)
	return p.Sent("notifications/message")[before:]
}

func TestLogLevelsOfASession(t *testing.T) {
	for _, version := range server.Versions()[1:] {
		s := logging(t, nil)
		p, other := newPeer(t, s, peerOptions{Version: version}), newPeer(t, s, peerOptions{Version: version})
		assert.Empty(t, p.logged("log", nil), "nobody asked for it")
		for i, least := range levels {
			assert.Equal(t, M{}, p.Get("logging/setLevel", M{"level": least}))
			sent := p.logged("log", nil)
			assert.Len(t, sent, len(levels)-i)
			assert.Equal(t, string(least), sent[0].Param("level"))
			assert.Equal(t, M{"at": string(least)}, sent[0].Param("data"))
			assert.NotEmpty(t, sent[0].On, "on the stream of the request")
		}
		assert.Empty(t, other.logged("log", nil), "the other session did not ask")
		for _, bad := range []any{"loud", "", "DEBUG", 7, nil} {
			p.Refused(-32602, "logging/setLevel", M{"level": bad})
		}
		p.Refused(-32602, "logging/setLevel", M{})
	}
}

func TestLogLevelOfARequest(t *testing.T) {
	p := newPeer(t, logging(t, nil), peerOptions{Version: "2026-07-28"})
	assert.Empty(t, p.logged("log", nil), "without a level nothing may be sent")
	assert.Len(t, p.logged("log", M{mcp.MetaKeyLogLevel: "error"}), 4)
	assert.Empty(t, p.logged("log", nil), "a level is of its request alone")
	for _, bad := range []any{"loud", 7, "", nil} {
		p.Refused(-32602, "tools/call", M{"name": "log", "_meta": M{mcp.MetaKeyLogLevel: bad}})
	}
}

func TestLogNeedsTheCapability(t *testing.T) {
	s := logging(t, &server.Options{NoLogging: true})
	p := newPeer(t, s, peerOptions{})
	p.Refused(-32601, "logging/setLevel", M{"level": "debug"})
	stateless := newPeer(t, s, peerOptions{Version: "2026-07-28"})
	assert.Empty(t, stateless.logged("log", M{mcp.MetaKeyLogLevel: "debug"}))
}

func TestLoggerBridgesSlog(t *testing.T) {
	p := newPeer(t, logging(t, nil), peerOptions{})
	p.Get("logging/setLevel", M{"level": "info"})
	sent := p.logged("slog", nil)
	assert.Len(t, sent, 2)
	assert.Equal(t, "warning", sent[0].Param("level"))
	assert.Equal(t, "db", sent[0].Param("logger"))
	assert.Equal(t, M{
		"msg": "slow", "shard": 3.0,
		"query": M{"took": "1.5s", "rows": M{"read": 7.0}, "err": "late"},
	}, sent[0].Param("data"))
	assert.Equal(t, "emergency", sent[1].Param("level"))
}
