package server_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func notFoundCode(p *peer) int {
	if p.atLeast("2026-07-28") {
		return -32602
	}
	return -32002
}

func TestResourceContents(t *testing.T) {
	eachRevision(t, func() *server.Server {
		s := plain(t, nil)
		server.MustAddResource(s, &mcp.Resource{URI: "test://text", Name: "text", MIMEType: "text/plain"}, readText("hi"))
		server.MustAddResource(s, &mcp.Resource{URI: "test://empty", Name: "empty"}, readText(""))
		server.MustAddResource(s, &mcp.Resource{URI: "test://bytes", Name: "bytes", MIMEType: "image/png"}, func(context.Context, *servercontext.Request, server.ReadIn) ([]byte, error) {
			return []byte{0xff, 0}, nil
		})
		server.MustAddResource(s, &mcp.Resource{URI: "test://none", Name: "none"}, func(context.Context, *servercontext.Request, server.ReadIn) ([]byte, error) {
			return nil, nil
		})
		server.MustAddResource(s, &mcp.Resource{URI: "test://one", Name: "one", MIMEType: "text/a"}, func(context.Context, *servercontext.Request, server.ReadIn) (*mcp.ResourceContents, error) {
			return &mcp.ResourceContents{Text: "1", MIMEType: "text/b", Meta: mcp.Meta{"com.example/a": 1}}, nil
		})
		server.MustAddResource(s, &mcp.Resource{URI: "test://several", Name: "several"}, func(context.Context, *servercontext.Request, server.ReadIn) ([]*mcp.ResourceContents, error) {
			return []*mcp.ResourceContents{{URI: "test://several/1", Text: "1"}, {Text: "2"}}, nil
		})
		s.MustAddResource(&mcp.Resource{URI: "test://whole", Name: "whole"}, func(context.Context, *servercontext.Request, server.ReadIn) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{}, nil
		})
		return s
	}, func(t *testing.T, p *peer) {
		read := func(uri string) []any { return p.Get("resources/read", M{"uri": uri})["contents"].([]any) }
		assert.Equal(t, []any{M{"uri": "test://text", "mimeType": "text/plain", "text": "hi"}}, read("test://text"))
		assert.Equal(t, []any{M{"uri": "test://empty", "text": ""}}, read("test://empty"), "without text the contents would be invalid")
		assert.Equal(t, []any{M{"uri": "test://bytes", "mimeType": "image/png", "blob": "/wA="}}, read("test://bytes"))
		assert.Equal(t, []any{M{"uri": "test://none", "blob": ""}}, read("test://none"))
		assert.Equal(t, []any{M{"uri": "test://several/1", "text": "1"}, M{"uri": "test://several", "text": "2"}}, read("test://several"))
		assert.Equal(t, []any{}, read("test://whole"), "an empty array, never null")
		one := read("test://one")[0].(M)
		assert.Equal(t, "text/b", one["mimeType"])
		assert.Equal(t, p.atLeast("2025-06-18"), one["_meta"] != nil)
	})
}

func TestResourceThatDoesNotExist(t *testing.T) {
	uris := []string{
		"test://unknown", "test://control/\x01\x1f\n\"\\", "test://%00", "no uri at all", "", "test://\u2028\U0001f600",
	}
	eachRevision(t, func() *server.Server {
		s := plain(t, nil)
		fails := map[string]error{
			"test://missing":  server.ResourceNotFound("test://missing"),
			"test://file":     fmt.Errorf("open: %w", fs.ErrNotExist),
			"test://official": mcp.ResourceNotFoundError("test://official"),
		}
		for uri, err := range fails {
			s.MustAddResource(&mcp.Resource{URI: uri, Name: "r"}, func(context.Context, *servercontext.Request, server.ReadIn) (*mcp.ReadResourceResult, error) {
				return nil, err
			})
		}
		s.MustAddResource(&mcp.Resource{URI: "test://nil", Name: "r"}, func(context.Context, *servercontext.Request, server.ReadIn) (*mcp.ReadResourceResult, error) {
			return nil, nil
		})
		s.MustAddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "control://{+x}", Name: "t"}, func(_ context.Context, _ *servercontext.Request, in server.ReadIn) (*mcp.ReadResourceResult, error) {
			return nil, mcp.ResourceNotFoundError(in.URI + "\x01")
		})
		return s
	}, func(t *testing.T, p *peer) {
		for _, uri := range append(uris, "test://missing", "test://file", "test://official", "test://nil", "control://x") {
			m := p.Refused(notFoundCode(p), "resources/read", M{"uri": uri})
			assert.Equal(t, uri, m.object(t, m.Error.Data)["uri"], "the data says which one")
		}
		for _, uri := range []any{nil, 7, []any{}} {
			p.Refused(-32602, "resources/read", M{"uri": uri})
		}
		p.Refused(-32602, "resources/read", M{})
	})
}

