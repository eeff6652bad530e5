package schema

import (
	"encoding/json"
	"hash/maphash"
	"maps"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// affordable says that validating a value of that many bytes stays within steps. It is decided from the size
// when that is enough and otherwise by walking the value the way the engine would, without its allocations.
func (g *graph) affordable(root *jsonschema.Schema, v any, size, steps int) bool {
	if !g.unique || size < 512 {
		if n := g.paths * g.weight; n > 0 && n < maxPaths*maxPatternSteps && n*(size+1) <= steps {
			return true
		}
	}
	c := counter{g, steps}
	return c.visit(root, v)
}

// counter spends one step for every subschema applied to every value, as if all branches were taken.
type counter struct {
	g    *graph
	left int
}

func (c *counter) spend(n int) bool {
	c.left -= n
	return c.left >= 0
}

func (c *counter) visit(s *jsonschema.Schema, v any) bool {
	n := 1 + len(s.Required)
	if s.Enum != nil {
		n += len(s.Enum.Values)
	}
	if !c.spend(n) {
		return false
	}
	for _, sub := range c.g.applied[s] {
		if !c.visit(sub, v) {
			return false
		}
	}
	switch v := v.(type) {
	case string:
		if isRegex(s) && !c.spend(maxPatternSteps) {
			return false
		}
		return c.spend(len(v)/64) && (s.Pattern == nil || c.spend(matchSteps(s.Pattern, v)))
	case map[string]any:
		return c.object(s, v)
	case []any:
		return c.array(s, v)
	}
	return true
}

func matchSteps(re jsonschema.Regexp, text string) int { return 1 + len(text)*patternSteps(re)/16 }

func (c *counter) object(s *jsonschema.Schema, obj map[string]any) bool {
	additional, _ := s.AdditionalProperties.(*jsonschema.Schema)
	for name, v := range obj {
		if !c.spend(1) {
			return false
		}
		for re := range s.PatternProperties {
			if !c.spend(matchSteps(re, name)) {
				return false
			}
		}
		for re, sub := range s.PatternProperties {
			if re.MatchString(name) && !c.visit(sub, v) {
				return false
			}
		}
		if sub := s.Properties[name]; sub != nil {
			if !c.visit(sub, v) {
				return false
			}
		} else if additional != nil && !c.visit(additional, v) {
			return false
		}
		if s.UnevaluatedProperties != nil && !c.visit(s.UnevaluatedProperties, v) {
			return false
		}
		if s.PropertyNames != nil && !c.visit(s.PropertyNames, name) {
			return false
		}
	}
	return true
}

func (c *counter) array(s *jsonschema.Schema, arr []any) bool {
	if s.UniqueItems && !c.spend(uniqueSteps(arr, c.left)) {
		return false
	}
	first := s.PrefixItems
	if old, ok := s.Items.([]*jsonschema.Schema); ok {
		first = old
	}
	rest := []*jsonschema.Schema{}
	for _, v := range []any{s.Items2020, s.Items, s.AdditionalItems} {
		if sub, ok := v.(*jsonschema.Schema); ok && sub != nil {
			rest = append(rest, sub)
		}
	}
	every := []*jsonschema.Schema{}
	for _, sub := range []*jsonschema.Schema{s.Contains, s.UnevaluatedItems} {
		if sub != nil {
			every = append(every, sub)
		}
	}
	for i, v := range arr {
		subs := rest
		if i < len(first) {
			subs = first[i : i+1]
		}
		if !c.spend(1) {
			return false
		}
		for _, sub := range append(slices.Clip(subs), every...) {
			if !c.visit(sub, v) {
				return false
			}
		}
	}
	return true
}

// uniqueSteps is the cost of looking for equal elements. The engine hashes nested arrays without marking their
// ends, so many different elements can share a hash and are then compared pair by pair: counted here by the
// same hash.
func uniqueSteps(arr []any, enough int) int {
	if len(arr) <= 20 {
		return len(arr) * len(arr) / 2
	}
	seed := maphash.MakeSeed()
	same := map[uint64]int{}
	steps := 0
	for _, v := range arr {
		var h maphash.Hash
		h.SetSeed(seed)
		steps += hashShape(&h, v)
		sum := h.Sum64()
		steps += same[sum]
		same[sum]++
		if steps > enough {
			break
		}
	}
	return steps
}

func hashShape(h *maphash.Hash, v any) (steps int) {
	steps = 1
	switch v := v.(type) {
	case map[string]any:
		_ = h.WriteByte(0)
		for _, name := range slices.Sorted(maps.Keys(v)) {
			steps += hashShape(h, name) + hashShape(h, v[name])
		}
	case []any:
		_ = h.WriteByte(1)
		for _, e := range v {
			steps += hashShape(h, e)
		}
	case bool:
		_ = h.WriteByte(3)
		if v {
			_ = h.WriteByte(1)
		}
	case string:
		_ = h.WriteByte(4)
		_, _ = h.WriteString(v)
		steps += len(v) / 64
	case json.Number:
		_ = h.WriteByte(5)
		_, _ = h.WriteString(string(v))
		steps += len(v) / 8
	default:
		_ = h.WriteByte(2)
	}
	return steps
}
