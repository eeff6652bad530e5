package server

import (
	"encoding/base64"
	"fmt"

	"github.com/heedmcp/heed/internal/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// appendContents appends an array of content blocks, never null.
func (r *revision) appendContents(b []byte, contents []mcp.Content) ([]byte, error) {
	b = append(b, '[')
	var err error
	for i, c := range contents {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = r.appendContent(b, c); err != nil {
			return b, err
		}
	}
	return append(b, ']'), nil
}

// appendContent appends one content block. What a revision does not have becomes
// text that says what it was.
func (r *revision) appendContent(b []byte, content mcp.Content) ([]byte, error) {
	switch c := content.(type) {
	case nil:
		return b, fmt.Errorf("a content block is nil")
	case *mcp.TextContent:
		o := &object{b: append(b, `{"type":"text","text":`...), begun: true}
		o.b = jsonrpc.AppendString(o.b, c.Text)
		return r.endContent(o, c.Annotations, c.Meta)
	case *mcp.ImageContent:
		return r.appendBinary(b, "image", c.Data, c.MIMEType, c.Annotations, c.Meta)
	case *mcp.AudioContent:
		return r.appendAudio(b, c)
	case *mcp.EmbeddedResource:
		o := &object{b: append(b, `{"type":"resource"`...), begun: true}
		o.key("resource")
		var err error
		if o.b, err = r.appendResource(o.b, c.Resource); err != nil {
			return b, err
		}
		return r.endContent(o, c.Annotations, c.Meta)
	case *mcp.ResourceLink:
		if !r.structured {
			return r.appendContent(b, &mcp.TextContent{Text: linkText(c), Annotations: c.Annotations})
		}
		p := *c
		if p.Name == "" {
			p.Name = p.URI // without a name the message would be invalid
		}
		if !r.urlElicitation {
			p.Icons = nil
		}
		return appendJSON(b, &p)
	}
	out, err := appendJSON(b, content)
	if err == nil && string(out[len(b):]) == "null" {
		return b, fmt.Errorf("a content block is a nil %T", content)
	}
	return out, err
}

func (r *revision) appendAudio(b []byte, c *mcp.AudioContent) ([]byte, error) {
	if !r.audio {
		return r.appendContent(b, &mcp.TextContent{
			Text:        fmt.Sprintf("[audio, %s, %d bytes]", c.MIMEType, len(c.Data)),
			Annotations: c.Annotations,
		})
	}
	return r.appendBinary(b, "audio", c.Data, c.MIMEType, c.Annotations, c.Meta)
}

func linkText(c *mcp.ResourceLink) string {
	name := c.Title
	if name == "" {
		name = c.Name
	}
	if name == "" {
		return c.URI
	}
	return name + ": " + c.URI
}

func (r *revision) appendBinary(b []byte, kind string, data []byte, mime string, a *mcp.Annotations, meta mcp.Meta) ([]byte, error) {
	o := &object{b: append(b, `{"type":"`...), begun: true}
	o.b = append(o.b, kind...)
	o.b = append(o.b, `","data":"`...)
	o.b = base64.StdEncoding.AppendEncode(o.b, data)
	o.b = append(o.b, `","mimeType":`...)
	o.b = jsonrpc.AppendString(o.b, mime)
	return r.endContent(o, a, meta)
}

func (r *revision) endContent(o *object, a *mcp.Annotations, meta mcp.Meta) ([]byte, error) {
	if hints := r.annotations(a, nil); hints != nil {
		o.key("annotations")
		o.b = append(o.b, hints...)
	}
	if len(meta) > 0 && r.structured {
		if err := o.value("_meta", meta); err != nil {
			return o.b, err
		}
	}
	return o.end(), nil
}

// appendResource appends the contents of a resource. The text of a text
// resource is always there, also when it is empty: without text and blob the
// message would be invalid.
func (r *revision) appendResource(b []byte, c *mcp.ResourceContents) ([]byte, error) {
	if c == nil {
		return b, fmt.Errorf("the contents of a resource are nil")
	}
	o := &object{b: append(b, '{')}
	o.key("uri")
	o.b = jsonrpc.AppendString(o.b, c.URI)
	o.text("mimeType", c.MIMEType)
	if c.Blob != nil {
		o.key("blob")
		o.b = append(o.b, '"')
		o.b = base64.StdEncoding.AppendEncode(o.b, c.Blob)
		o.b = append(o.b, '"')
	} else {
		o.key("text")
		o.b = jsonrpc.AppendString(o.b, c.Text)
	}
	return r.endContent(o, nil, c.Meta)
}
