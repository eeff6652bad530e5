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

// patterns compiles the regular expressions of one schema. Length and compiled size of each are bounded, since
// x{1000}{1000} is short but large, and so is the sum of the sizes. Written by the goroutine that compiles the
// schema until sealed; afterwards the engine still asks it about values with "format": "regex", from any goroutine.
type patterns struct {
	known  map[string]*pattern
	steps  int
	sealed bool
}

func (ps *patterns) compile(s string) (jsonschema.Regexp, error) {
	if p := ps.known[s]; p != nil {
		return p, nil
	}
	p, err := compilePattern(s)
	if err != nil {
		return nil, err
	}
	if !ps.sealed {
		if ps.steps += p.steps; ps.steps > maxAllPatternSteps {
			return nil, fmt.Errorf("regular expressions compile to more than %d steps", maxAllPatternSteps)
		}
		ps.known[s] = p
	}
	return p, nil
}

func compilePattern(s string) (*pattern, error) {
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
