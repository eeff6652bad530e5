package schema

import (
	"fmt"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// graph is what the compiled subschemas apply to what. Read-only once built.
type graph struct {
	byLocation map[string]*jsonschema.Schema
	anchors    map[string][]*jsonschema.Schema             // targets a $dynamicRef may find, by name
	recursive  []*jsonschema.Schema                        // targets a $recursiveRef may find
	applied    map[*jsonschema.Schema][]*jsonschema.Schema // inPlace of every subschema, once all anchors are known
	paths      int                                         // ways through the schema from its root, at most maxPaths; that many when it is recursive
	weight     int                                         // most steps that one byte of a value costs one subschema
	unique     bool                                        // uniqueItems occurs
}

func newGraph(root *jsonschema.Schema, more []*jsonschema.Schema) (*graph, error) {
	g := &graph{byLocation: map[string]*jsonschema.Schema{}, anchors: map[string][]*jsonschema.Schema{},
		applied: map[*jsonschema.Schema][]*jsonschema.Schema{}, weight: 1}
	all := []*jsonschema.Schema{}
	for queue := append([]*jsonschema.Schema{root}, more...); len(queue) > 0; queue = queue[1:] {
		s := queue[0]
		if s == nil || g.byLocation[s.Location] != nil {
			continue
		}
		g.byLocation[s.Location] = s
		all = append(all, s)
		g.note(s)
		queue = append(append(queue, g.inPlace(s)...), parts(s)...)
	}
	for _, s := range all {
		g.applied[s] = g.inPlace(s)
	}
	local := map[*jsonschema.Schema]int{}
	for _, s := range all {
		n, ok := g.count(s, local, func(s *jsonschema.Schema) []*jsonschema.Schema { return g.applied[s] })
		if !ok {
			return nil, fmt.Errorf("subschema %s refers to itself without going into a part of the value", place(s))
		}
		if n > maxInPlace {
			return nil, fmt.Errorf("subschema %s applies more than %d subschemas to one value", place(s), maxInPlace)
		}
	}
	n, ok := g.count(root, map[*jsonschema.Schema]int{}, func(s *jsonschema.Schema) []*jsonschema.Schema {
		return append(slices.Clip(g.applied[s]), parts(s)...)
	})
	if g.paths = n; !ok {
		g.paths = maxPaths
	}
	return g, nil
}

func (g *graph) note(s *jsonschema.Schema) {
	if s.DynamicAnchor != "" {
		g.anchors[s.DynamicAnchor] = append(g.anchors[s.DynamicAnchor], s)
	}
	if s.RecursiveAnchor {
		g.recursive = append(g.recursive, s)
	}
	g.unique = g.unique || s.UniqueItems
	w := 1 + len(s.Required)
	if s.Enum != nil {
		w += len(s.Enum.Values)
	}
	if isRegex(s) {
		w += maxPatternSteps
	}
	if s.Pattern != nil {
		w += patternSteps(s.Pattern)
	}
	for re := range s.PatternProperties {
		w += patternSteps(re)
	}
	g.weight = max(g.weight, w)
}

// isRegex says that s compiles the value.
func isRegex(s *jsonschema.Schema) bool { return s.Format != nil && s.Format.Name == "regex" }

const onStack = -1

// count sums the ways from s along the edges, at most maxPaths; false when an edge leads back.
func (g *graph) count(s *jsonschema.Schema, memo map[*jsonschema.Schema]int, edges func(*jsonschema.Schema) []*jsonschema.Schema) (int, bool) {
	if n, ok := memo[s]; ok {
		return n, n != onStack
	}
	memo[s] = onStack
	total := 1
	for _, sub := range edges(s) {
		n, ok := g.count(sub, memo, edges)
		if !ok {
			return 0, false
		}
		total = min(total+n, maxPaths)
	}
	memo[s] = total
	return total, true
}

// inPlace lists the subschemas that s applies to the same value, as if all branches were taken.
func (g *graph) inPlace(s *jsonschema.Schema) []*jsonschema.Schema {
	var out []*jsonschema.Schema
	add := func(subs ...*jsonschema.Schema) {
		for _, sub := range subs {
			if sub != nil {
				out = append(out, sub)
			}
		}
	}
	add(s.Ref)
	if s.DraftVersion < 2019 && s.Ref != nil {
		return out // siblings of $ref are ignored there
	}
	if s.RecursiveRef != nil {
		add(s.RecursiveRef)
		add(without(g.recursive, s.RecursiveRef)...)
	}
	if d := s.DynamicRef; d != nil {
		add(d.Ref)
		if d.Anchor != "" {
			add(without(g.anchors[d.Anchor], d.Ref)...)
		}
	}
	add(s.Not, s.If, s.Then, s.Else)
	add(s.AllOf...)
	add(s.AnyOf...)
	add(s.OneOf...)
	for _, sub := range s.DependentSchemas {
		add(sub)
	}
	for _, dep := range s.Dependencies {
		if sub, ok := dep.(*jsonschema.Schema); ok {
			add(sub)
		}
	}
	return out
}

func without(list []*jsonschema.Schema, s *jsonschema.Schema) []*jsonschema.Schema {
	return slices.DeleteFunc(slices.Clone(list), func(o *jsonschema.Schema) bool { return o == s })
}

// parts lists the subschemas that s applies to members, names and elements.
func parts(s *jsonschema.Schema) []*jsonschema.Schema {
	var out []*jsonschema.Schema
	add := func(v any) {
		switch v := v.(type) {
		case *jsonschema.Schema:
			if v != nil {
				out = append(out, v)
			}
		case []*jsonschema.Schema:
			out = append(out, v...)
		}
	}
	for _, sub := range s.Properties {
		add(sub)
	}
	for _, sub := range s.PatternProperties {
		add(sub)
	}
	for _, v := range []any{
		s.AdditionalProperties, s.PropertyNames, s.UnevaluatedProperties, s.Items, s.AdditionalItems,
		s.PrefixItems, s.Items2020, s.Contains, s.UnevaluatedItems,
	} {
		add(v)
	}
	return out
}

// place is where a subschema stands in its document, as a URI fragment.
func place(s *jsonschema.Schema) string {
	for i := range len(s.Location) {
		if s.Location[i] == '#' {
			return quote(s.Location[i:])
		}
	}
	return quote(s.Location)
}
