package schema

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// explain turns the engine's error tree into problems. v is the refused value and g the schema's graph; both may
// be nil.
func explain(err *jsonschema.ValidationError, v any, g *graph) *ValidationError {
	x := explainer{value: v, graph: g}
	x.walk(err)
	slices.SortFunc(x.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Message, b.Message))
	})
	x.problems = slices.Compact(x.problems)
	if len(x.problems) == 0 {
		return problem("", "does not conform to the schema")
	}
	return &ValidationError{Problems: x.problems}
}

type explainer struct {
	value    any
	graph    *graph
	problems []Problem
}

const maxCollected = 200 // problems explained before the rest is left out

func (x *explainer) add(path, format string, args ...any) {
	if len(x.problems) < maxCollected {
		x.problems = append(x.problems, Problem{path, fmt.Sprintf(format, args...)})
	}
}

func (x *explainer) walk(e *jsonschema.ValidationError) {
	if e.ErrorKind == nil || len(x.problems) >= maxCollected {
		return
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Schema, *kind.Group, *kind.Reference, *kind.AllOf:
		for _, cause := range e.Causes {
			x.walk(cause)
		}
	case *kind.AnyOf:
		x.alternatives(e)
	case *kind.OneOf:
		if len(k.Subschemas) > 0 {
			x.add(x.path(e), "must match exactly one of the alternatives, but matches number %d and number %d", k.Subschemas[0]+1, k.Subschemas[1]+1)
			return
		}
		x.alternatives(e)
	case *kind.Required:
		for _, name := range k.Missing {
			x.add(member(x.path(e), name), "is required")
		}
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			x.add(member(x.path(e), name), "is not a known property%s", x.known(e.SchemaURL, name))
		}
	case *kind.PropertyNames:
		why := explainer{value: k.Property, graph: x.graph}
		for _, cause := range e.Causes {
			why.walk(cause)
		}
		reason := ""
		if len(why.problems) > 0 {
			reason = ": the name " + why.problems[0].Message
		}
		x.add(x.path(e), "must not have a property named %s%s", quote(k.Property), reason)
	default:
		x.add(x.path(e), "%s", message(e.ErrorKind, x.at(e.InstanceLocation)))
	}
}

// alternatives reports the problems of the branch that came closest: the one with the fewest of them, and among
// those one that got past the type.
func (x *explainer) alternatives(e *jsonschema.ValidationError) {
	var best []Problem
	for _, cause := range e.Causes {
		sub := explainer{value: x.value, graph: x.graph}
		sub.walk(cause)
		if len(sub.problems) > 0 && (best == nil || score(sub.problems) < score(best)) {
			best = sub.problems
		}
	}
	path := x.path(e)
	if len(best) == 0 {
		x.add(path, "must match one of %d alternatives", len(e.Causes))
		return
	}
	for _, p := range best {
		if len(e.Causes) == 1 {
			x.add(p.Path, "%s", p.Message)
		} else {
			x.add(p.Path, "%s (or match another of %d alternatives)", p.Message, len(e.Causes))
		}
	}
}

func score(ps []Problem) int {
	n := 0
	for _, p := range ps {
		n += 2
		if strings.Contains(p.Message, ", got ") && strings.HasPrefix(p.Message, "must be a") {
			n++
		}
	}
	return n
}

// known lists the properties there are, the likeliest first.
func (x *explainer) known(location, name string) string {
	if x.graph == nil || x.graph.byLocation[location] == nil {
		return ""
	}
	names := slices.Sorted(maps.Keys(x.graph.byLocation[location].Properties))
	if len(names) == 0 {
		return "; there are none"
	}
	for _, n := range names {
		if fold(n) == fold(name) {
			return "; did you mean " + quote(n) + "?"
		}
	}
	return "; known are " + list(len(names), func(i int) string { return quote(names[i]) })
}

func fold(s string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(s))
}

// at is the part of the value that stands at a location; nil when there is none.
func (x *explainer) at(location []string) any {
	v := x.value
	for _, token := range location {
		switch whole := v.(type) {
		case map[string]any:
			v = whole[token]
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(whole) {
				return nil
			}
			v = whole[i]
		default:
			return nil
		}
	}
	return v
}

func (x *explainer) path(e *jsonschema.ValidationError) string {
	v, path := x.value, ""
	for _, token := range e.InstanceLocation {
		i, err := strconv.Atoi(token)
		switch whole := v.(type) {
		case []any:
			path, v = element(path, i), nil
			if err == nil && i >= 0 && i < len(whole) {
				v = whole[i]
			}
		case map[string]any:
			path, v = member(path, token), whole[token]
		default:
			path = member(path, token)
		}
	}
	return path
}

// list joins at most 20 items, bounded in length.
func list(n int, item func(int) string) string {
	var b strings.Builder
	for i := range n {
		if i == 20 || b.Len() > 400 {
			fmt.Fprintf(&b, ", and %d more", n-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(item(i))
	}
	return b.String()
}

// show is a value in a message.
func show(v any) string {
	switch v := v.(type) {
	case string:
		return quote(v)
	case json.Number:
		return clip(string(v), maxQuoted)
	case *big.Rat:
		if v.IsInt() {
			return clip(v.RatString(), maxQuoted)
		}
		return clip(strings.TrimRight(v.FloatString(20), "0"), maxQuoted)
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case []any, map[string]any:
		return clip(string(appendJSON(nil, v)), maxQuoted)
	}
	return "a value"
}
