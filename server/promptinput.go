package server

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/heedmcp/heed/internal/jsonrpc"
	"github.com/heedmcp/heed/internal/schema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// promptInput turns the arguments of a prompt, which are text, into an In.
type promptInput[In any] struct {
	declared []*mcp.PromptArgument // what In's fields say
	schema   *schema.Schema        // nil: In is a map
	literal  map[string]bool       // by argument: the text is JSON, not a string
}

func newPromptInput[In any]() (*promptInput[In], error) {
	t := reflect.TypeFor[In]()
	if t == reflect.TypeFor[map[string]string]() {
		return &promptInput[In]{}, nil
	}
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("arguments must be a struct or a map[string]string, not %v", t)
	}
	raw, err := schema.For(t)
	if err != nil {
		return nil, err
	}
	p := &promptInput[In]{literal: map[string]bool{}}
	if p.schema, err = schema.Compile(raw, nil); err != nil {
		return nil, err
	}
	var required []string
	if names, ok := jsonrpc.Get(raw, "required"); ok {
		if err := json.Unmarshal(names, &required); err != nil {
			return nil, err
		}
	}
	properties, _ := jsonrpc.Get(raw, "properties")
	for name, property := range jsonrpc.Members(properties) {
		title, _ := jsonrpc.Get(property, "title")
		description, _ := jsonrpc.Get(property, "description")
		a := &mcp.PromptArgument{Name: name, Required: slices.Contains(required, name)}
		a.Title, _ = jsonrpc.Unquote(title)
		a.Description, _ = jsonrpc.Unquote(description)
		p.declared = append(p.declared, a)
		if p.literal[name], err = isLiteral(property); err != nil {
			return nil, fmt.Errorf("argument %q: %w", name, err)
		}
	}
	return p, nil
}

// isLiteral tells whether a property is a number or a boolean, so that its text
// is JSON as it stands. An error says that no text can be what the property wants.
func isLiteral(property json.RawMessage) (bool, error) {
	kind, _ := jsonrpc.Get(property, "type")
	switch name, _ := jsonrpc.Unquote(kind); name {
	case "string":
		return false, nil
	case "integer", "number", "boolean":
		return true, nil
	}
	return false, fmt.Errorf("its type must be a string, a number or a boolean")
}

func (p *promptInput[In]) decode(given map[string]string) (in In, err error) {
	if p.schema == nil {
		*any(&in).(*map[string]string) = given
		return in, nil
	}
	o := &object{b: []byte{'{'}}
	for _, a := range p.declared {
		text, ok := given[a.Name]
		if !ok {
			continue
		}
		if o.begun {
			o.b = append(o.b, ',')
		}
		o.begun = true
		o.b = jsonrpc.AppendString(o.b, a.Name)
		o.b = append(o.b, ':')
		if p.literal[a.Name] && jsonrpc.Valid([]byte(text), jsonrpc.Limits{}) == nil {
			o.b = append(o.b, text...)
			continue
		}
		o.b = jsonrpc.AppendString(o.b, text)
	}
	arguments, err := p.schema.Prepare(o.end())
	if err != nil {
		return in, err
	}
	return in, schema.Decode(arguments, &in)
}
