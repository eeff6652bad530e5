package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/heedmcp/heed/internal/jsonrpc"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Values of the stateless era's resultType and cacheScope.
const (
	resultComplete      = "complete"
	resultInputRequired = "input_required"
	cachePrivate        = "private"
	cachePublic         = "public"
)

// encodeAnswer appends the response to buf and returns its error code, 0 for a
// result.
//
// Encoding runs code of handlers, and may meet pointers that are nil: a panic in
// there ends the request, not the process.
func (c *Call) encodeAnswer(buf *[]byte, result any, err error) (code int) {
	defer func() {
		if p := recover(); p != nil {
			c.log().Error("result cannot be encoded", "panic", p, "stack", string(debug.Stack()))
			*buf = jsonrpc.AppendError((*buf)[:0], c.id, int(errInternal.Code), errInternal.Message, nil)
			code = int(errInternal.Code)
		}
	}()
	if err != nil && c.method.name == methodCallTool {
		if r := c.toolError(err); r != nil {
			result, err = r, nil
		}
	}
	if err == nil {
		b, e := c.rev.appendResult(jsonrpc.OpenResponse(*buf, c.id), c, result)
		if e == nil {
			*buf = jsonrpc.CloseResponse(b)
			return 0
		}
		c.log().Error("result cannot be encoded", "error", e)
		err = errInternal
	}
	e := c.protocolError(err)
	*buf = jsonrpc.AppendError((*buf)[:0], c.id, int(e.Code), e.Message, e.Data)
	return int(e.Code)
}

var errNilResult = errors.New("the result is nil")

// appendResult appends a result as this revision has it.
func (r *revision) appendResult(b []byte, c *Call, result any) ([]byte, error) {
	switch v := result.(type) {
	case *mcp.CallToolResult:
		if v == nil {
			return b, errNilResult
		}
		return r.appendCallToolResult(b, c, v)
	case *mcp.GetPromptResult:
		if v == nil {
			return b, errNilResult
		}
		return r.appendGetPrompt(b, c, v)
	case *mcp.ReadResourceResult:
		if v == nil {
			return b, errNilResult
		}
		return r.appendReadResource(b, c, v)
	case *mcp.CompleteResult:
		if v == nil {
			return b, errNilResult
		}
		return r.appendComplete(b, c, v)
	case *mcp.ListToolsResult, *mcp.ListPromptsResult, *mcp.ListResourcesResult, *mcp.ListResourceTemplatesResult:
		return r.appendListResult(b, c, v)
	case *mcp.InitializeResult:
		return appendJSON(b, v)
	case *mcp.DiscoverResult:
		return r.appendDiscover(b, c, v)
	case *listenResult:
		return r.appendListenResult(b, c), nil
	case *inputRequired:
		return r.appendInputRequired(b, c, v)
	case nil, struct{}:
		return append(r.appendHead(b, c, resultComplete, nil).b, '}'), nil
	}
	raw, err := appendJSON(nil, result)
	if err != nil {
		return b, err
	}
	return r.appendObject(b, c, raw)
}

// object appends the members of a JSON object one after the other.
type object struct {
	b     []byte
	begun bool // a member was written
}

// key begins a member; the caller appends its value to b.
func (o *object) key(name string) {
	if o.begun {
		o.b = append(o.b, ',')
	}
	o.begun = true
	o.b = append(o.b, '"')
	o.b = append(o.b, name...)
	o.b = append(o.b, '"', ':')
}

func (o *object) text(name, value string) {
	if value != "" {
		o.key(name)
		o.b = jsonrpc.AppendString(o.b, value)
	}
}

func (o *object) value(name string, value any) (err error) {
	o.key(name)
	o.b, err = appendJSON(o.b, value)
	return err
}

func (o *object) end() []byte { return append(o.b, '}') }

// appendHead begins a result: in the stateless era with its type and who the
// server is, in the handshake era with nothing but the handler's own _meta.
//
// Specification: basic/index (2026-07-28), results and _meta.
func (r *revision) appendHead(b []byte, c *Call, resultType string, meta mcp.Meta) object {
	o := object{b: append(b, '{')}
	if r.stateless {
		o.key("resultType")
		o.b = append(o.b, '"')
		o.b = append(o.b, resultType...)
		o.b = append(o.b, '"')
	}
	info := c.server.serverInfo(r)
	if _, own := meta[mcp.MetaKeyServerInfo]; own {
		info = nil
	}
	var own []byte
	if len(meta) > 0 {
		var err error
		if own, err = appendJSON(nil, meta); err != nil {
			// The result itself is good, and what it tells of has been done.
			c.log().Error("_meta of a result cannot be encoded and is left out", "error", err)
			own = nil
		}
	}
	switch {
	case info == nil && own == nil:
	case info == nil:
		o.key("_meta")
		o.b = append(o.b, own...)
	default:
		o.key("_meta")
		o.b = append(o.b, `{"`+mcp.MetaKeyServerInfo+`":`...)
		o.b = append(o.b, info...)
		if own != nil {
			o.b = append(o.b, ',')
			o.b = append(o.b, own[1:]...)
		} else {
			o.b = append(o.b, '}')
		}
	}
	return o
}

