package transporttest

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// candidate says how a tool is called that is likely to be what is needed.
type candidate struct {
	need  Need
	names []*regexp.Regexp // the best first
}

var candidates = []candidate{
	{NeedSlow, patterns(`^(wait|sleep|delay|slow)$`, `long.?running`, `wait|sleep|delay|slow|long`, `timer|count.?down|work|busy|job`)},
	{NeedProgress, patterns(`progress`)},
	{NeedSampling, patterns(`sampl`, `create.?message|ask.?(llm|model)`)},
	{NeedForm, patterns(`elicit.*form|form.*elicit`, `elicit`, `ask.?user|confirm`)},
	{NeedURL, patterns(`elicit.*url|url.*elicit`)},
	{NeedRoots, patterns(`roots`)},
	{NeedPing, patterns(`ping.?client|nested.?ping`)},
}

func patterns(texts ...string) []*regexp.Regexp {
	var all []*regexp.Regexp
	for _, text := range texts {
		all = append(all, regexp.MustCompile(`(?i)`+text))
	}
	return all
}

// among returns the best of some tools.
func (c candidate) among(tools map[string]json.RawMessage) (string, bool) {
	names := slices.Sorted(maps.Keys(tools))
	for _, pattern := range c.names {
		for _, name := range names {
			if pattern.MatchString(name) {
				return name, true
			}
		}
	}
	return "", false
}

var (
	inMillis  = regexp.MustCompile(`(?i)^ms$|milli|_?ms$`)
	inSeconds = regexp.MustCompile(`(?i)sec|duration|delay|sleep|time|wait`)
	inSteps   = regexp.MustCompile(`(?i)^(n|steps?|count|iterations?|times)$`)
)

// property is a property of an input schema.
type property struct {
	Type    any   `json:"type"`
	Enum    []any `json:"enum"`
	Default any   `json:"default"`
}

// guessArguments makes up arguments that a schema may accept, and with which a
// tool that can be told to take its time takes two seconds.
func guessArguments(schema json.RawMessage) json.RawMessage {
	var s struct {
		Properties map[string]property `json:"properties"`
		Required   []string            `json:"required"`
	}
	_ = json.Unmarshal(schema, &s) // without a schema that can be read there is nothing to guess
	arguments := map[string]any{}
	stepped := false
	for name, p := range s.Properties {
		if isNumber(p.Type) && inSteps.MatchString(name) {
			arguments[name], stepped = 5, true
		}
	}
	for name, p := range s.Properties {
		_, done := arguments[name]
		switch {
		case done:
		case isNumber(p.Type) && inMillis.MatchString(name):
			arguments[name] = millisOf(name, stepped)
		case isNumber(p.Type) && inSeconds.MatchString(name):
			arguments[name] = 2
		case slices.Contains(s.Required, name):
			arguments[name] = p.any()
		}
	}
	text, _ := json.Marshal(arguments) // what came from JSON always can be
	return text
}

// millisOf is the whole time, or the time of a step of five.
func millisOf(name string, stepped bool) int {
	if stepped && strings.Contains(strings.ToLower(name), "step") {
		return 400
	}
	return 2000
}

func isNumber(t any) bool {
	is := func(v any) bool { return v == "integer" || v == "number" }
	if several, ok := t.([]any); ok {
		return slices.ContainsFunc(several, is)
	}
	return is(t)
}

// any is some value of a property.
func (p property) any() any {
	switch {
	case p.Default != nil:
		return p.Default
	case len(p.Enum) > 0:
		return p.Enum[0]
	case isNumber(p.Type):
		return 1
	}
	switch p.Type {
	case "boolean":
		return false
	case "array":
		return []any{}
	case "object":
		return map[string]any{}
	}
	return "heedcheck"
}

// stepsOf is how many steps the arguments tell a tool to take, 0 if they do not.
func stepsOf(arguments json.RawMessage) int {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(arguments, &members) // they were made by guessArguments, or checked
	for name, raw := range members {
		var n int
		if inSteps.MatchString(name) && json.Unmarshal(raw, &n) == nil {
			return n
		}
	}
	return 0
}
