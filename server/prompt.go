package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/heedmcp/heed/internal/jsonrpc"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	roleUser      mcp.Role = "user"
	roleAssistant mcp.Role = "assistant"
)

// PromptOut is what the handler of a prompt may return:
//
//   - a *mcp.GetPromptResult is sent as it is,
//   - a *mcp.PromptMessage is its message, a slice of them all of its messages,
//   - a string is the text of one message of the user.
type PromptOut interface {
	*mcp.GetPromptResult | *mcp.PromptMessage | []*mcp.PromptMessage | string
}

// PromptHandler makes a prompt of its arguments. The ones that the prompt
// requires are there.
type PromptHandler func(ctx context.Context, req *servercontext.Request, arguments map[string]string) (*mcp.GetPromptResult, error)

// prompt is a registered prompt. It never changes.
type prompt struct {
	definition *mcp.Prompt // a copy
	get        PromptHandler
}

// argument returns the prompt's argument of that name, nil if it has none.
func (p *prompt) argument(name string) *mcp.PromptArgument {
	for _, a := range p.definition.Arguments {
		if a.Name == name {
			return a
		}
	}
	return nil
}

// AddPrompt registers a prompt whose arguments are a Go type: a map[string]string,
// or a struct. The prompt's arguments are inferred from a struct's fields unless
// p has its own; they are validated as those of a tool are. Since arguments
// are text, a field that is a number or a boolean takes one that is written so.
// Arguments that the struct does not have are ignored. A prompt of the same name
// is replaced.
//
// It is an error when the name is empty, an argument has no name or the name of
// another, an icon or _meta key is not as the specification wants it, In is
// neither, or when the handler is nil. p is copied.
//
// Specification: server/prompts.
func AddPrompt[In any, Out PromptOut](s *Server, p *mcp.Prompt, handler func(ctx context.Context, req *servercontext.Request, in In) (Out, error)) error {
	if p == nil || handler == nil {
		return s.AddPrompt(p, nil)
	}
	arguments, err := newPromptInput[In]()
	if err != nil {
		return &RegistrationError{Kind: "prompt", Name: p.Name, Err: err}
	}
	definition := *p
	if definition.Arguments == nil {
		definition.Arguments = arguments.declared
	}
	return s.AddPrompt(&definition, func(ctx context.Context, req *servercontext.Request, given map[string]string) (*mcp.GetPromptResult, error) {
		in, err := arguments.decode(given)
		if err != nil {
			return nil, invalidParams("invalid arguments: %v", err)
		}
		out, err := handler(ctx, req, in)
		if err != nil {
			return nil, err
		}
		return promptResult(out), nil
	})
}

// MustAddPrompt is AddPrompt for prompts that are known to be good; it panics
// where AddPrompt returns an error.
func MustAddPrompt[In any, Out PromptOut](s *Server, p *mcp.Prompt, handler func(ctx context.Context, req *servercontext.Request, in In) (Out, error)) {
	if err := AddPrompt(s, p, handler); err != nil {
		panic(err)
	}
}

// AddPrompt is the function AddPrompt for handlers that take the arguments as a
// map and return whole results.
func (s *Server) AddPrompt(p *mcp.Prompt, handler PromptHandler) error {
	if p == nil {
		return &RegistrationError{Kind: "prompt", Err: errors.New("the prompt is nil")}
	}
	fail := func(err error) error { return &RegistrationError{Kind: "prompt", Name: p.Name, Err: err} }
	if handler == nil {
		return fail(errors.New("the handler is nil"))
	}
	definition := *p
	if err := s.checkPrompt(&definition); err != nil {
		return fail(err)
	}
	s.register(func(r *registry) {
		r.prompts[definition.Name] = &prompt{definition: &definition, get: handler}
		r.had |= hasPrompts
	})
	s.publish(event{kind: eventPromptsChanged})
	return nil
}

// MustAddPrompt is AddPrompt that panics where that returns an error.
func (s *Server) MustAddPrompt(p *mcp.Prompt, handler PromptHandler) {
	if err := s.AddPrompt(p, handler); err != nil {
		panic(err)
	}
}

// RemovePrompts takes prompts away. Requests that are running go on. Unknown names
// are ignored.
func (s *Server) RemovePrompts(names ...string) {
	s.register(func(r *registry) {
		for _, name := range names {
			delete(r.prompts, name)
		}
	})
	s.publish(event{kind: eventPromptsChanged})
}

