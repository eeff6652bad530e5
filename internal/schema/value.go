package schema

import (
	"encoding/json"
	"errors"
	"strconv"
)

// parser turns JSON text into the engine's values (nil, bool, json.Number, string, []any, map[string]any) and
// adds the defaults of a plan on the way. It refuses what the decoder could read differently: an object that
// gives a name twice.
type parser struct {
	scanner
	maxDepth int
	values   int         // objects and booleans read
	inserts  []insertion // in the order of their offsets
}

// insertion is text that completes the value at an offset of the original text.
type insertion struct {
	offset int
	text   string
}

// valueError is a refused value and where it stands.
type valueError struct {
	path    string
	message string
}

func (e *valueError) Error() string {
	return (&Problem{Path: e.path, Message: e.message}).String()
}

func parse(raw []byte, pl *plan, maxDepth int) (any, *parser, error) {
	p := &parser{scanner: scanner{b: raw}, maxDepth: maxDepth}
	v, err := p.value(pl, 0)
	if err == nil {
		err = p.end()
	}
	return v, p, err
}

func (p *parser) value(pl *plan, depth int) (any, error) {
	p.space()
	switch c := p.peek(); c {
	case '{':
		return p.object(pl, depth+1)
	case '[':
		return p.array(pl, depth+1)
	case '"':
		raw, plain, err := p.str()
		if err != nil {
			return nil, err
		}
		return unquote(raw, plain), nil
	case 't':
		p.values++
		return true, p.word("true")
	case 'f':
		p.values++
		return false, p.word("false")
	case 'n':
		return nil, p.word("null")
	default:
		raw, integer, err := p.num()
		if err != nil {
			return nil, err
		}
		if !computable(raw, integer) {
			return nil, &valueError{message: "is a number out of range"}
		}
		return json.Number(raw), nil
	}
}

func (p *parser) object(pl *plan, depth int) (any, error) {
	if depth > p.maxDepth {
		return nil, &valueError{message: "nests deeper than " + strconv.Itoa(p.maxDepth)}
	}
	p.values++
	p.i++
	m := make(map[string]any, 8)
	for p.space(); p.peek() != '}'; p.space() {
		if len(m) > 0 {
			if err := p.expect(','); err != nil {
				return nil, err
			}
			p.space()
		}
		raw, plain, err := p.str()
		if err != nil {
			return nil, err
		}
		p.space()
		if err := p.expect(':'); err != nil {
			return nil, err
		}
		name := unquote(raw, plain)
		if _, twice := m[name]; twice {
			return nil, &valueError{path: member("", name), message: "is given more than once"}
		}
		v, err := p.value(pl.property(name), depth)
		if err != nil {
			return nil, within(member("", name), err)
		}
		m[name] = v
	}
	p.addDefaults(pl, m)
	p.i++
	return m, nil
}

// addDefaults completes the object that ends at the next byte.
func (p *parser) addDefaults(pl *plan, m map[string]any) {
	if pl == nil {
		return
	}
	for i := range pl.defaults {
		d := &pl.defaults[i]
		if _, given := m[d.name]; given {
			continue
		}
		text := d.text
		if len(m) > 0 {
			text = "," + text
		}
		m[d.name] = d.value // never changed: defaults are not completed in turn
		p.inserts = append(p.inserts, insertion{p.i, text})
	}
}

func (p *parser) array(pl *plan, depth int) (any, error) {
	if depth > p.maxDepth {
		return nil, &valueError{message: "nests deeper than " + strconv.Itoa(p.maxDepth)}
	}
	p.i++
	a := []any{}
	for p.space(); p.peek() != ']'; p.space() {
		if len(a) > 0 {
			if err := p.expect(','); err != nil {
				return nil, err
			}
		}
		v, err := p.value(pl.item(), depth)
		if err != nil {
			return nil, within(element("", len(a)), err)
		}
		a = append(a, v)
	}
	p.i++
	return a, nil
}

// completed is the original text with all insertions made, or the original itself when there were none.
func (p *parser) completed() []byte {
	if len(p.inserts) == 0 {
		return p.b
	}
	size := len(p.b)
	for _, in := range p.inserts {
		size += len(in.text)
	}
	out := make([]byte, 0, size)
	last := 0
	for _, in := range p.inserts {
		out = append(append(out, p.b[last:in.offset]...), in.text...)
		last = in.offset
	}
	return append(out, p.b[last:]...)
}

// computable says that exact arithmetic with a number stays cheap.
func computable(raw []byte, integer bool) bool {
	if len(raw) > maxNumberLength {
		return false
	}
	if integer {
		return true
	}
	for i, c := range raw {
		if c == 'e' || c == 'E' {
			exp, err := strconv.Atoi(string(raw[i+1:]))
			return err == nil && -maxExponent <= exp && exp <= maxExponent
		}
	}
	return true
}

// within puts an error of a part into its whole.
func within(path string, err error) error {
	var ve *valueError
	if errors.As(err, &ve) {
		return &valueError{path: join(path, ve.path), message: ve.message}
	}
	return err
}
