package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// show sends one request of the stateless era and shows the members of its result, or
// of its error, but those that every result has.
func show(s *server.Server, method, params string, members ...string) {
	ss := s.Open(context.Background(), server.SessionOptions{})
	defer ss.Close(cancellation.SessionEnd, "")
	if params != "" {
		params += ","
	}
	answer := make(chan []byte, 1)
	ss.Receive([]byte(`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+params+meta+`}}`), answers(answer), nil, nil)
	var got struct {
		Result map[string]json.RawMessage
		Error  json.RawMessage
	}
	if err := json.Unmarshal(<-answer, &got); err != nil {
		fmt.Println(err)
	}
	if got.Error != nil {
		fmt.Println("error", string(got.Error))
	}
	for _, m := range members {
		fmt.Println(m, string(got.Result[m]))
	}
	_ = ss.Wait(context.Background())
}

// answers is a reply that keeps the answer.
type answers chan []byte

func (a answers) Send([]byte) error        { return nil }
func (a answers) Answer(msg []byte, _ int) { a <- slices.Clone(msg) }
func (a answers) Silence()                 { a <- []byte(`{"error":"silence"}`) }

func plainServer() *server.Server {
	return server.New(&mcp.Implementation{Name: "jobs", Version: "1.0.0"}, &server.Options{HideServerInfo: true, Logger: quiet})
}

// A raw tool brings its own schema and gets its arguments as they were sent.
func ExampleServer_AddRawTool() {
	s := plainServer()
	// region raw
	err := s.AddRawTool(&mcp.Tool{
		Name:        "forward",
		InputSchema: json.RawMessage(`{"type":"object","required":["to"],"properties":{"to":{"type":"string","format":"email"}}}`),
	}, func(_ context.Context, _ *servercontext.Request, arguments json.RawMessage) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{StructuredContent: arguments}, nil
	})
	// endregion
	fmt.Println(err)
	show(s, "tools/call", `"name":"forward","arguments":{"to":"ann@example.com"}`, "structuredContent")
	// Output:
	// <nil>
	// structuredContent {"to":"ann@example.com"}
}

// What a handler returns becomes the result; an error becomes one that the model can
// read, and a *jsonrpc.Error a protocol error.
func ExampleToolHandler() {
	s := plainServer()
	type in struct {
		Path string `json:"path"`
	}
	// region errors
	server.MustAddTool(s, &mcp.Tool{Name: "size"}, func(_ context.Context, _ *servercontext.Request, in in) (int64, error) {
		if !filepath.IsLocal(in.Path) {
			return 0, &sdkrpc.Error{Code: sdkrpc.CodeInvalidParams, Message: "path must stay below the root"}
		}
		info, err := os.Stat(in.Path)
		if err != nil {
			return 0, fmt.Errorf("no size: %w", err) // isError: the model sees it and may try again
		}
		return info.Size(), nil
	})
	// endregion
	show(s, "tools/call", `"name":"size","arguments":{"path":"no-such-file"}`, "isError", "content")
	show(s, "tools/call", `"name":"size","arguments":{"path":"../x"}`)
	// Output:
	// isError true
	// content [{"type":"text","text":"no size: stat no-such-file: no such file or directory"}]
	// error {"code":-32602,"message":"path must stay below the root"}
}

// The arguments of a prompt are a struct.
func ExampleAddPrompt() {
	s := plainServer()
	// region prompt
	type in struct {
		Role string `json:"role" jsonschema:"minLength=2" jsonschema_description:"the job's title"`
		Tone string `json:"tone,omitempty"`
	}
	err := server.AddPrompt(s, &mcp.Prompt{Name: "posting", Description: "Writes a job posting."},
		func(_ context.Context, _ *servercontext.Request, in in) (string, error) {
			return "Write a posting for a " + in.Role + ".", nil
		})
	// endregion
	fmt.Println(err)
	show(s, "prompts/get", `"name":"posting","arguments":{"role":"welder"}`, "messages")
	// Output:
	// <nil>
	// messages [{"role":"user","content":{"type":"text","text":"Write a posting for a welder."}}]
}

// Resources have a URI; templates have many.
func ExampleAddResourceTemplate() {
	s := plainServer()
	postings := map[string]string{"7": "welder, Leeds"}
	// region resource
	server.MustAddResource(s, &mcp.Resource{URI: "jobs://count", Name: "count", MIMEType: "text/plain"},
		func(context.Context, *servercontext.Request, server.ReadIn) (string, error) {
			return fmt.Sprint(len(postings)), nil
		})
	server.MustAddResourceTemplate(s, &mcp.ResourceTemplate{URITemplate: "jobs://postings/{id}", Name: "posting", MIMEType: "text/plain"},
		func(_ context.Context, _ *servercontext.Request, in server.ReadIn) (string, error) {
			text, ok := postings[in.Variables.Get("id")] // the client's text
			if !ok {
				return "", server.ResourceNotFound(in.URI)
			}
			return text, nil
		})
	// endregion
	show(s, "resources/read", `"uri":"jobs://postings/7"`, "contents")
	show(s, "resources/read", `"uri":"jobs://postings/8"`)
	show(s, "resources/read", `"uri":"jobs://count"`, "contents")
	// Output:
	// contents [{"uri":"jobs://postings/7","mimeType":"text/plain","text":"welder, Leeds"}]
	// error {"code":-32602,"message":"resource not found","data":{"uri":"jobs://postings/8"}}
	// contents [{"uri":"jobs://count","mimeType":"text/plain","text":"1"}]
}

// Rows of a table are listed page by page, and read through a template.
func ExampleServer_AddResourceLister() {
	s := plainServer()
	rows := []string{"a", "b", "c"}
	// region lister
	s.MustAddResourceLister("rows", func(ctx context.Context, _ *servercontext.Request, after string, limit int) ([]*mcp.Resource, string, error) {
		var page []*mcp.Resource
		for _, id := range rows { // in a program: select … where id > after order by id limit …
			if id <= after {
				continue
			}
			if len(page) == limit {
				return page, strings.TrimPrefix(page[limit-1].URI, "jobs://rows/"), ctx.Err()
			}
			page = append(page, &mcp.Resource{URI: "jobs://rows/" + id, Name: id})
		}
		return page, "", ctx.Err()
	})
	// endregion
	show(s, "resources/list", "", "resources")
	// Output: resources [{"name":"a","uri":"jobs://rows/a"},{"name":"b","uri":"jobs://rows/b"},{"name":"c","uri":"jobs://rows/c"}]
}

// A directory is served below one URI. Nothing outside of it can be read.
func ExampleServer_AddFileTree() {
	dir, err := os.MkdirTemp("", "tree")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	_ = os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("hello"), 0o600)
	s := plainServer()
	// region tree
	root, err := os.OpenRoot(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer root.Close()
	err = s.AddFileTree("file:///project/", root, &server.FileTreeOptions{List: true, MaxSize: 1 << 20})
	// endregion
	fmt.Println(err)
	show(s, "resources/read", `"uri":"file:///project/notes.txt"`, "contents")
	show(s, "resources/read", `"uri":"file:///project/%2e%2e/secret"`)
	// Output:
	// <nil>
	// contents [{"uri":"file:///project/notes.txt","mimeType":"text/plain","text":"hello"}]
	// error {"code":-32602,"message":"resource not found","data":{"uri":"file:///project/%2e%2e/secret"}}
}

// Completion of one argument of one prompt.
func ExampleServer_SetPromptCompletion() {
	s := plainServer()
	s.MustAddPrompt(&mcp.Prompt{Name: "posting", Arguments: []*mcp.PromptArgument{{Name: "city"}}},
		func(context.Context, *servercontext.Request, map[string]string) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{}, nil
		})
	// region completion
	err := s.SetPromptCompletion("posting", "city", server.CompleteFrom("Leeds", "Lisbon", "Lyon"))
	// endregion
	fmt.Println(err)
	show(s, "completion/complete", `"ref":{"type":"ref/prompt","name":"posting"},"argument":{"name":"city","value":"l"}`, "completion")
	// Output:
	// <nil>
	// completion {"values":["Leeds","Lisbon","Lyon"],"total":3,"hasMore":false}
}

// A handler of your own completes all that has none.
func ExampleServer_SetCompletion() {
	s := plainServer()
	s.SetCompletion(func(_ context.Context, _ *servercontext.Request, in server.CompleteIn) (*mcp.CompletionResultDetails, error) {
		return &mcp.CompletionResultDetails{Values: []string{in.Value + in.Argument}}, nil
	})
	s.MustAddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "jobs://{id}", Name: "posting"},
		func(context.Context, *servercontext.Request, server.ReadIn) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{}, nil
		})
	show(s, "completion/complete", `"ref":{"type":"ref/resource","uri":"jobs://{id}"},"argument":{"name":"id","value":"7"}`, "completion")
	// Output: completion {"values":["7id"],"total":1,"hasMore":false}
}

// Who may see and call what.
func ExampleServer_SetToolFilter() {
	s := plainServer()
	for _, name := range []string{"read", "admin_reset"} {
		server.MustAddTool(s, &mcp.Tool{Name: name}, func(context.Context, *servercontext.Request, struct{}) (string, error) { return name, nil })
	}
	// region filter
	s.SetToolFilter(func(_ context.Context, req *servercontext.Request, t *mcp.Tool) bool {
		if !strings.HasPrefix(t.Name, "admin_") {
			return true
		}
		who := req.TokenInfo()
		return who != nil && slices.Contains(who.Scopes, "admin")
	})
	// endregion
	show(s, "tools/call", `"name":"read"`, "content")
	show(s, "tools/call", `"name":"admin_reset"`)
	// Output:
	// content [{"type":"text","text":"read"}]
	// error {"code":-32602,"message":"unknown tool \"admin_reset\""}
}

// A change is told to the clients that watch.
func ExampleServer_ResourceUpdated() {
	s := plainServer()
	// region updated
	s.OnSubscribe(func(_ context.Context, req *servercontext.Request, uri string) error {
		if !strings.HasPrefix(uri, "jobs://") {
			return fs.ErrNotExist // refused
		}
		return nil
	})
	s.OnUnsubscribe(func(context.Context, *servercontext.Request, string) error { return nil })
	s.ResourceUpdated("jobs://postings/7") // by whoever has changed it; it does not block
	// endregion
	fmt.Println(s.FiltersResources())
	// Output: false
}

// Results of the stateless era may be kept by caches.
func ExampleCacheHint() {
	s := server.New(&mcp.Implementation{Name: "jobs", Version: "1.0.0"}, &server.Options{
		HideServerInfo: true,
		CacheHints:     map[string]server.CacheHint{"tools/list": {TTL: time.Minute, Public: true}},
	})
	server.MustAddTool(s, &mcp.Tool{Name: "a"}, func(context.Context, *servercontext.Request, struct{}) (string, error) { return "", nil })
	show(s, "tools/list", "", "ttlMs", "cacheScope")
	// Output:
	// ttlMs 60000
	// cacheScope "public"
}

// Registering and removing may happen at any time; calls that run go on.
func ExampleServer_RemoveTools() {
	s := plainServer()
	server.MustAddTool(s, &mcp.Tool{Name: "a"}, func(context.Context, *servercontext.Request, struct{}) (string, error) { return "a", nil })
	s.RemoveTools("a", "never registered")
	show(s, "tools/call", `"name":"a"`)
	// Output: error {"code":-32602,"message":"unknown tool \"a\""}
}

// A registration that cannot work says why.
func ExampleRegistrationError() {
	s := plainServer()
	err := server.AddTool(s, &mcp.Tool{Name: "not a name"}, func(context.Context, *servercontext.Request, struct{}) (string, error) { return "", nil })
	fmt.Println(err)
	err = server.AddResource(s, &mcp.Resource{URI: "no uri", Name: "a"}, func(context.Context, *servercontext.Request, server.ReadIn) (string, error) { return "", nil })
	fmt.Println(err)
	// Output:
	// tool "not a name": the name has the character ' '; allowed are A-Z, a-z, 0-9, ., _ and -
	// resource "no uri": the URI has the byte ' ', which must be percent-encoded
}

// Options that come from elsewhere are checked, not trusted.
func ExampleTryNew() {
	_, err := server.TryNew(&mcp.Implementation{Name: "jobs", Version: "1.0.0"}, &server.Options{Versions: []string{"2023-01-01"}})
	fmt.Println(err)
	fmt.Println(server.Versions())
	// Output:
	// server: protocol version "2023-01-01" is unknown
	// [2026-07-28 2025-11-25 2025-06-18 2025-03-26 2024-11-05]
}
