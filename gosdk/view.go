package gosdk

import (
	"encoding/json"
	"errors"
	"reflect"

	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// CustomResult is a result that the official SDK has no type for, as middleware
// sees it.
type CustomResult struct {
	mcp.ResultBase
	// Value is what the handler returned, which may be nil. Middleware may replace it.
	Value any
}

// MarshalJSON writes the value, which must encode to an object, with the result's own _meta.
func (r *CustomResult) MarshalJSON() ([]byte, error) {
	value, err := encode(r.Value)
	if err != nil {
		return nil, err
	}
	members := map[string]json.RawMessage{}
	if r.Value != nil {
		if err := json.Unmarshal(value, &members); err != nil {
			return nil, err
		}
	}
	if len(r.Meta) > 0 {
		if members["_meta"], err = encode(r.Meta); err != nil {
			return nil, err
		}
	}
	return encode(members)
}

// view is a result as middleware is shown it.
type view struct {
	shown  mcp.Result
	native any   // what it was made from
	err    error // the tool error that it was made from, nil if it was not
}

// view shows a result to middleware. What the server may share between requests is
// copied, since middleware may change what it is shown.
func (x *exchange) view(native any, err error) (mcp.Result, error) {
	v := view{native: native}
	switch {
	case err != nil && x.request.Method() == "tools/call" && !isCoded(err):
		shown := &mcp.CallToolResult{}
		shown.SetError(err)
		v.shown, v.native, v.err = shown, nil, err
	case err != nil || x.notification():
		return nil, err
	default:
		v.shown = show(native)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.views = append(x.views, v)
	return v.shown, nil
}

func isCoded(err error) bool {
	var rpc *sdkrpc.Error
	return errors.As(err, &rpc)
}

// show returns the official form of a server's result.
func show(native any) mcp.Result {
	switch r := native.(type) {
	case *mcp.ListToolsResult:
		c := *r
		c.Tools = copies(r.Tools)
		return &c
	case *mcp.ListPromptsResult:
		c := *r
		c.Prompts = copies(r.Prompts)
		return &c
	case *mcp.ListResourcesResult:
		c := *r
		c.Resources = copies(r.Resources)
		return &c
	case *mcp.ListResourceTemplatesResult:
		c := *r
		c.ResourceTemplates = copies(r.ResourceTemplates)
		return &c
	case *mcp.CallToolResult:
		if r == nil {
			return &mcp.CallToolResult{}
		}
		c := *r
		return &c
	case mcp.Result:
		return r
	}
	return &CustomResult{Value: native}
}

func copies[T any](items []*T) []*T {
	if items == nil {
		return nil
	}
	all := make([]*T, len(items))
	for i, item := range items {
		if item != nil {
			c := *item
			all[i] = &c
		}
	}
	return all
}

// outcome returns the server's own result when the view was left as it was, so
// that what the server has encoded before, and an error's way to operators, stay of
// use (M3).
func (v *view) outcome() (any, error) {
	if v.err != nil {
		fresh := &mcp.CallToolResult{}
		fresh.SetError(v.err)
		if reflect.DeepEqual(fresh, v.shown) {
			return nil, v.err
		}
		return v.shown, nil
	}
	if _, custom := v.shown.(*CustomResult); !custom && reflect.DeepEqual(v.shown, v.native) {
		return v.native, nil
	}
	return given(v.shown), nil
}

// given returns a result of middleware as the server takes it.
func given(result mcp.Result) any {
	if r, ok := result.(*CustomResult); ok && len(r.Meta) == 0 {
		return r.Value
	}
	return result
}