// A handler of the official SDK's may make an error whose data is no JSON: that
// must end neither the session nor the request.
func TestErrorDataThatIsNoJSONIsLeftOut(t *testing.T) {
	s := plain(t, nil)
	s.MustAddResource(&mcp.Resource{URI: "test://bad", Name: "bad"}, func(context.Context, *servercontext.Request, server.ReadIn) (*mcp.ReadResourceResult, error) {
		return nil, &sdkrpc.Error{Code: -31000, Message: "bad", Data: []byte("{\"uri\":\"\x01\"}")}
	})
	p := newPeer(t, s, peerOptions{})
	m := p.Refused(-31000, "resources/read", M{"uri": "test://bad"})
	assert.Empty(t, m.Error.Data)
	p.Get("ping", nil)
}

func TestResourceFailures(t *testing.T) {
	s := plain(t, nil)
	broken := map[string]func() (*mcp.ReadResourceResult, error){
		"error": func() (*mcp.ReadResourceResult, error) { return nil, errors.New("no") },
		"panic": func() (*mcp.ReadResourceResult, error) { panic("no") },
		"nil": func() (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{nil}}, nil
		},
	}
	for name, f := range broken {
		s.MustAddResource(&mcp.Resource{URI: "test:" + name, Name: name}, func(context.Context, *servercontext.Request, server.ReadIn) (*mcp.ReadResourceResult, error) {
			return f()
		})
	}
	p := newPeer(t, s, peerOptions{})
	for name := range broken {
		t.Run(name, func(t *testing.T) { p.Refused(-32603, "resources/read", M{"uri": "test:" + name}) })
	}
}

func TestResourceDefinitionInEveryRevision(t *testing.T) {
	zero := int64(0)
	least := 0.0
	eachRevision(t, func() *server.Server {
		s := plain(t, nil)
		server.MustAddResource(s, &mcp.Resource{
			URI: "test://a", Name: "a", Title: "A", Description: "d", MIMEType: "text/plain", Size: 12,
			Annotations: &mcp.Annotations{Audience: []mcp.Role{"user", "assistant"}, Priority: 1, LastModified: "2025-01-12T15:00:58Z"},
			Icons:       []mcp.Icon{{Source: "data:image/png;base64,AA==", Theme: "dark"}},
			Meta:        mcp.Meta{"com.example/x": "y"},
		}, readText("a"))
		server.MustAddResource(s, &mcp.Resource{URI: "test://b", Name: "b"}, readText(""), &server.ResourceOptions{Size: &zero, Priority: &least})
		server.MustAddResource(s, &mcp.Resource{URI: "test://c", Name: "c"}, readText(""))
		return s
	}, func(t *testing.T, p *peer) {
		listed := p.Get("resources/list", nil)["resources"].([]any)
		a := listed[0].(M)
		assert.Equal(t, 12.0, a["size"])
		assert.Equal(t, []any{"user", "assistant"}, at(t, a, "annotations", "audience"))
		assert.Equal(t, 1.0, at(t, a, "annotations", "priority"))
		assert.Equal(t, p.atLeast("2025-06-18"), at(t, a, "annotations", "lastModified") != nil)
		assert.Equal(t, p.atLeast("2025-06-18"), a["title"] != nil)
		assert.Equal(t, p.atLeast("2025-06-18"), a["_meta"] != nil)
		assert.Equal(t, p.atLeast("2025-11-25"), a["icons"] != nil)
		assert.Equal(t, M{"uri": "test://b", "name": "b", "size": 0.0, "annotations": M{"priority": 0.0}}, listed[1], "a zero that is meant is sent")
		assert.Equal(t, M{"uri": "test://c", "name": "c"}, listed[2], "a zero that is not meant is not")
	})
}

