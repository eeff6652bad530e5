package gosdk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/heedmcp/heed/internal/jsonrpc"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// changed returns req with the params that middleware passed on, req itself when
// it left them alone.
func changed(req *servercontext.Request, k kind, passed mcp.Params) (*servercontext.Request, error) {
	fresh, err := k.decode(req)
	if err != nil {
		return nil, err
	}
	if reflect.DeepEqual(fresh, passed) {
		return req, nil
	}
	before, err := encode(fresh)
	if err != nil {
		return nil, err
	}
	after, err := encode(passed)
	if err != nil {
		return nil, fmt.Errorf("gosdk: params from middleware: %w", err)
	}
	if len(after) == 0 || after[0] != '{' {
		return nil, fmt.Errorf("gosdk: params from middleware must encode to a JSON object")
	}
	return req.WithParams(merge(req.Params(), before, after)), nil
}

// merge applies the difference between before and after, both encodings of the official type,
// to what the client sent. Members that did not change, or that the official type does
// not know, stay as they were sent: a second encoding may lose digits.
func merge(sent, before, after []byte) json.RawMessage {
	b := []byte{'{'}
	done := map[string]bool{}
	for name, value := range jsonrpc.Members(sent) {
		if done[name] {
			continue
		}
		done[name] = true
		was, known := jsonrpc.Get(before, name)
		is, left := jsonrpc.Get(after, name)
		switch {
		case left && !(known && bytes.Equal(was, is)):
			b = appendMember(b, name, is)
		case left || !known:
			b = appendMember(b, name, value)
		}
	}
	for name, value := range jsonrpc.Members(after) {
		was, known := jsonrpc.Get(before, name)
		if !done[name] && !(known && bytes.Equal(was, value)) {
			b = appendMember(b, name, value)
		}
	}
	return append(b, '}')
}

func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSpace(buf.Bytes()), err
}
