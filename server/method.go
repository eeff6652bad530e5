package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/heedmcp/heed/internal/jsonrpc"
	"github.com/heedmcp/heed/internal/schema"
	"github.com/heedmcp/heed/servercontext"
)

// Methods of the protocol.
const (
	methodInitialize  = "initialize"
	methodDiscover    = "server/discover"
	methodPing        = "ping"
	methodSetLevel    = "logging/setLevel"
	methodListTools   = "tools/list"
	methodCallTool    = "tools/call"
	methodInitialized = "notifications/initialized"

	methodRootsChanged  = "notifications/roots/list_changed"
	methodListPrompts   = "prompts/list"
	methodGetPrompt     = "prompts/get"
	methodListResources = "resources/list"
	methodListTemplates = "resources/templates/list"
	methodReadResource  = "resources/read"
	methodSubscribe     = "resources/subscribe"
	methodUnsubscribe   = "resources/unsubscribe"
	methodComplete      = "completion/complete"
)

// eras says in which revisions a method exists.
type eras uint8

const (
	eraHandshake eras = 1 << iota
	eraStateless
	eraBoth = eraHandshake | eraStateless
)

// method is one entry of the method table. It is never changed once it is in one.
type method struct {
	name         string
	notification bool
	eras         eras
	// nameParam is the member of params that names what is called, as the
	// Mcp-Name header repeats it; "" if none does.
	nameParam string
	// input says that its handler may ask for input: the request can be answered
	// with input_required.
	input bool
	// advertised tells whether the capability that the method belongs to is
	// advertised; nil: it belongs to none.
	advertised func(*registry) bool
	// tool finds the tool that a call is for; nil for methods other than tools/call.
	tool func(*Call) *tool

	// endless says that its requests last until somebody ends them: they are not
	// counted as in flight, have no limits and take no slots, and a shutdown ends them first.
	endless bool

	// brief says that its handler ends at once: it waits for no slot, so that a server
	// with all hands full still gives a sign of life.
	brief bool

	handler Handler
}

func (m *method) in(rev *revision) bool {
	if rev.stateless {
		return m.eras&eraStateless != 0
	}
	return m.eras&eraHandshake != 0
}

func (m *method) available(reg *registry) bool {
	return m.advertised == nil || m.advertised(reg)
}

func (m *method) wrapped(middleware []Middleware) *method {
	w := *m
	w.handler = wrap(m.handler, middleware)
	return &w
}

// toolOf returns the tool that c calls, nil if it calls none.
func (m *method) toolOf(c *Call) *tool {
	if m.tool == nil {
		return nil
	}
	return m.tool(c)
}

func (m *method) slotsOf(c *Call) *slots {
	if t := m.toolOf(c); t != nil {
		return &t.slots
	}
	return nil
}

// builtinMethods is the table of the protocol's own methods.
func (s *Server) builtinMethods() map[string]*method {
	table := map[string]*method{}
	for _, m := range []*method{
		{name: methodInitialize, eras: eraHandshake, handler: s.handleInitialize},
		{name: methodDiscover, eras: eraStateless, brief: true, handler: s.handleDiscover},
		{name: methodPing, eras: eraHandshake, brief: true, handler: handlePing},
		{name: methodInitialized, notification: true, eras: eraHandshake, handler: handleInitialized},
		{name: methodRootsChanged, notification: true, eras: eraHandshake, handler: handleRootsChanged},
		{name: methodSetLevel, eras: eraHandshake, brief: true, advertised: advertisesLogging, handler: handleSetLevel},
		{name: methodListen, eras: eraStateless, endless: true, handler: s.handleListen},
		{name: methodListTools, eras: eraBoth, advertised: advertisesTools, handler: handleListTools},
		{name: methodCallTool, eras: eraBoth, advertised: advertisesTools, nameParam: "name", input: true, tool: calledTool, handler: handleCallTool},
		{name: methodListPrompts, eras: eraBoth, advertised: advertisesPrompts, handler: handleListPrompts},
		{name: methodGetPrompt, eras: eraBoth, advertised: advertisesPrompts, nameParam: "name", input: true, handler: handleGetPrompt},
		{name: methodListResources, eras: eraBoth, advertised: advertisesResources, handler: handleListResources},
		{name: methodListTemplates, eras: eraBoth, advertised: advertisesResources, handler: handleListTemplates},
		{name: methodReadResource, eras: eraBoth, advertised: advertisesResources, nameParam: "uri", input: true, handler: handleReadResource},
		{name: methodSubscribe, eras: eraHandshake, advertised: advertisesSubscribe, nameParam: "uri", handler: handleSubscribe},
		{name: methodUnsubscribe, eras: eraHandshake, advertised: advertisesSubscribe, nameParam: "uri", handler: handleUnsubscribe},
		{name: methodComplete, eras: eraBoth, advertised: advertisesCompletions, handler: handleComplete},
	} {
		table[m.name] = m
	}
	return table
}

