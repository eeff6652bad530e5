package schema

import (
	"fmt"
	"regexp"
	"regexp/syntax"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// pattern is a regular expression that knows its own cost. It is RE2, so time is linear in the text.
type pattern struct {
	*regexp.Regexp
	steps int // instructions; time per byte of text is at most proportional
}

// compilePattern keeps the length and the compiled size within bounds: x{1000}{1000} is short but large.
func compilePattern(s string) (jsonschema.Regexp, error) {
	if len(s) > maxPattern {
		return nil, fmt.Errorf("regular expression of %d characters, the limit is %d", len(s), maxPattern)
	}
	tree, err := syntax.Parse(s, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("%w (RE2 syntax: no look-around, no backreferences)", err)
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, err
	}
	if len(prog.Inst) > maxPatternSteps {
		return nil, fmt.Errorf("regular expression compiles to %d steps, the limit is %d", len(prog.Inst), maxPatternSteps)
	}
	re, err := regexp.Compile(s)
	if err != nil {
		return nil, err
	}
	return &pattern{re, len(prog.Inst)}, nil
}

func patternSteps(re jsonschema.Regexp) int {
	if p, ok := re.(*pattern); ok {
		return p.steps
	}
	return maxPatternSteps
}
