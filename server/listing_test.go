package server_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// paged has n items of each of the four kinds.
func paged(t *testing.T, n, size int) *server.Server {
	s := plain(t, &server.Options{PageSize: size})
	for i := range n {
		addItems(s, fmt.Sprintf("i%02d", i))
	}
	return s
}

func addItems(s *server.Server, name string) {
	addNamed(s, name)
	server.MustAddPrompt(s, &mcp.Prompt{Name: name}, promptText(name))
	server.MustAddResource(s, &mcp.Resource{URI: "test://" + name, Name: name}, readText(name))
	server.MustAddResourceTemplate(s, &mcp.ResourceTemplate{URITemplate: "test://" + name + "/{x}", Name: name}, readText(name))
}

func removeItems(s *server.Server, name string) {
	s.RemoveTools(name)
	s.RemovePrompts(name)
	s.RemoveResources("test://" + name)
	s.RemoveResourceTemplates("test://" + name + "/{x}")
}

// fourLists are the four lists and what they call their items.
var fourLists = map[string]string{
	"tools/list": "tools", "prompts/list": "prompts", "resources/list": "resources", "resources/templates/list": "resourceTemplates",
}

func TestListsComeInPages(t *testing.T) {
	eachRevision(t, func() *server.Server { return paged(t, 7, 3) }, func(t *testing.T, p *peer) {
		for method, list := range fourLists {
			for range 2 { // made, then from the cache
				names, pages := p.every(method, list, "name")
				assert.Equal(t, []string{"i00", "i01", "i02", "i03", "i04", "i05", "i06"}, names, method)
				assert.Equal(t, 3, pages, method)
			}
		}
	})
}

func TestLastFullPageHasNoCursor(t *testing.T) {
	p := newPeer(t, paged(t, 6, 3), peerOptions{})
	for method, list := range fourLists {
		_, pages := p.every(method, list, "name")
		assert.Equal(t, 2, pages, method)
	}
}

func TestCursorsStayGoodWhenItemsComeAndGo(t *testing.T) {
	s := paged(t, 6, 3)
	p := newPeer(t, s, peerOptions{})
	cursors := map[string]any{}
	for method := range fourLists {
		cursors[method] = p.Get(method, nil)["nextCursor"]
	}
	removeItems(s, "i02") // the last item of the page that was read
	removeItems(s, "i04")
	addItems(s, "i000")
	addItems(s, "i035")
	for method, list := range fourLists {
		var names []any
		for _, item := range p.Get(method, M{"cursor": cursors[method]})[list].([]any) {
			names = append(names, item.(M)["name"])
		}
		assert.Equal(t, []any{"i03", "i035", "i05"}, names, method)
	}
}

func TestBadCursorsAreRefused(t *testing.T) {
	s := paged(t, 3, 2)
	encoded := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	for _, listers := range []bool{false, true} {
		if listers {
			s.MustAddResourceLister("l", func(context.Context, *servercontext.Request, string, int) ([]*mcp.Resource, string, error) {
				return nil, "", nil
			})
		}
		p := newPeer(t, s, peerOptions{})
		for method := range fourLists {
			for _, cursor := range []any{"", "x", "!", 7, true, M{}, []any{}, encoded("n:"), encoded("i00"), encoded("q:i00"), encoded("l:i00"), encoded("n:i00") + "="} {
				p.Refused(-32602, method, M{"cursor": cursor})
			}
			p.Get(method, M{"cursor": nil})
			p.Get(method, M{"cursor": encoded("n:i01")})
		}
	}
}

func TestListResultsOfTheStatelessEra(t *testing.T) {
	p := newPeer(t, paged(t, 3, 2), peerOptions{Version: "2026-07-28"})
	for method := range fourLists {
		page := p.Get(method, nil)
		assert.Equal(t, "complete", page["resultType"], method)
		assert.Equal(t, 0.0, page["ttlMs"], method)
		assert.Equal(t, "private", page["cacheScope"], method)
		assert.Contains(t, page["_meta"], "io.modelcontextprotocol/serverInfo", method)
	}
}

// numbers lists resources number:0 to number:n-1.
func numbers(n int, asked *[]string) server.ResourceLister {
	return func(_ context.Context, _ *servercontext.Request, after string, limit int) ([]*mcp.Resource, string, error) {
		*asked = append(*asked, after)
		from, _ := strconv.Atoi(after)
		var page []*mcp.Resource
		for i := from; i < n && len(page) < limit; i++ {
			page = append(page, &mcp.Resource{URI: fmt.Sprintf("number:%d", i), Name: fmt.Sprintf("n%d", i)})
		}
		if next := from + len(page); next < n {
			return page, strconv.Itoa(next), nil
		}
		return page, "", nil
	}
}

func TestListersFollowTheRegisteredResources(t *testing.T) {
	for size := 1; size <= 12; size++ {
		t.Run(strconv.Itoa(size), func(t *testing.T) {
			s := paged(t, 3, size)
			var asked []string
			s.MustAddResourceLister("b", numbers(2, &asked))
			s.MustAddResourceLister("a", numbers(4, &asked))
			s.MustAddResourceLister("c", numbers(0, &asked))
			names, _ := newPeer(t, s, peerOptions{}).every("resources/list", "resources", "name")
			assert.Equal(t, []string{"i00", "i01", "i02", "n0", "n1", "n2", "n3", "n0", "n1"}, names)
		})
	}
}

func TestListersComeAndGo(t *testing.T) {
	s := paged(t, 1, 2)
	var asked []string
	s.MustAddResourceLister("a", numbers(9, &asked))
	s.MustAddResourceLister("b", numbers(1, &asked))
	p := newPeer(t, s, peerOptions{})
	first := p.Get("resources/list", nil)
	s.RemoveResourceLister("a")
	s.RemoveResourceLister("unknown")
	second := p.Get("resources/list", M{"cursor": first["nextCursor"]})
	assert.Equal(t, []any{M{"uri": "number:0", "name": "n0"}}, second["resources"], "the list goes on with the next lister")
	assert.Equal(t, "", asked[len(asked)-1], "from its start")
	for _, err := range []error{s.AddResourceLister("", numbers(1, &asked)), s.AddResourceLister("x", nil), s.AddResourceLister("a\x00", numbers(1, &asked))} {
		assert.Error(t, err)
	}
}

func TestListersThatFail(t *testing.T) {
	for name, lister := range map[string]server.ResourceLister{
		"error": func(context.Context, *servercontext.Request, string, int) ([]*mcp.Resource, string, error) {
			return nil, "", errors.New("no")
		},
		"stands still": func(context.Context, *servercontext.Request, string, int) ([]*mcp.Resource, string, error) {
			return nil, "here", nil
		},
	} {
		s := plain(t, nil)
		s.MustAddResourceLister("l", lister)
		newPeer(t, s, peerOptions{}).Refused(-32603, "resources/list", nil)
		_ = name
	}
}

// Cursors that clients make up must not fill memory: only whole pages are kept,
// and others are still right.
func TestPagesFromMadeUpPositions(t *testing.T) {
	p := newPeer(t, paged(t, 20, 5), peerOptions{})
	for i := range 20 {
		cursor := base64.RawURLEncoding.EncodeToString([]byte(fmt.Sprintf("n:i%02d", i)))
		var names []string
		for _, item := range p.Get("tools/list", M{"cursor": cursor})["tools"].([]any) {
			names = append(names, item.(M)["name"].(string))
		}
		require.True(t, slices.IsSorted(names))
		require.Len(t, names, min(5, 19-i))
	}
}
