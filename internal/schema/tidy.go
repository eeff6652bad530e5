package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// tidy rewrites an inferred schema for readers and strict clients: type first, then title and description; {}
// instead of true, because some clients take only objects for schemas; no HTML escapes. The order of properties
// stays.
func tidy(text []byte) (json.RawMessage, error) {
	t := tidier{scanner{b: text}}
	out, err := t.value(nil, aSchema)
	return out, err
}

type tidier struct{ scanner }

// role is what a value is within a schema.
type role uint8

const (
	aValue     role = iota // data: default, enum, …
	aSchema                // a schema
	schemaMap              // names to schemas: properties, $defs, …
	schemaList             // allOf, …
)

func roleOf(keyword string) role {
	switch keyword {
	case "properties", "$defs", "patternProperties", "dependentSchemas":
		return schemaMap
	case "allOf", "anyOf", "oneOf", "prefixItems":
		return schemaList
	case "items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames", "contentSchema":
		return aSchema
	}
	return aValue
}

func (t *tidier) value(out []byte, r role) ([]byte, error) {
	t.space()
	switch t.peek() {
	case '{':
		return t.object(out, r)
	case '[':
		return t.array(out, r)
	case '"':
		raw, plain, err := t.str()
		if err != nil || plain {
			return append(out, raw...), err
		}
		return appendText(out, unquote(raw, plain)), nil
	case 't':
		if r == aSchema {
			return append(out, "{}"...), t.word("true")
		}
		return append(out, "true"...), t.word("true")
	case 'f':
		return append(out, "false"...), t.word("false")
	case 'n':
		return append(out, "null"...), t.word("null")
	}
	raw, _, err := t.num()
	return append(out, raw...), err
}

type tidyMember struct {
	name string
	text []byte // "name":value
}

func (t *tidier) object(out []byte, r role) ([]byte, error) {
	t.i++
	var members []tidyMember
	for t.space(); t.peek() != '}'; t.space() {
		if len(members) > 0 {
			if err := t.expect(','); err != nil {
				return nil, err
			}
			t.space()
		}
		raw, plain, err := t.str()
		if err != nil {
			return nil, err
		}
		name := unquote(raw, plain)
		if err := t.expect(':'); err != nil {
			return nil, err
		}
		sub := aValue
		switch r {
		case aSchema:
			sub = roleOf(name)
		case schemaMap:
			sub = aSchema
		}
		text, err := t.value(append(appendText(nil, name), ':'), sub)
		if err != nil {
			return nil, err
		}
		members = append(members, tidyMember{name, text})
	}
	t.i++
	if r == aSchema {
		members = allowNull(members)
		slices.SortStableFunc(members, func(a, b tidyMember) int { return rank(a.name) - rank(b.name) })
	}
	out = append(out, '{')
	for i, m := range members {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, m.text...)
	}
	return append(out, '}'), nil
}

// allowNull carries out nullMark: in the type where that is enough, else as an alternative.
func allowNull(members []tidyMember) []tidyMember {
	find := func(name string) int {
		return slices.IndexFunc(members, func(m tidyMember) bool { return m.name == name })
	}
	mark := find(nullMark)
	if mark < 0 {
		return members
	}
	members = slices.Delete(members, mark, mark+1)
	kind := find("type")
	if kind >= 0 && find("enum") < 0 && find("const") < 0 {
		_, name, _ := bytes.Cut(members[kind].text, []byte(":"))
		members[kind].text = fmt.Appendf(nil, `"type":[%s,"null"]`, name)
		return members
	}
	if len(members) == 0 || kind < 0 && find("$ref") < 0 && find("oneOf") < 0 && find("anyOf") < 0 {
		return members // accepts anything
	}
	var text []byte
	for i, m := range members {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, m.text...)
	}
	return []tidyMember{{"anyOf", fmt.Appendf(nil, `"anyOf":[{%s},{"type":"null"}]`, text)}}
}

func rank(keyword string) int {
	switch keyword {
	case "type":
		return 0
	case "title":
		return 1
	case "description":
		return 2
	case "$defs":
		return 4
	}
	return 3
}

func (t *tidier) array(out []byte, r role) ([]byte, error) {
	sub := aValue
	if r == schemaList {
		sub = aSchema
	}
	t.i++
	out = append(out, '[')
	for n := 0; ; n++ {
		if t.space(); t.peek() == ']' {
			t.i++
			return append(out, ']'), nil
		}
		if n > 0 {
			if err := t.expect(','); err != nil {
				return nil, err
			}
			out = append(out, ',')
		}
		var err error
		if out, err = t.value(out, sub); err != nil {
			return nil, err
		}
	}
}
