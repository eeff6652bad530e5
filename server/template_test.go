package server_test

import (
	"context"
	"strings"
	"testing"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
)

// readVariables is the handler of a template that returns what it was given.
func readVariables(name string) func(context.Context, *servercontext.Request, server.ReadIn) (string, error) {
	return func(_ context.Context, _ *servercontext.Request, in server.ReadIn) (string, error) {
		text := name
		for _, v := range []string{"id", "path", "a", "b", "limit"} {
			if values, ok := in.Variables[v]; ok {
				text += " " + v + "=" + strings.Join(values, "|")
			}
		}
		return text, nil
	}
}

func addTemplate(s *server.Server, template string) {
	server.MustAddResourceTemplate(s, &mcp.ResourceTemplate{URITemplate: template, Name: "t", MIMEType: "text/plain"}, readVariables(template))
}

func TestTemplateVariablesReachTheHandler(t *testing.T) {
	s := plain(t, nil)
	for _, template := range []string{
		"test://one/{id}/data", "test://many{/path*}", "test://reserved/{+path}", "test://query/{id}{?limit}", "test://two/{a},{b}",
	} {
		addTemplate(s, template)
	}
	p := newPeer(t, s, peerOptions{})
	for uri, want := range map[string]string{
		"test://one/123/data":        "test://one/{id}/data id=123",
		"test://one/a%20b%2Fc/data":  "test://one/{id}/data id=a b/c",
		"test://one//data":           "test://one/{id}/data id=",
		"test://many/a/b/c":          "test://many{/path*} path=a|b|c",
		"test://reserved/a/b?c#d":    "test://reserved/{+path} path=a/b?c#d",
		"test://query/x":             "test://query/{id}{?limit} id=x",
		"test://query/x?limit=3":     "test://query/{id}{?limit} id=x limit=3",
		"test://two/1,2":             "test://two/{a},{b} a=1 b=2",
		"test://reserved/%E2%82%AC+": "test://reserved/{+path} path=€+",
	} {
		contents := at(t, p.Get("resources/read", M{"uri": uri}), "contents", 0).(M)
		assert.Equal(t, M{"uri": uri, "mimeType": "text/plain", "text": want}, contents, uri)
	}
	for _, uri := range []string{"test://one/1/2/data", "test://one/1/dat", "xtest://one/1/data", "test://one/\x01/data", "test://one/ü/data"} {
		p.Refused(-32002, "resources/read", M{"uri": uri})
	}
	p.Refused(-32602, "resources/read", M{"uri": "test://reserved/" + strings.Repeat("a", 9000)})
}

// Each of these URIs is short enough, and would keep the engine busy for seconds.
func TestTemplateMatchingIsBounded(t *testing.T) {
	s := plain(t, nil)
	for _, template := range []string{"path://x{/path*}", "dots://x{.path*}", "query://x{?a*}{&b*}", "matrix://x{;path*}", "list://{path}/{+b}", "plus://{+path*}"} {
		addTemplate(s, template)
	}
	p := newPeer(t, s, peerOptions{})
	for head, segment := range map[string]string{"path://x": "/a", "dots://x": ".a", "list://": "a,", "plus://": "a,", "matrix://x": ";path=a"} {
		tail := ""
		if head == "list://" {
			tail = "/b"
		}
		p.Get("resources/read", M{"uri": head + strings.Repeat(segment, 60) + tail})
		p.Refused(-32002, "resources/read", M{"uri": head + strings.Repeat(segment, 8000/len(segment)) + tail})
	}
	p.Refused(-32002, "resources/read", M{"uri": "query://x?a=1" + strings.Repeat("&a=1", 1500)})
	// What separates no values is not counted.
	addTemplate(s, "file://{+path}")
	p.Get("resources/read", M{"uri": "file://" + strings.Repeat("a/b.c;d&", 900)})
}

// Nor do many variables, or long prefixes, keep it busy. What is as long as the URIs of such templates usually are is matched.
func TestTemplateMatchingOfManyVariablesIsBounded(t *testing.T) {
	for template, uris := range map[string][2]string{ // the template → what it matches, what would take too long
		"x://{a}{b}{c}{d}{e}{f}":        {"x://" + strings.Repeat("a", 8000), ""},
		"x://{?a,b,c,d,e,f,g,h,i,j}":    {"x://?a=1&j=" + strings.Repeat("a", 3000), "x://?a=1&j=" + strings.Repeat("a", 8000)},
		"x://{/a*}{/b*}{/c*}{/d*}{/e*}": {"x://" + strings.Repeat("/a", 60), "x://" + strings.Repeat("/a", 60) + strings.Repeat("a", 7000)},
		"x://{+a*}{+b*}{+c*}{+d*}{+e*}": {"x://" + strings.Repeat("a,", 60), "x://" + strings.Repeat("a,", 60) + strings.Repeat("a", 7000)},
		"x://{a:3}{b:300}":              {"x://" + strings.Repeat("a", 303), "x://" + strings.Repeat("a", 2000)},
		"x://{id:9999}":                 {"x://12345", "x://" + strings.Repeat("a", 5000)},
		"x://{+a}/{+b}/{+c}":            {"x://" + strings.Repeat("a/", 4000), ""},
		"x://{+path}":                   {"x://" + strings.Repeat("a/", 4000), ""},
	} {
		s := plain(t, nil)
		addTemplate(s, template)
		p := newPeer(t, s, peerOptions{})
		p.Get("resources/read", M{"uri": uris[0]})
		if uris[1] != "" {
			p.Refused(-32002, "resources/read", M{"uri": uris[1]})
		}
	}
}

