package server

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/heedmcp/heed/internal/jsonrpc"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxCompletions is how many values one answer may have.
//
// Specification: server/utilities/completion.
const maxCompletions = 100

// CompleteIn is what a completion is asked for.
type CompleteIn struct {
	// Prompt is the prompt whose argument is completed; "" if it is a template's.
	Prompt string
	// Template is the URI template whose variable is completed, or the URI of a
	// resource; "" if it is a prompt's.
	Template string
	// Argument is the argument's or the variable's name, Value what was typed so far.
	Argument, Value string
	// Arguments are the values that were settled before; nil without any, and in
	// revisions that do not send them (before 2025-06-18).
	Arguments map[string]string
}

// CompletionHandler suggests values, the most relevant first. More than 100 are
// cut off and said to be more. A Total of 0 is filled in where it is known.
type CompletionHandler func(ctx context.Context, req *servercontext.Request, in CompleteIn) (*mcp.CompletionResultDetails, error)

// completers are the completion handlers in force.
type completers struct {
	all       CompletionHandler                   // for what has none of its own; nil: there is none
	prompts   map[completionKey]CompletionHandler // by prompt and argument
	templates map[completionKey]CompletionHandler // by template and variable
}

type completionKey struct{ of, argument string }

func (c completers) clone() completers {
	return completers{all: c.all, prompts: maps.Clone(c.prompts), templates: maps.Clone(c.templates)}
}

// SetCompletion completes the arguments of prompts and the variables of
// templates that have no handler of their own. nil takes it away.
func (s *Server) SetCompletion(handler CompletionHandler) {
	s.change(func(r *registry) {
		r.completers.all = handler
		if handler != nil {
			r.had |= hasCompletions
		}
	})
}

// SetPromptCompletion completes one argument of one prompt, which may be
// registered before or after. nil takes the handler away. It is an error when a name is
// empty.
func (s *Server) SetPromptCompletion(prompt, argument string, handler CompletionHandler) error {
	return s.setCompletion("prompt completion", prompt, argument, handler, func(c *completers) *map[completionKey]CompletionHandler { return &c.prompts })
}

// MustSetPromptCompletion is SetPromptCompletion that panics where that returns
// an error.
func (s *Server) MustSetPromptCompletion(prompt, argument string, handler CompletionHandler) {
	if err := s.SetPromptCompletion(prompt, argument, handler); err != nil {
		panic(err)
	}
}

// SetTemplateCompletion completes one variable of one resource template, which may be
// registered before or after. nil takes the handler away. It is an error when a
// name is empty.
func (s *Server) SetTemplateCompletion(uriTemplate, variable string, handler CompletionHandler) error {
	return s.setCompletion("template completion", uriTemplate, variable, handler, func(c *completers) *map[completionKey]CompletionHandler { return &c.templates })
}

// MustSetTemplateCompletion is SetTemplateCompletion that panics where that
// returns an error.
func (s *Server) MustSetTemplateCompletion(uriTemplate, variable string, handler CompletionHandler) {
	if err := s.SetTemplateCompletion(uriTemplate, variable, handler); err != nil {
		panic(err)
	}
}

func (s *Server) setCompletion(kind, of, argument string, handler CompletionHandler, where func(*completers) *map[completionKey]CompletionHandler) error {
	if of == "" || argument == "" {
		return &RegistrationError{Kind: kind, Name: of, Err: errors.New("a name is empty")}
	}
	s.change(func(r *registry) {
		m := where(&r.completers)
		if handler == nil {
			delete(*m, completionKey{of, argument})
			return
		}
		if *m == nil {
			*m = map[completionKey]CompletionHandler{}
		}
		(*m)[completionKey{of, argument}] = handler
		r.had |= hasCompletions
	})
	return nil
}

// CompleteFrom returns a handler that suggests those values which begin with
// what was typed, without regard to case, in their order.
func CompleteFrom(values ...string) CompletionHandler {
	return func(_ context.Context, _ *servercontext.Request, in CompleteIn) (*mcp.CompletionResultDetails, error) {
		out := &mcp.CompletionResultDetails{}
		for _, v := range values {
			if len(v) >= len(in.Value) && strings.EqualFold(v[:len(in.Value)], in.Value) {
				out.Values = append(out.Values, v)
			}
		}
		return out, nil
	}
}

