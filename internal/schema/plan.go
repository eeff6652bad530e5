package schema

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// plan says which defaults to add to a value and its parts. A nil plan adds nothing. Plans of recursive schemas
// refer to themselves. Built once by planner, read-only afterwards.
type plan struct {
	defaults   []defaultMember
	properties map[string]*plan
	items      *plan
	useful     bool // some plan reachable from here has defaults
}

type defaultMember struct {
	name  string
	value any
	text  string // "name":value
}

func (p *plan) property(name string) *plan {
	if p == nil {
		return nil
	}
	return p.properties[name]
}

func (p *plan) item() *plan {
	if p == nil {
		return nil
	}
	return p.items
}

// planFor follows properties, items and $ref. Defaults in branches (anyOf, if, …) are not applied: which branch
// holds is known only after validation.
func planFor(root *jsonschema.Schema) *plan {
	memo := map[*jsonschema.Schema]*plan{}
	var build func(s *jsonschema.Schema) *plan
	build = func(s *jsonschema.Schema) *plan {
		s = target(s)
		if s == nil {
			return nil
		}
		if p, ok := memo[s]; ok {
			return p
		}
		p := &plan{properties: map[string]*plan{}}
		memo[s] = p
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			sub := s.Properties[name]
			if d := defaultOf(sub); d != nil {
				p.defaults = append(p.defaults, defaultMember{name, *d, encodeMember(name, *d)})
			}
			p.properties[name] = build(sub)
		}
		p.items = build(s.Items2020)
		if old, ok := s.Items.(*jsonschema.Schema); ok {
			p.items = build(old)
		}
		return p
	}
	p := build(root)
	for again := true; again; { // to a fixed point, because plans may refer to themselves
		again = false
		for _, q := range memo {
			if !q.useful && (len(q.defaults) > 0 || q.items != nil && q.items.useful || anyUseful(q.properties)) {
				q.useful, again = true, true
			}
		}
	}
	if p == nil || !p.useful {
		return nil
	}
	return p
}

func anyUseful(m map[string]*plan) bool {
	for _, p := range m {
		if p != nil && p.useful {
			return true
		}
	}
	return false
}

// target follows references that stand for the whole schema.
func target(s *jsonschema.Schema) *jsonschema.Schema {
	for hops := 0; s != nil && s.Ref != nil && len(s.Properties) == 0 && s.Items2020 == nil && hops < maxInPlace; hops++ {
		s = s.Ref
	}
	return s
}

func defaultOf(s *jsonschema.Schema) *any {
	for hops := 0; s != nil && hops < maxInPlace; hops++ {
		if s.Default != nil {
			return s.Default
		}
		s = s.Ref
	}
	return nil
}

func encodeMember(name string, value any) string {
	return string(appendJSON(append(appendJSON(nil, name), ':'), value))
}

func appendJSON(b []byte, v any) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("schema: a parsed value does not encode: " + err.Error())
	}
	return append(b, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...)
}

func appendText(b []byte, s string) []byte { return appendJSON(b, s) }