func (s *Server) checkPrompt(d *mcp.Prompt) error {
	if d.Name == "" {
		return errors.New("the name is empty")
	}
	seen := map[string]bool{}
	for _, a := range d.Arguments {
		switch {
		case a == nil || a.Name == "":
			return errors.New("an argument has no name")
		case seen[a.Name]:
			return fmt.Errorf("two arguments are called %q", bounded(a.Name))
		}
		seen[a.Name] = true
	}
	if err := s.checkItem(d.Icons, d.Meta); err != nil {
		return err
	}
	_, err := appendJSON(nil, d)
	return err
}

// promptResult makes the result of what a handler returned.
func promptResult[Out PromptOut](out Out) *mcp.GetPromptResult {
	switch v := any(out).(type) {
	case *mcp.GetPromptResult:
		return v
	case *mcp.PromptMessage:
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{v}}
	case []*mcp.PromptMessage:
		return &mcp.GetPromptResult{Messages: v}
	case string:
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: roleUser, Content: &mcp.TextContent{Text: v}}}}
	}
	return nil
}

// handleGetPrompt serves prompts/get.
//
// Specification: server/prompts, getting a prompt.
func handleGetPrompt(ctx context.Context, req *servercontext.Request) (any, error) {
	c := callFrom(ctx)
	params := c.paramsOf(req)
	name, ok := jsonrpc.Unquote(params.name)
	if !ok {
		return nil, invalidParams("params.name is required and must be a string")
	}
	p := c.findPrompt(ctx, name)
	if p == nil {
		return nil, invalidParams("unknown prompt %q", bounded(name))
	}
	arguments, err := textArguments("params.arguments", params.arguments)
	if err != nil {
		return nil, err
	}
	for _, a := range p.definition.Arguments {
		if _, given := arguments[a.Name]; a.Required && !given {
			return nil, invalidParams("the argument %q is required", bounded(a.Name))
		}
	}
	result, err := p.get(ctx, req, arguments)
	if err != nil {
		return nil, err
	}
	if result == nil {
		result = &mcp.GetPromptResult{}
	}
	return result, nil
}

// textArguments reads arguments whose values are text. It never returns a nil map
// without an error.
func textArguments(what string, raw json.RawMessage) (map[string]string, error) {
	arguments := map[string]string{}
	if len(raw) == 0 || string(raw) == "null" { // what Go clients make of a nil map
		return arguments, nil
	}
	if raw[0] != '{' {
		return nil, invalidParams("%s must be an object", what)
	}
	for name, value := range jsonrpc.Members(raw) {
		text, ok := jsonrpc.Unquote(value)
		if !ok {
			return nil, invalidParams("%s: %q must be a string", what, bounded(name))
		}
		arguments[name] = text
	}
	return arguments, nil
}

// appendGetPrompt appends a prompt.
func (r *revision) appendGetPrompt(b []byte, c *Call, v *mcp.GetPromptResult) ([]byte, error) {
	o := r.appendHead(b, c, resultComplete, v.Meta)
	o.text("description", v.Description)
	o.key("messages")
	o.b = append(o.b, '[')
	for i, m := range v.Messages {
		if m == nil {
			return b, errors.New("a message is nil")
		}
		role := m.Role
		if role == "" {
			role = roleUser
		}
		if role != roleUser && role != roleAssistant {
			return b, fmt.Errorf("the role %q is neither user nor assistant", bounded(string(role)))
		}
		if i > 0 {
			o.b = append(o.b, ',')
		}
		o.b = append(o.b, `{"role":"`...)
		o.b = append(o.b, role...)
		o.b = append(o.b, `","content":`...)
		var err error
		if o.b, err = r.appendContent(o.b, m.Content); err != nil {
			return b, err
		}
		o.b = append(o.b, '}')
	}
	o.b = append(o.b, ']')
	return o.end(), nil
}

// projectPrompt leaves out of a prompt what the revision does not have.
func (r *revision) projectPrompt(d *mcp.Prompt) any {
	p := *d
	if !r.urlElicitation {
		p.Icons = nil
	}
	if !r.structured {
		p.Title, p.Meta = "", nil
		arguments := make([]*mcp.PromptArgument, len(d.Arguments))
		for i, a := range d.Arguments {
			plain := *a
			plain.Title = ""
			arguments[i] = &plain
		}
		p.Arguments = arguments
	}
	return &p
}
