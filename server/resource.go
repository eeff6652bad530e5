package server

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"

	"github.com/heedmcp/heed/internal/jsonrpc"
	"github.com/heedmcp/heed/servercontext"
	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// ReadIn is what a resource's handler is asked for.
type ReadIn struct {
	// URI is the resource's, as the client wrote it.
	URI string
	// Variables are the values of the template's variables, percent-decoded; nil
	// for a resource without a template. They come from the client: check them
	// before they become part of a path or a statement.
	Variables Variables
}

// ReadOut is what the handler of a resource may return:
//
//   - a *mcp.ReadResourceResult is sent as it is,
//   - *mcp.ResourceContents are its contents, a slice of them all of its contents,
//   - a string is its text, a []byte its binary content.
//
// What has no URI or MIME type of its own gets those of the resource.
type ReadOut interface {
	*mcp.ReadResourceResult | *mcp.ResourceContents | []*mcp.ResourceContents | string | []byte
}

// ResourceHandler reads a resource. [ResourceNotFound] and errors that are
// fs.ErrNotExist tell the client that there is no such resource.
type ResourceHandler func(ctx context.Context, req *servercontext.Request, in ReadIn) (*mcp.ReadResourceResult, error)

// ResourceOptions say more about a resource or a template than its definition can.
type ResourceOptions struct {
	// Cache tells for how long clients may keep what was read; nil:
	// Options.CacheHints["resources/read"].
	Cache *CacheHint
	// Size is the resource's size in bytes, instead of the definition's, which cannot
	// say that a resource is empty. nil: the definition's. Not for templates.
	Size *int64
	// Priority is the annotation of that name, from 0 to 1, instead of the
	// definition's, which cannot be 0. nil: the definition's.
	Priority *float64
}

// resource is a registered resource. It never changes.
type resource struct {
	definition *mcp.Resource // a copy
	options    ResourceOptions
	read       ResourceHandler
}

// AddResource registers a resource under its URI. A resource of the same URI is
// replaced.
//
// It is an error when the URI is no absolute URI, the name is empty, an
// annotation, icon or _meta key is not as the specification wants it, or when the
// handler is nil. r is copied.
//
// Specification: server/resources.
func AddResource[Out ReadOut](s *Server, r *mcp.Resource, handler func(ctx context.Context, req *servercontext.Request, in ReadIn) (Out, error), options ...*ResourceOptions) error {
	if handler == nil {
		return s.AddResource(r, nil)
	}
	mime := ""
	if r != nil {
		mime = r.MIMEType
	}
	return s.AddResource(r, readAs(mime, handler), options...)
}

// MustAddResource is AddResource for resources that are known to be good; it
// panics where AddResource returns an error.
func MustAddResource[Out ReadOut](s *Server, r *mcp.Resource, handler func(ctx context.Context, req *servercontext.Request, in ReadIn) (Out, error), options ...*ResourceOptions) {
	if err := AddResource(s, r, handler, options...); err != nil {
		panic(err)
	}
}

// AddResource is the function AddResource for handlers that return whole results.
func (s *Server) AddResource(r *mcp.Resource, handler ResourceHandler, options ...*ResourceOptions) error {
	if r == nil {
		return &RegistrationError{Kind: "resource", Err: errors.New("the resource is nil")}
	}
	fail := func(err error) error { return &RegistrationError{Kind: "resource", Name: r.URI, Err: err} }
	definition := *r
	registered := &resource{definition: &definition, read: handler}
	if len(options) > 0 && options[0] != nil {
		registered.options = *options[0]
	}
	if handler == nil {
		return fail(errors.New("the handler is nil"))
	}
	if err := checkURI(r.URI); err != nil {
		return fail(err)
	}
	if err := s.checkResource(&definition, registered.options); err != nil {
		return fail(err)
	}
	s.register(func(reg *registry) {
		reg.resources[definition.URI] = registered
		reg.had |= hasResources
	})
	s.publish(event{kind: eventResourcesChanged})
	return nil
}

// MustAddResource is AddResource that panics where that returns an error.
func (s *Server) MustAddResource(r *mcp.Resource, handler ResourceHandler, options ...*ResourceOptions) {
	if err := s.AddResource(r, handler, options...); err != nil {
		panic(err)
	}
}

// RemoveResources takes resources away by their URIs. Reads that are running go on.
// Unknown URIs are ignored.
func (s *Server) RemoveResources(uris ...string) {
	s.register(func(r *registry) {
		for _, uri := range uris {
			delete(r.resources, uri)
		}
	})
	s.publish(event{kind: eventResourcesChanged})
}

// readAs makes a ResourceHandler of one that returns something simpler. mime
// tells of what type text and bytes are.
func readAs[Out ReadOut](mime string, handler func(context.Context, *servercontext.Request, ReadIn) (Out, error)) ResourceHandler {
	return func(ctx context.Context, req *servercontext.Request, in ReadIn) (*mcp.ReadResourceResult, error) {
		out, err := handler(ctx, req, in)
		if err != nil {
			return nil, err
		}
		var contents []*mcp.ResourceContents
		switch v := any(out).(type) {
		case *mcp.ReadResourceResult:
			return v, nil
		case *mcp.ResourceContents:
			contents = []*mcp.ResourceContents{v}
		case []*mcp.ResourceContents:
			contents = v
		case string:
			contents = []*mcp.ResourceContents{{Text: v}}
		case []byte:
			if v == nil {
				v = []byte{}
			}
			contents = []*mcp.ResourceContents{{Blob: v}}
		}
		for i, one := range contents {
			if one != nil && (one.URI == "" || one.MIMEType == "") {
				filled := *one
				if filled.URI == "" {
					filled.URI = in.URI
				}
				if filled.MIMEType == "" {
					filled.MIMEType = mime
				}
				contents[i] = &filled
			}
		}
		return &mcp.ReadResourceResult{Contents: contents}, nil
	}
}