// appendObject appends a result that is JSON already, an object, with what the
// revision adds.
func (r *revision) appendObject(b []byte, c *Call, raw []byte) ([]byte, error) {
	if len(raw) == 0 || raw[0] != '{' {
		return b, fmt.Errorf("the result must encode to a JSON object, not %s", bounded(string(raw)))
	}
	if !r.stateless {
		return append(b, raw...), nil
	}
	o := &object{b: append(b, '{')}
	hasType, hasMeta := false, false
	info := c.server.serverInfo(r)
	for name, value := range jsonrpc.Members(raw) {
		hasType = hasType || name == "resultType"
		hasMeta = hasMeta || name == "_meta"
		if o.begun {
			o.b = append(o.b, ',')
		}
		o.begun = true
		o.b = jsonrpc.AppendString(o.b, name)
		o.b = append(o.b, ':')
		if name == "_meta" && info != nil && len(value) > 1 && value[0] == '{' {
			if _, own := jsonrpc.Get(value, mcp.MetaKeyServerInfo); !own {
				o.b = append(o.b, `{"`+mcp.MetaKeyServerInfo+`":`...)
				o.b = append(o.b, info...)
				if len(value) > 2 {
					o.b = append(o.b, ',')
				}
				value = value[1:]
			}
		}
		o.b = append(o.b, value...)
	}
	if !hasType {
		o.key("resultType")
		o.b = append(o.b, `"complete"`...)
	}
	if !hasMeta && info != nil {
		o.key("_meta")
		o.b = append(o.b, `{"`+mcp.MetaKeyServerInfo+`":`...)
		o.b = append(o.b, info...)
		o.b = append(o.b, '}')
	}
	return o.end(), nil
}

func (r *revision) appendDiscover(b []byte, c *Call, v *mcp.DiscoverResult) ([]byte, error) {
	return c.reg.pages.append(b, v, r, func() ([]byte, error) {
		o := r.appendHead(nil, c, resultComplete, v.Meta)
		if err := o.value("supportedVersions", v.SupportedVersions); err != nil {
			return nil, err
		}
		if err := o.value("capabilities", v.Capabilities); err != nil {
			return nil, err
		}
		o.text("instructions", v.Instructions)
		r.appendCache(&o, v.Cacheable)
		return o.end(), nil
	})
}

// serverInfo is the encoded implementation as results of the stateless era
// carry it, nil where they do not.
func (s *Server) serverInfo(r *revision) []byte {
	if !r.stateless || s.options.HideServerInfo {
		return nil
	}
	return s.encodedInfo
}

// implementation is how the server introduces itself in this revision.
func (r *revision) implementation(i *mcp.Implementation) *mcp.Implementation {
	p := *i
	if !r.structured {
		p.Title = ""
	}
	if !r.urlElicitation {
		p.Icons, p.WebsiteURL, p.Description = nil, "", ""
	}
	return &p
}

// supports tells whether a request to the client exists in this revision. Some clients
// declare capabilities of a newer one.
func (r *revision) supports(params any) error {
	ok := true
	switch p := params.(type) {
	case *mcp.ElicitParams:
		ok = r.elicitation && (p.Mode != "url" || r.urlElicitation)
		if err := r.supportsForm(p.RequestedSchema); ok && err != nil {
			return err
		}
	case *mcp.CreateMessageWithToolsParams:
		ok = r.urlElicitation
	}
	if !ok {
		return fmt.Errorf("%w: %s has no such request", servercontext.ErrNotSupported, r.version)
	}
	return nil
}

// inputParams projects the params of a request to the client.
func (r *revision) inputParams(params any) any {
	p, ok := params.(*mcp.ElicitParams)
	if !ok {
		return params
	}
	if !r.urlElicitation {
		// Before modes existed there was only the form.
		return struct {
			Meta            mcp.Meta `json:"_meta,omitempty"`
			Message         string   `json:"message"`
			RequestedSchema any      `json:"requestedSchema,omitempty"`
		}{p.Meta, p.Message, r.form(p.RequestedSchema)}
	}
	return p
}

// appendJSON appends v encoded, on one line and without escapes that only HTML
// needs. Marshalers that panic fail like those that return an error.
func appendJSON(b []byte, v any) (out []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			out, err = b, fmt.Errorf("encoding %T: panic: %v", v, p)
		}
	}()
	buf := bytes.NewBuffer(b)
	e := json.NewEncoder(buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return b, fmt.Errorf("encoding %T: %w", v, err)
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}