// AddMethod registers a custom method: a request, or a notification when the
// name begins with "notifications/", whose result is then ignored. It exists in both
// eras and is cancellable like any other. Params are decoded into In, whose
// struct tags may ask for validation as those of a tool do, without their _meta;
// json.RawMessage takes them as they are.
//
// It returns an error when the name is empty, reserved by the protocol, or
// when In has no schema. A method of the same name is replaced.
func AddMethod[In, Out any](s *Server, name string, handler func(ctx context.Context, req *servercontext.Request, in In) (Out, error)) error {
	fail := func(err error) error { return &RegistrationError{Kind: "method", Name: name, Err: err} }
	switch {
	case name == "":
		return fail(errors.New("the name is empty"))
	case handler == nil:
		return fail(errors.New("the handler is nil"))
	case s.builtin[name] != nil || reserved(name):
		return fail(errors.New("the name is the protocol's own"))
	}
	in, err := newInput[In]()
	if err != nil {
		return fail(err)
	}
	m := &method{
		name:         name,
		notification: strings.HasPrefix(name, "notifications/"),
		eras:         eraBoth,
		handler: func(ctx context.Context, req *servercontext.Request) (any, error) {
			v, err := in.decode(req.Params())
			if err != nil {
				return nil, invalidParams("%v", err)
			}
			return handler(ctx, req, v)
		},
	}
	s.change(func(r *registry) { r.custom[name] = m })
	return nil
}

// MustAddMethod is AddMethod for names that are known to be good; it panics
// where AddMethod returns an error.
func MustAddMethod[In, Out any](s *Server, name string, handler func(ctx context.Context, req *servercontext.Request, in In) (Out, error)) {
	if err := AddMethod(s, name, handler); err != nil {
		panic(err)
	}
}

// reserved tells whether a name belongs to the protocol, whether or not this
// server has it.
func reserved(name string) bool {
	switch prefix, _, _ := strings.Cut(name, "/"); prefix {
	case "tools", "prompts", "resources", "completion", "logging", "sampling", "elicitation", "roots",
		"server", "subscriptions", "tasks", "initialize", "ping":
		return true
	}
	switch name {
	case "notifications/cancelled", "notifications/progress", "notifications/message", "notifications/initialized",
		"notifications/roots/list_changed", "notifications/tools/list_changed", "notifications/prompts/list_changed",
		"notifications/resources/list_changed", methodResourceUpdated, "notifications/elicitation/complete",
		"notifications/subscriptions/acknowledged", "notifications/tasks":
		return true
	}
	return false
}

// withoutMeta returns params without _meta: every request may have that, in the
// stateless era has it, and handlers find it in their Request.
func withoutMeta(params json.RawMessage) json.RawMessage {
	if _, ok := jsonrpc.Get(params, "_meta"); !ok {
		return params
	}
	b := []byte{'{'}
	for name, value := range jsonrpc.Members(params) {
		if name == "_meta" {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = jsonrpc.AppendString(b, name)
		b = append(b, ':')
		b = append(b, value...)
	}
	return append(b, '}')
}

// input decodes and validates raw JSON into an In.
type input[In any] struct {
	schema *schema.Schema // nil: anything goes
}

func newInput[In any]() (*input[In], error) {
	inferred, err := schemaFor[In]()
	return &input[In]{schema: inferred}, err
}

func (i *input[In]) decode(raw json.RawMessage) (v In, err error) {
	if p, ok := any(&v).(*json.RawMessage); ok {
		*p = raw
		return v, nil
	}
	if raw = withoutMeta(raw); len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	if i.schema != nil {
		if raw, err = i.schema.Prepare(raw); err != nil {
			return v, err
		}
	}
	if err := schema.Decode(raw, &v); err != nil {
		return v, fmt.Errorf("%w", err)
	}
	return v, nil
}
