package gosdk

import (
	"context"
	"errors"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// AddResource adds a resource whose handler was written for mcp.Server.AddResource.
// Contents without URI or MIME type get the resource's. A resource of the same URI is
// replaced. An error made by mcp.ResourceNotFoundError is answered as the client's
// revision has it.
//
// It returns a *server.RegistrationError when the resource is unusable, its URI not
// absolute, or h nil.
func AddResource(s *server.Server, r *mcp.Resource, h mcp.ResourceHandler, options ...*server.ResourceOptions) error {
	if r == nil || h == nil {
		return &server.RegistrationError{Kind: "resource", Err: errors.New("the resource or its handler is nil")}
	}
	return s.AddResource(r, reader(r.MIMEType, h), options...)
}

// AddResourceTemplate adds a template whose handler was written for
// mcp.Server.AddResourceTemplate. See [AddResource] for the rest.
func AddResourceTemplate(s *server.Server, t *mcp.ResourceTemplate, h mcp.ResourceHandler, options ...*server.ResourceOptions) error {
	if t == nil || h == nil {
		return &server.RegistrationError{Kind: "resource template", Err: errors.New("the template or its handler is nil")}
	}
	return s.AddResourceTemplate(t, reader(t.MIMEType, h), options...)
}

var errNoContents = errors.New("the resource's handler returned no contents")

func reader(mime string, h mcp.ResourceHandler) server.ResourceHandler {
	return func(ctx context.Context, req *servercontext.Request, in server.ReadIn) (*mcp.ReadResourceResult, error) {
		ctx, scope, leave, err := enter(ctx, req)
		if err != nil {
			return nil, err
		}
		defer leave()
		call, err := callOf[mcp.ReadResourceParams](ctx, scope, req)
		if err != nil {
			return nil, err
		}
		result, err := h(ctx, call)
		if err != nil {
			return nil, serverError(err)
		}
		if result == nil || result.Contents == nil && result.InputRequests == nil && result.RequestState == "" {
			return nil, errNoContents
		}
		return completed(result, in.URI, mime), nil
	}
}

// completed returns a result whose contents say what they are of. Contents may be
// shared between requests, so they are copied.
func completed(r *mcp.ReadResourceResult, uri, mime string) *mcp.ReadResourceResult {
	filled := *r
	filled.Contents = make([]*mcp.ResourceContents, len(r.Contents))
	for i, one := range r.Contents {
		if one == nil {
			continue // refused when it is encoded
		}
		c := *one
		if c.URI == "" {
			c.URI = uri
		}
		if c.MIMEType == "" {
			c.MIMEType = mime
		}
		filled.Contents[i] = &c
	}
	return &filled
}
