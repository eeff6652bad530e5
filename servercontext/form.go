package servercontext

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/heedmcp/heed/internal/jsonrpc"
	"github.com/heedmcp/heed/internal/schema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A form's schema is a flat object of primitive properties, since clients must be
// able to draw it. It is checked before the client is asked; what the user
// entered is checked against it after.
//
// Specification: client/elicitation, requested schema.

// compileForm compiles the schema of a form. nil asks for consent only.
func compileForm(requested any) (*schema.Schema, error) {
	if requested == nil {
		return nil, nil
	}
	raw, err := json.Marshal(requested)
	if err != nil {
		return nil, fmt.Errorf("requestedSchema: %w", err)
	}
	if err := checkForm(raw); err != nil {
		return nil, fmt.Errorf("requestedSchema: %w", err)
	}
	form, err := schema.Compile(raw, nil)
	if err != nil {
		return nil, fmt.Errorf("requestedSchema: %w", err)
	}
	return form, nil
}

func checkForm(raw []byte) error {
	if t, _ := jsonrpc.Get(raw, "type"); string(t) != `"object"` {
		return errors.New(`the root must have "type":"object"`)
	}
	properties, ok := jsonrpc.Get(raw, "properties")
	if !ok {
		return nil
	}
	if len(properties) == 0 || properties[0] != '{' {
		return errors.New("properties must be an object")
	}
	for name, property := range jsonrpc.Members(properties) {
		if !primitive(property) {
			return fmt.Errorf("property %q must be a string, number, integer, boolean, enum, or array of enum values", name)
		}
	}
	return nil
}

func primitive(property []byte) bool {
	if len(property) == 0 || property[0] != '{' {
		return false
	}
	t, _ := jsonrpc.Get(property, "type")
	switch string(t) {
	case `"string"`, `"number"`, `"integer"`, `"boolean"`:
		return true
	case `"array"`:
		items, _ := jsonrpc.Get(property, "items")
		if len(items) == 0 || items[0] != '{' {
			return false
		}
		for _, choice := range []string{"enum", "anyOf", "oneOf"} {
			if _, ok := jsonrpc.Get(items, choice); ok {
				return true
			}
		}
	}
	return false
}

// fill checks what the user entered, and adds the defaults of what is missing.
func fill(form *schema.Schema, res *mcp.ElicitResult) error {
	if form == nil || res.Action != "accept" {
		return nil
	}
	raw, err := json.Marshal(res.Content)
	if err != nil {
		return err
	}
	if res.Content == nil {
		raw = []byte("{}")
	}
	if raw, err = form.Prepare(raw); err != nil {
		return fmt.Errorf("elicitation/create: the content does not fit the requested schema: %w", err)
	}
	return json.Unmarshal(raw, &res.Content)
}
