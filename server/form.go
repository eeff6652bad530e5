package server

import (
	"encoding/json"
	"fmt"

	"github.com/heedmcp/heed/internal/jsonrpc"
	"github.com/heedmcp/heed/servercontext"
)

// Forms of 2025-06-18, the first revision that had any, know neither several choices of a
// list nor titles of choices beside their values.
//
// Specification: client/elicitation (2025-06-18 and 2025-11-25), requested schema.

// supportsForm tells whether the fields of a form exist in this revision.
func (r *revision) supportsForm(requested any) error {
	if r.urlElicitation || requested == nil {
		return nil
	}
	for name, field := range jsonrpc.Members(fieldsOf(requested)) {
		if t, _ := jsonrpc.Get(field, "type"); string(t) == `"array"` {
			return fmt.Errorf("%w: the forms of %s have no multiple choice, such as %q", servercontext.ErrNotSupported, r.version, bounded(name))
		}
	}
	return nil
}

// form projects a form.
func (r *revision) form(requested any) any {
	fields := fieldsOf(requested)
	if r.urlElicitation || fields == nil {
		return requested
	}
	projected := []byte{'{'}
	for name, field := range jsonrpc.Members(fields) {
		projected = appendMember(projected, name, olderField(field))
	}
	projected = append(projected, '}')
	all := []byte{'{'}
	for name, value := range jsonrpc.Members(encodedForm(requested)) {
		if name == "properties" {
			value = projected
		}
		all = appendMember(all, name, value)
	}
	return json.RawMessage(append(all, '}'))
}

// appendMember appends a member to an object that was begun.
func appendMember(b []byte, name string, value []byte) []byte {
	if len(b) > 1 {
		b = append(b, ',')
	}
	b = jsonrpc.AppendString(b, name)
	b = append(b, ':')
	return append(b, value...)
}

// fieldsOf are the encoded properties of a form, nil when it has none.
func fieldsOf(requested any) []byte {
	fields, _ := jsonrpc.Get(encodedForm(requested), "properties")
	if len(fields) == 0 || fields[0] != '{' {
		return nil
	}
	return fields
}

// encodedForm is the form's schema, nil when there is none. Forms were encoded, and found to be
// objects, when they were checked.
func encodedForm(requested any) []byte {
	raw, err := appendJSON(nil, requested)
	if err != nil || len(raw) == 0 || raw[0] != '{' {
		return nil
	}
	return raw
}

// olderField writes a choice between titled values the older way: the values in enum,
// the titles in enumNames.
func olderField(field []byte) []byte {
	var choices []struct {
		Const json.RawMessage `json:"const"`
		Title string          `json:"title"`
	}
	oneOf, _ := jsonrpc.Get(field, "oneOf")
	if len(oneOf) == 0 || json.Unmarshal(oneOf, &choices) != nil {
		return field
	}
	values, titles := []byte{'['}, []byte{'['}
	for i, choice := range choices {
		if choice.Const == nil {
			return field // a choice of another kind
		}
		if i > 0 {
			values, titles = append(values, ','), append(titles, ',')
		}
		values = append(values, choice.Const...)
		titles = jsonrpc.AppendString(titles, choice.Title)
	}
	older := []byte{'{'}
	for name, value := range jsonrpc.Members(field) {
		if name == "oneOf" {
			older = appendMember(older, "enum", append(values, ']'))
			older = appendMember(older, "enumNames", append(titles, ']'))
			continue
		}
		older = appendMember(older, name, value)
	}
	return append(older, '}')
}