// ResourceNotFound is the error for a URI that names no resource. Its code is the
// one that the request's protocol revision has for it.
//
// Specification: server/resources, error handling.
func ResourceNotFound(uri string) error {
	data := jsonrpc.AppendString([]byte(`{"uri":`), uri)
	return &sdkrpc.Error{Code: codeResourceNotFound, Message: "resource not found", Data: append(data, '}')}
}

// maxURI bounds the URIs of requests, in bytes: each is matched against every template.
const maxURI = 8 << 10

// uriOf returns the URI that a request names.
func uriOf(params []byte) (string, error) {
	raw, _ := jsonrpc.Get(params, "uri")
	uri, ok := jsonrpc.Unquote(raw)
	if !ok {
		return "", invalidParams("params.uri is required and must be a string")
	}
	if len(uri) > maxURI {
		return "", invalidParams("params.uri is longer than %d bytes", maxURI)
	}
	return uri, nil
}

// found is what a URI leads to.
type found struct {
	read      ResourceHandler
	options   ResourceOptions
	variables Variables
	template  *template // nil for a registered resource
}

// findResource tells what a URI leads to for this request, nil if to nothing.
// Resources come before templates.
func (c *Call) findResource(ctx context.Context, uri string) *found {
	if r := c.reg.resources[uri]; r != nil {
		if !c.seesResource(ctx, uri, r.definition) {
			return nil
		}
		return &found{read: r.read, options: r.options}
	}
	for _, t := range c.reg.matchers() {
		variables, ok := t.match(uri)
		if !ok || !c.seesTemplate(ctx, t) {
			continue
		}
		if !c.seesResource(ctx, uri, nil) {
			return nil
		}
		return &found{read: t.read, options: t.options, variables: variables, template: t}
	}
	return nil
}

// handleReadResource serves resources/read.
//
// Specification: server/resources, reading resources.
func handleReadResource(ctx context.Context, req *servercontext.Request) (any, error) {
	c := callFrom(ctx)
	uri, err := uriOf(req.Params())
	if err != nil {
		return nil, err
	}
	f := c.findResource(ctx, uri)
	if f == nil {
		return nil, ResourceNotFound(uri)
	}
	result, err := f.read(ctx, req, ReadIn{URI: uri, Variables: f.variables})
	if err != nil {
		return nil, readError(uri, err)
	}
	if result == nil {
		return nil, ResourceNotFound(uri)
	}
	hinted := *result
	hinted.Cacheable = c.readHint(result.Cacheable, f.options.Cache)
	return &hinted, nil
}

// readError tells errors that mean "there is no such resource", also as the
// official SDK writes them, from others.
func readError(uri string, err error) error {
	var rpc *sdkrpc.Error
	switch {
	case errors.As(err, &rpc):
		if rpc.Message == "Resource not found" && (rpc.Code == codeInvalidParams || rpc.Code == codeResourceNotFound) {
			return ResourceNotFound(uri)
		}
	case errors.Is(err, fs.ErrNotExist):
		return ResourceNotFound(uri)
	}
	return err
}

// appendReadResource appends what was read.
func (r *revision) appendReadResource(b []byte, c *Call, v *mcp.ReadResourceResult) ([]byte, error) {
	o := r.appendHead(b, c, resultComplete, v.Meta)
	o.key("contents")
	o.b = append(o.b, '[')
	for i, one := range v.Contents {
		if i > 0 {
			o.b = append(o.b, ',')
		}
		var err error
		if o.b, err = r.appendResource(o.b, one); err != nil {
			return b, err
		}
	}
	o.b = append(o.b, ']')
	r.appendCache(&o, v.Cacheable)
	return o.end(), nil
}

// projectResource leaves out of a resource what the revision does not have.
func (r *revision) projectResource(reg *registry, d *mcp.Resource) any {
	p := *d
	if !r.structured {
		p.Title, p.Meta = "", nil
	}
	if !r.urlElicitation {
		p.Icons = nil
	}
	var o ResourceOptions
	if registered := reg.resources[d.URI]; registered != nil && registered.definition == d {
		o = registered.options
	}
	p.Annotations = nil
	view := struct {
		mcp.Resource
		Size        *int64          `json:"size,omitempty"`
		Annotations json.RawMessage `json:"annotations,omitempty"`
	}{Resource: p, Size: o.Size, Annotations: r.annotations(d.Annotations, o.Priority)}
	if view.Size == nil && d.Size != 0 {
		view.Size = &d.Size
	}
	return &view
}

// checkResource checks a definition, but for its URI.
func (s *Server) checkResource(d *mcp.Resource, o ResourceOptions) error {
	switch {
	case d.Name == "":
		return errors.New("the name is empty")
	case d.Size < 0 || o.Size != nil && *o.Size < 0:
		return errors.New("the size is negative")
	}
	if err := checkAnnotations(d.Annotations, o.Priority); err != nil {
		return err
	}
	if err := s.checkItem(d.Icons, d.Meta); err != nil {
		return err
	}
	_, err := appendJSON(nil, d)
	return err
}
