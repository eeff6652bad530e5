package skills_test

import (
	"encoding/json"
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/skills"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// M is a JSON object of a test.
type M = map[string]any

// client asks a server of the stateless era, one request after the other, and declares no
// capability.
type client struct {
	t *testing.T
	s *server.Server
}

type answer struct {
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
}

// capture is the reply to one request.
type capture struct{ answered []byte }

func (c *capture) Send([]byte) error        { return nil }
func (c *capture) Answer(msg []byte, _ int) { c.answered = append([]byte(nil), msg...) }
func (c *capture) Silence()                 {}

func (c *client) ask(method string, params M) *answer {
	c.t.Helper()
	if params == nil {
		params = M{}
	}
	params["_meta"] = M{mcp.MetaKeyProtocolVersion: server.Version20260728, mcp.MetaKeyClientCapabilities: M{}}
	raw, err := json.Marshal(M{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	require.NoError(c.t, err)
	var reply capture
	c.s.Stateless().Receive(raw, &reply, &server.Extra{Context: c.t.Context(), Stateless: true}, func(call *server.Call) { call.Run() })
	require.NotEmpty(c.t, reply.answered, "no answer to %s", method)
	var a answer
	require.NoError(c.t, json.Unmarshal(reply.answered, &a))
	return &a
}

// get asks for a result and decodes it.
func get[T any](c *client, method string, params M) T {
	c.t.Helper()
	a := c.ask(method, params)
	require.Nil(c.t, a.Error, "%s %v", method, params)
	var v T
	require.NoError(c.t, json.Unmarshal(a.Result, &v))
	return v
}

// refused asks for what must be an error, and returns its code.
func (c *client) refused(method string, params M) int {
	c.t.Helper()
	a := c.ask(method, params)
	require.NotNil(c.t, a.Error, "%s %v: %s", method, params, a.Result)
	return a.Error.Code
}

type skill struct {
	URI         string          `json:"uri"`
	Frontmatter json.RawMessage `json:"frontmatter"`
	Resources   json.RawMessage `json:"resources"`
}

type skillFile struct {
	URI    string `json:"uri"`
	Digest string `json:"digest"`
	Size   int    `json:"size"`
}

func (s *skill) files(t *testing.T) (files []skillFile) {
	t.Helper()
	require.NoError(t, json.Unmarshal(s.Resources, &files))
	return files
}

type skillList struct {
	Skills     []skill `json:"skills"`
	NextCursor string  `json:"nextCursor"`
	TTLMs      *int    `json:"ttlMs"`
	CacheScope string  `json:"cacheScope"`
	ResultType string  `json:"resultType"`
}

type resourceList struct {
	Resources  []*mcp.Resource `json:"resources"`
	NextCursor string          `json:"nextCursor"`
	ResultType string          `json:"resultType"`
}

type contents struct {
	Contents []struct {
		URI      string  `json:"uri"`
		MIMEType string  `json:"mimeType"`
		Text     *string `json:"text"`
		Blob     []byte  `json:"blob"`
	} `json:"contents"`
}

func uris(list []skill) (uris []string) {
	for _, s := range list {
		uris = append(uris, s.URI)
	}
	return uris
}

func plain() *server.Server {
	return server.New(&mcp.Implementation{Name: "librarian", Version: "1"}, nil)
}

// serve enables the extension for a tree that must be good.
func serve(t *testing.T, tree fs.FS, o *skills.Options) *client {
	t.Helper()
	s := plain()
	require.NoError(t, skills.Enable(s, tree, o))
	return &client{t: t, s: s}
}

// top is a SKILL.md.
func top(name string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte("---\nname: " + name + "\ndescription: What " + name + " is for.\n---\n\n# " + name + "\n")}
}

func text(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }

// shelf is a tree with skills at several depths, one of them in another, and files that
// belong to none.
func shelf() fstest.MapFS {
	return fstest.MapFS{
		"README.md":                              text("not of a skill"),
		"git-workflow/SKILL.md":                  top("git-workflow"),
		"acme/billing/refunds/SKILL.md":          top("refunds"),
		"acme/billing/refunds/examples/email.md": text("Dear customer"),
		"acme/billing/refunds/data.bin":          text("\x00\xff"),
		"acme/billing/refunds/a b/ü?.txt":        text("escaped"),
		"acme/billing/refunds/inner/SKILL.md":    top("inner"),
		"acme/billing/refunds/inner/more.txt":    text("more"),
		"acme/billing/refunds/.git/config":       text("hidden"),
		"acme/billing/refunds/.env":              text("hidden"),
		"acme/billing/notes.txt":                 text("not of a skill"),
	}
}
