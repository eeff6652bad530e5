package schema

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Header binds a property of a tool's arguments to the HTTP header Mcp-Param-<Name> that mirrors it (SEP-2243).
type Header struct {
	Name string   // as given by x-mcp-header
	Path []string // names from the root to the property
	Type string   // string, integer or boolean
}

// Headers lists the properties with x-mcp-header, ordered by name. An error is returned when one of them breaks
// the rules: the name is an HTTP token, unique without regard to case; the property is a string, an integer or a
// boolean; and it is reached from the root by properties alone.
func (s *Schema) Headers() ([]Header, error) {
	doc, _, err := parse(s.raw, nil, maxValueDepth)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	var h headers
	if err := h.schema(doc, nil); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	if countHeaders(doc, false) != len(h.found) {
		return nil, errors.New("schema: x-mcp-header must be reached from the root by properties alone")
	}
	slices.SortFunc(h.found, func(a, b Header) int { return cmp.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)) })
	for i := 1; i < len(h.found); i++ {
		if strings.EqualFold(h.found[i-1].Name, h.found[i].Name) {
			return nil, fmt.Errorf("schema: x-mcp-header %s is given twice", quote(h.found[i].Name))
		}
	}
	return h.found, nil
}

type headers struct{ found []Header }

func (h *headers) schema(v any, path []string) error {
	obj, _ := v.(map[string]any)
	if name, ok := obj["x-mcp-header"]; ok {
		text, _ := name.(string)
		if err := checkHeaderName(text); err != nil {
			return err
		}
		kind, _ := obj["type"].(string)
		if kind != "string" && kind != "integer" && kind != "boolean" {
			return fmt.Errorf("x-mcp-header %s needs a string, an integer or a boolean", quote(text))
		}
		if len(path) == 0 {
			return errors.New("x-mcp-header must stand at a property")
		}
		h.found = append(h.found, Header{text, slices.Clone(path), kind})
	}
	props, _ := obj["properties"].(map[string]any)
	for name, sub := range props {
		if err := h.schema(sub, append(path, name)); err != nil {
			return err
		}
	}
	return nil
}

// countHeaders counts the keyword everywhere that it is one: not as the name of a property, and not in data.
func countHeaders(v any, names bool) int {
	n := 0
	switch v := v.(type) {
	case map[string]any:
		for key, sub := range v {
			switch {
			case names:
				n += countHeaders(sub, false)
			case key == "x-mcp-header":
				n++
			case key == "definitions" || roleOf(key) == schemaMap:
				n += countHeaders(sub, true)
			case roleOf(key) != aValue || key == "unevaluatedProperties" || key == "unevaluatedItems" || key == "additionalItems":
				n += countHeaders(sub, false)
			}
		}
	case []any:
		for _, sub := range v {
			n += countHeaders(sub, false)
		}
	}
	return n
}

func checkHeaderName(name string) error {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r))
	}) {
		return fmt.Errorf("x-mcp-header %s is not a header name", quote(name))
	}
	return nil
}
