package schema

import (
	"encoding/json"
	"math/bits"
	"strings"
)

// flat is the fast path: it decides on the raw text of an object whose properties are all plain scalars, without
// building values. It never refuses; when it is not sure that a value conforms, the engine decides and explains.
// Read-only once built.
type flat struct {
	props    []scalar
	index    map[string]int
	required uint64 // a bit per property
	defaults uint64
	steps    int // what the engine would spend at most, the length of texts aside
}

const maxFlat = 64 // properties, the width of the bit sets

// newFlat is nil when the schema says anything that the fast path does not know.
func newFlat(obj map[string]any) *flat {
	props, ok := obj["properties"].(map[string]any)
	if !ok || obj["type"] != "object" || len(props) > maxFlat {
		return nil
	}
	for keyword, v := range obj {
		switch keyword {
		case "type", "properties", "required":
		case "$schema":
			if v != "https://json-schema.org/draft/2020-12/schema" {
				return nil
			}
		case "additionalProperties":
			if v != false {
				return nil
			}
		default:
			if !annotation(keyword) {
				return nil
			}
		}
	}
	f := &flat{index: make(map[string]int, len(props))}
	for name, v := range props {
		p, ok := newScalar(name, v)
		if !ok {
			return nil
		}
		if p.fallback != "" {
			f.defaults |= 1 << len(f.props)
		}
		f.steps += 2 + len(p.words) + len(p.numbers)
		f.index[name] = len(f.props)
		f.props = append(f.props, p)
	}
	required, _ := obj["required"].([]any)
	for _, v := range required {
		name, _ := v.(string)
		i, ok := f.index[name]
		if !ok {
			return nil
		}
		f.required |= 1 << i
	}
	f.steps += 1 + len(required)
	return f
}

// annotation says that a keyword asserts nothing. Keywords that are not listed may.
func annotation(keyword string) bool {
	switch keyword {
	case "title", "description", "$comment", "examples", "deprecated", "readOnly", "writeOnly":
		return true
	}
	return strings.HasPrefix(keyword, "x-")
}

// prepare returns args with defaults added; false means that the engine must decide.
func (f *flat) prepare(args []byte) ([]byte, bool) {
	given, end, ok := f.accept(args, f.defaults)
	if !ok {
		return nil, false
	}
	missing := f.defaults &^ given
	if missing == 0 {
		return args, true
	}
	size := len(args) + bits.OnesCount64(missing)
	for m := missing; m != 0; m &= m - 1 {
		size += len(f.props[bits.TrailingZeros64(m)].fallback)
	}
	out := append(make([]byte, 0, size), args[:end]...)
	for m := missing; m != 0; m &= m - 1 {
		if given != 0 || m != missing {
			out = append(out, ',')
		}
		out = append(out, f.props[bits.TrailingZeros64(m)].fallback...)
	}
	return append(out, args[end:]...), true
}

// accept says that raw conforms once the properties in added are given too, which ones it gives, and where its
// closing brace is.
func (f *flat) accept(raw []byte, added uint64) (given uint64, end int, ok bool) {
	s := scanner{b: raw}
	if s.space(); s.peek() != '{' {
		return 0, 0, false
	}
	s.i++
	for s.space(); s.peek() != '}'; s.space() {
		if given != 0 {
			if s.peek() != ',' {
				return 0, 0, false
			}
			s.i++
			s.space()
		}
		name, plain, err := s.str()
		if err != nil || !plain {
			return 0, 0, false
		}
		i, known := f.index[string(name[1:len(name)-1])]
		if !known || given&(1<<i) != 0 {
			return 0, 0, false
		}
		given |= 1 << i
		if s.space(); s.peek() != ':' {
			return 0, 0, false
		}
		s.i++
		if s.space(); !f.props[i].accept(&s) {
			return 0, 0, false
		}
	}
	end = s.i
	s.i++
	return given, end, s.end() == nil && f.required&^(given|added) == 0
}

// scalar is a property of a flat object.
type scalar struct {
	kind     byte // 's' string, 'i' integer, 'n' number, 'b' boolean
	fallback string
	words    []string // enum of strings
	numbers  []int64  // enum of integers
	min, max *int64
	minLen   int
	maxLen   int // -1: none
}

func newScalar(name string, v any) (scalar, bool) {
	obj, _ := v.(map[string]any)
	p := scalar{maxLen: -1}
	switch obj["type"] {
	case "string":
		p.kind = 's'
	case "integer":
		p.kind = 'i'
	case "number":
		p.kind = 'n'
	case "boolean":
		p.kind = 'b'
	default:
		return p, false
	}
	for keyword, v := range obj {
		if !p.keyword(name, keyword, v) {
			return p, false
		}
	}
	if p.fallback == "" {
		return p, true
	}
	probe := scanner{b: []byte(p.fallback), i: strings.Index(p.fallback, ":") + 1}
	return p, p.accept(&probe)
}

func (p *scalar) keyword(name, keyword string, v any) bool {
	n, small := smallInt(v)
	numeric := p.kind == 'i' || p.kind == 'n'
	switch keyword {
	case "type":
		return true
	case "default":
		p.fallback = encodeMember(name, v)
		return plainName(name)
	case "minimum":
		p.min = later(p.min, n)
		return numeric && small
	case "exclusiveMinimum":
		p.min = later(p.min, n+1)
		return p.kind == 'i' && small
	case "maximum":
		p.max = earlier(p.max, n)
		return numeric && small
	case "exclusiveMaximum":
		p.max = earlier(p.max, n-1)
		return p.kind == 'i' && small
	case "minLength":
		p.minLen = int(n)
		return p.kind == 's' && small && n >= 0
	case "maxLength":
		p.maxLen = int(n)
		return p.kind == 's' && small && n >= 0
	case "enum":
		return p.enum(v)
	}
	return annotation(keyword)
}

func (p *scalar) enum(v any) bool {
	list, _ := v.([]any)
	for _, item := range list {
		word, isWord := item.(string)
		n, isNumber := smallInt(item)
		switch {
		case isWord && p.kind == 's':
			p.words = append(p.words, word)
		case isNumber && (p.kind == 'i' || p.kind == 'n'):
			p.numbers = append(p.numbers, n)
		default:
			return false
		}
	}
	return len(list) > 0
}

// smallInt is a number written as an integer of at most 15 digits.
func smallInt(v any) (int64, bool) {
	n, ok := v.(json.Number)
	if !ok || len(n) > 16 {
		return 0, false
	}
	return parseSmall([]byte(n))
}

func later(a *int64, b int64) *int64 {
	if a != nil && *a > b {
		return a
	}
	return &b
}

func earlier(a *int64, b int64) *int64 {
	if a != nil && *a < b {
		return a
	}
	return &b
}