func TestResourceRegistrationErrors(t *testing.T) {
	s := plain(t, nil)
	ok := func(context.Context, *servercontext.Request, server.ReadIn) (*mcp.ReadResourceResult, error) {
		return nil, nil
	}
	negative, big := int64(-1), 1.5
	annotated := func(a *mcp.Annotations) error {
		return s.AddResource(&mcp.Resource{URI: "test://a", Name: "a", Annotations: a}, ok)
	}
	for name, err := range map[string]error{
		"nil resource":  s.AddResource(nil, ok),
		"nil handler":   s.AddResource(&mcp.Resource{URI: "test://a", Name: "a"}, nil),
		"no URI":        s.AddResource(&mcp.Resource{Name: "a"}, ok),
		"no name":       s.AddResource(&mcp.Resource{URI: "test://a"}, ok),
		"relative":      s.AddResource(&mcp.Resource{URI: "a/b", Name: "a"}, ok),
		"space":         s.AddResource(&mcp.Resource{URI: "test://a b", Name: "a"}, ok),
		"control":       s.AddResource(&mcp.Resource{URI: "test://a\x01", Name: "a"}, ok),
		"not ASCII":     s.AddResource(&mcp.Resource{URI: "test://ä", Name: "a"}, ok),
		"bad escape":    s.AddResource(&mcp.Resource{URI: "test://a/%zz", Name: "a"}, ok),
		"size":          s.AddResource(&mcp.Resource{URI: "test://a", Name: "a", Size: -1}, ok),
		"option size":   s.AddResource(&mcp.Resource{URI: "test://a", Name: "a"}, ok, &server.ResourceOptions{Size: &negative}),
		"priority":      annotated(&mcp.Annotations{Priority: 2}),
		"option":        s.AddResource(&mcp.Resource{URI: "test://a", Name: "a"}, ok, &server.ResourceOptions{Priority: &big}),
		"audience":      annotated(&mcp.Annotations{Audience: []mcp.Role{"all"}}),
		"last modified": annotated(&mcp.Annotations{LastModified: "yesterday"}),
	} {
		var r *server.RegistrationError
		assert.ErrorAs(t, err, &r, name)
	}
	for _, uri := range []string{"urn:isbn:1", "test://a?b=c#d", "file:///a%20b", "mailto:a@b"} {
		assert.NoError(t, s.AddResource(&mcp.Resource{URI: uri, Name: "a"}, ok), uri)
	}
}

func TestResourcesAreReplacedAndRemoved(t *testing.T) {
	s := plain(t, nil)
	server.MustAddResource(s, &mcp.Resource{URI: "test://a", Name: "a"}, readText("old"))
	server.MustAddResource(s, &mcp.Resource{URI: "test://a", Name: "a"}, readText("new"))
	p := newPeer(t, s, peerOptions{})
	assert.Equal(t, "new", at(t, p.Get("resources/read", M{"uri": "test://a"}), "contents", 0, "text"))
	s.RemoveResources("test://a", "test://unknown")
	p.Refused(-32002, "resources/read", M{"uri": "test://a"})
	assert.Equal(t, []any{}, p.Get("resources/list", nil)["resources"])
}

func TestResourceOptionsDoNotStickToMiddlewareCopies(t *testing.T) {
	s := plain(t, nil)
	zero := int64(0)
	server.MustAddResource(s, &mcp.Resource{URI: "test://a", Name: "a"}, readText(""), &server.ResourceOptions{Size: &zero})
	s.Use(func(next server.Handler) server.Handler {
		return func(ctx context.Context, req *servercontext.Request) (any, error) {
			result, err := next(ctx, req)
			if list, ok := result.(*mcp.ListResourcesResult); ok {
				changed := *list
				changed.Resources = append([]*mcp.Resource{{URI: "test://a", Name: "mine"}}, list.Resources...)
				return &changed, nil
			}
			return result, err
		}
	})
	p := newPeer(t, s, peerOptions{})
	for range 2 {
		listed := p.Get("resources/list", nil)["resources"].([]any)
		require.Len(t, listed, 2)
		assert.Equal(t, M{"uri": "test://a", "name": "mine"}, listed[0])
		assert.Equal(t, M{"uri": "test://a", "name": "a", "size": 0.0}, listed[1])
	}
}