// handleComplete serves completion/complete.
//
// Specification: server/utilities/completion.
func handleComplete(ctx context.Context, req *servercontext.Request) (any, error) {
	c := callFrom(ctx)
	in, err := c.completeIn(req.Params())
	if err != nil {
		return nil, err
	}
	handler, err := c.completer(ctx, in)
	if err != nil {
		return nil, err
	}
	result := &mcp.CompleteResult{}
	if handler == nil {
		return result, nil
	}
	details, err := handler(ctx, req, *in)
	if err != nil {
		return nil, err
	}
	if details != nil {
		result.Completion = *details
	}
	return result, nil
}

// completeIn reads the params of completion/complete.
func (c *Call) completeIn(params []byte) (*CompleteIn, error) {
	ref, _ := jsonrpc.Get(params, "ref")
	argument, _ := jsonrpc.Get(params, "argument")
	in := &CompleteIn{}
	var ok bool
	if in.Argument, ok = member(argument, "name"); !ok {
		return nil, invalidParams("params.argument.name is required and must be a string")
	}
	if in.Value, ok = member(argument, "value"); !ok {
		return nil, invalidParams("params.argument.value is required and must be a string")
	}
	switch kind, _ := member(ref, "type"); kind {
	case "ref/prompt":
		if in.Prompt, ok = member(ref, "name"); !ok || in.Prompt == "" {
			return nil, invalidParams("params.ref.name is required and must be a string")
		}
	case "ref/resource":
		if in.Template, ok = member(ref, "uri"); !ok || in.Template == "" || len(in.Template) > maxURI {
			return nil, invalidParams("params.ref.uri is required and must be a string of at most %d bytes", maxURI)
		}
	default:
		return nil, invalidParams("params.ref.type must be ref/prompt or ref/resource")
	}
	if c.rev.completionContext {
		settled, _ := jsonrpc.Get(params, "context")
		if raw, ok := jsonrpc.Get(settled, "arguments"); ok {
			arguments, err := textArguments("params.context.arguments", raw)
			if err != nil {
				return nil, err
			}
			in.Arguments = arguments
		}
	}
	return in, nil
}

// member returns the text of an object's member.
func member(raw []byte, name string) (string, bool) {
	if len(raw) == 0 || raw[0] != '{' {
		return "", false
	}
	value, _ := jsonrpc.Get(raw, name)
	return jsonrpc.Unquote(value)
}

// completer finds the handler for what is completed, nil when it has none. What
// does not exist, or not for this request, is an error.
func (c *Call) completer(ctx context.Context, in *CompleteIn) (CompletionHandler, error) {
	own := c.reg.completers.prompts
	of := in.Prompt
	if in.Prompt != "" {
		p := c.findPrompt(ctx, in.Prompt)
		if p == nil {
			return nil, invalidParams("unknown prompt %q", bounded(in.Prompt))
		}
		if p.argument(in.Argument) == nil {
			return nil, invalidParams("the prompt %q has no argument %q", bounded(in.Prompt), bounded(in.Argument))
		}
	} else {
		own = c.reg.completers.templates
		t, known := c.reg.templates[in.Template]
		if known {
			known = c.seesTemplate(ctx, t)
		} else if f := c.findResource(ctx, in.Template); f != nil {
			known, t = true, f.template
		}
		if !known {
			return nil, invalidParams("unknown resource or template %q", bounded(in.Template))
		}
		if t != nil {
			of, in.Template = t.definition.URITemplate, t.definition.URITemplate
			if !slices.Contains(t.variables, in.Argument) {
				return nil, invalidParams("the template %q has no variable %q", bounded(of), bounded(in.Argument))
			}
		}
	}
	if handler := own[completionKey{of, in.Argument}]; handler != nil {
		return handler, nil
	}
	return c.reg.completers.all, nil
}

// appendComplete appends suggestions: at most 100, never null.
func (r *revision) appendComplete(b []byte, c *Call, v *mcp.CompleteResult) ([]byte, error) {
	values, total, more := v.Completion.Values, v.Completion.Total, v.Completion.HasMore
	if total <= 0 && !more {
		total = len(values)
	}
	if len(values) > maxCompletions {
		values, more = values[:maxCompletions], true
	}
	o := r.appendHead(b, c, resultComplete, v.Meta)
	o.key("completion")
	o.b = append(o.b, `{"values":[`...)
	for i, value := range values {
		if i > 0 {
			o.b = append(o.b, ',')
		}
		o.b = jsonrpc.AppendString(o.b, value)
	}
	o.b = append(o.b, ']')
	if total > 0 || !more {
		o.b = append(o.b, `,"total":`...)
		o.b = appendNumber(o.b, float64(total))
	}
	if more {
		o.b = append(o.b, `,"hasMore":true}`...)
	} else {
		o.b = append(o.b, `,"hasMore":false}`...)
	}
	return o.end(), nil
}
