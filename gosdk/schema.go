package gosdk

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// inferInput gives a tool the input schema that the official SDK would.
func inferInput[In any](t *mcp.Tool) error {
	if t.InputSchema != nil {
		return nil
	}
	if reflect.TypeFor[In]() == reflect.TypeFor[any]() {
		t.InputSchema = &jsonschema.Schema{Type: "object"}
		return nil
	}
	inferred, err := infer(reflect.TypeFor[In]())
	t.InputSchema = inferred
	return err
}

// newOutput gives a tool the output schema that the official SDK would, none for any.
func newOutput[Out any](t *mcp.Tool) (*output[Out], error) {
	o := &output[Out]{}
	of := reflect.TypeFor[Out]()
	if t.OutputSchema != nil {
		var err error
		o.defaults, err = newDefaults(t.OutputSchema)
		return o, err
	}
	if of == reflect.TypeFor[any]() {
		return o, nil
	}
	if of.Kind() == reflect.Pointer {
		o.zero = reflect.Zero(of.Elem()).Interface()
	}
	inferred, err := infer(of)
	if err != nil {
		return nil, err
	}
	t.OutputSchema = inferred
	o.defaults, err = newDefaults(inferred)
	return o, err
}

// infer infers a schema; a pointer has that of what it points to.
func infer(t reflect.Type) (any, error) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	schema, err := jsonschema.ForType(t, &jsonschema.ForOptions{})
	if err != nil {
		return nil, err
	}
	if schema == nil {
		return nil, fmt.Errorf("%v has no schema", t)
	}
	return schema, nil
}

// defaults completes structured content. The server validates it; what it leaves
// to the handler is what the official SDK does not.
type defaults struct {
	schema *jsonschema.Resolved // nil: nothing to complete
	object bool                 // a nil map or pointer counts as an empty object
}

func newDefaults(given any) (*defaults, error) {
	schema, ok := given.(*jsonschema.Schema)
	if !ok {
		raw, err := json.Marshal(given)
		if err != nil {
			return nil, err
		}
		schema = &jsonschema.Schema{}
		if err := json.Unmarshal(raw, schema); err != nil {
			return nil, err
		}
	}
	d := &defaults{object: schema.Type == "object"}
	for _, property := range schema.Properties {
		if property != nil && len(property.Default) > 0 {
			resolved, err := schema.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
			if err != nil {
				return nil, err
			}
			d.schema = resolved
			break
		}
	}
	return d, nil
}

func (d *defaults) apply(raw []byte) ([]byte, error) {
	if d == nil {
		return raw, nil
	}
	if d.object && string(raw) == "null" {
		raw = []byte("{}")
	}
	if d.schema == nil || raw[0] != '{' {
		return raw, nil
	}
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return nil, err
	}
	if err := d.schema.ApplyDefaults(&value); err != nil {
		return nil, fmt.Errorf("defaults of the output schema: %w", err)
	}
	return json.Marshal(value)
}