func TestTemplateOrder(t *testing.T) {
	s := plain(t, nil)
	for _, template := range []string{"test://{+path}", "test://a/{id}", "test://a/{id}/b", "test://a/{+path}"} {
		addTemplate(s, template)
	}
	server.MustAddResource(s, &mcp.Resource{URI: "test://a/exact", Name: "r"}, readText("resource"))
	p := newPeer(t, s, peerOptions{})
	for uri, want := range map[string]string{
		"test://a/exact": "resource",
		"test://a/1/b":   "test://a/{id}/b id=1",
		"test://a/1/c":   "test://a/{+path} path=1/c",
		"test://z":       "test://{+path} path=z",
	} {
		assert.Equal(t, want, at(t, p.Get("resources/read", M{"uri": uri}), "contents", 0, "text"), uri)
	}
}

func TestTemplateDefinitionInEveryRevision(t *testing.T) {
	eachRevision(t, func() *server.Server {
		s := plain(t, nil)
		least := 0.0
		server.MustAddResourceTemplate(s, &mcp.ResourceTemplate{
			URITemplate: "test://{id}", Name: "t", Title: "T", Description: "d", MIMEType: "text/plain",
			Annotations: &mcp.Annotations{Priority: 0.5, LastModified: "2025-01-12T15:00:58Z"},
			Icons:       []mcp.Icon{{Source: "https://example.com/i.svg"}},
			Meta:        mcp.Meta{"com.example/x": "y"},
		}, readText(""), &server.ResourceOptions{Priority: &least})
		return s
	}, func(t *testing.T, p *peer) {
		listed := at(t, p.Get("resources/templates/list", nil), "resourceTemplates", 0).(M)
		assert.Equal(t, "test://{id}", listed["uriTemplate"])
		assert.Equal(t, 0.0, at(t, listed, "annotations", "priority"))
		assert.Equal(t, p.atLeast("2025-06-18"), at(t, listed, "annotations", "lastModified") != nil)
		assert.Equal(t, p.atLeast("2025-06-18"), listed["title"] != nil)
		assert.Equal(t, p.atLeast("2025-06-18"), listed["_meta"] != nil)
		assert.Equal(t, p.atLeast("2025-11-25"), listed["icons"] != nil)
	})
}

func TestTemplateRegistrationErrors(t *testing.T) {
	s := plain(t, nil)
	ok := func(context.Context, *servercontext.Request, server.ReadIn) (*mcp.ReadResourceResult, error) {
		return nil, nil
	}
	size := int64(1)
	for name, err := range map[string]error{
		"nil template": s.AddResourceTemplate(nil, ok),
		"nil handler":  s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "test://{a}", Name: "t"}, nil),
		"empty":        s.AddResourceTemplate(&mcp.ResourceTemplate{Name: "t"}, ok),
		"no name":      s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "test://{a}"}, ok),
		"unclosed":     s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "test://{a", Name: "t"}, ok),
		"bad name":     s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "test://{a b}", Name: "t"}, ok),
		"size":         s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "test://{a}", Name: "t"}, ok, &server.ResourceOptions{Size: &size}),
		"icon":         s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "test://{a}", Name: "t", Icons: []mcp.Icon{{Source: "http://x/i"}}}, ok),
	} {
		var r *server.RegistrationError
		assert.ErrorAs(t, err, &r, name)
	}
	newPeer(t, s, peerOptions{}).Refused(-32601, "resources/templates/list", nil)
}

func TestTemplatesAreRemoved(t *testing.T) {
	s := plain(t, nil)
	addTemplate(s, "test://{id}")
	p := newPeer(t, s, peerOptions{})
	p.Get("resources/read", M{"uri": "test://1"})
	s.RemoveResourceTemplates("test://{id}", "unknown")
	p.Refused(-32002, "resources/read", M{"uri": "test://1"})
	assert.Equal(t, []any{}, p.Get("resources/templates/list", nil)["resourceTemplates"])
}
