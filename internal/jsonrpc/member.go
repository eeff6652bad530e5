package jsonrpc

import (
	"iter"
	"math"
)

// Members yields the names and values of the object's own members, in order.
// obj must be a valid JSON object; of anything else it yields what precedes the
// fault, or nothing. Names are decoded; one with a lone surrogate, which no
// Unicode text equals, is yielded as a string that is not valid UTF-8.
func Members(obj []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		eachMember(obj, func(name []byte, escaped bool, value []byte) bool {
			text, _ := decode(name, escaped)
			return yield(text, value)
		})
	}
}

// Get returns the value of the first of the object's own members with that
// name. obj must be a valid JSON object; in anything else nothing, or only what
// precedes the fault, is found.
func Get(obj []byte, name string) (value []byte, ok bool) {
	eachMember(obj, func(n []byte, escaped bool, v []byte) bool {
		if equal(n, escaped, name) {
			value, ok = v, true
		}
		return !ok
	})
	return value, ok
}

func eachMember(obj []byte, visit func(name []byte, escaped bool, value []byte) bool) {
	s := scanner{b: obj, limit: math.MaxInt}
	i := skipSpace(obj, 0)
	if i >= len(obj) || obj[i] != '{' {
		return
	}
	i = skipSpace(obj, i+1)
	if i < len(obj) && obj[i] == '}' {
		return
	}
	for done := false; !done; {
		name, at := s.key(i)
		if at < 0 {
			return
		}
		end := s.value(at, 1)
		if end < 0 || !visit(s.text(name), name.escaped, obj[at:end:end]) {
			return
		}
		if i, done = s.more(end, '}'); i < 0 {
			return
		}
	}
}

// inlineParams is how many members of params a Message remembers. MCP defines
// no request with more than half as many.
const inlineParams = 16

// params is what Scan keeps about the members of params. It is written by
// scanner.params during one scan and read afterwards.
type params struct {
	count    int  // members seen; those beyond the array are not remembered
	known    int  // members remembered, a prefix of them all
	repeated bool // two of them have the same name
	members  [inlineParams]member
}

// A member is a name and a value as offsets from the opening brace.
type member struct {
	name, nameEnd   uint32
	value, valueEnd uint32
	escaped         bool // the name holds escapes
}

func (p *params) reset() { p.count, p.known, p.repeated = 0, 0, false }

func (p *params) get(obj []byte, name string) ([]byte, bool) {
	for k := range p.members[:p.known] {
		m := &p.members[k]
		if equal(obj[m.name:m.nameEnd], m.escaped, name) {
			return obj[m.value:m.valueEnd:m.valueEnd], true
		}
	}
	if p.count > p.known {
		return Get(obj, name)
	}
	return nil, false
}

// params walks the object at i and remembers its members.
func (s *scanner) params(i, depth int, p *params) int {
	var (
		b     = s.b
		open  = i
		names map[string]struct{} // built at the first member beyond the array, so that work stays linear
	)
	s.enter(depth)
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == '}' {
		return i + 1
	}
	for done := false; !done; {
		name, at := s.key(i)
		if at < 0 {
			return at
		}
		end := s.value(at, depth)
		if end < 0 {
			return end
		}
		if p.known < p.count || p.known == inlineParams || uint64(end-open) > math.MaxUint32 {
			names = p.overflow(b[open:], names)
			text, _ := decode(s.text(name), name.escaped)
			_, again := names[text]
			p.repeated = p.repeated || again
			names[text] = struct{}{}
		} else {
			p.remember(b[open:], member{
				name: uint32(name.from - open), nameEnd: uint32(name.to - open), escaped: name.escaped,
				value: uint32(at - open), valueEnd: uint32(end - open),
			})
		}
		p.count++
		if i, done = s.more(end, '}'); i < 0 {
			return i
		}
	}
	return i
}

func (p *params) remember(obj []byte, m member) {
	for k := range p.members[:p.known] {
		o := &p.members[k]
		if p.repeated || !m.escaped && !o.escaped && m.nameEnd-m.name != o.nameEnd-o.name {
			continue
		}
		p.repeated = sameName(obj, *o, m)
	}
	p.members[p.known] = m
	p.known++
}

func sameName(obj []byte, a, b member) bool {
	if b.escaped {
		a, b = b, a
	}
	if !b.escaped {
		return equal(obj[a.name:a.nameEnd], a.escaped, alias(obj[b.name:b.nameEnd]))
	}
	text, _ := decode(obj[b.name:b.nameEnd], true)
	return equal(obj[a.name:a.nameEnd], true, text)
}

// overflow returns the set of names seen so far, made from the remembered ones
// when it does not exist yet.
func (p *params) overflow(obj []byte, names map[string]struct{}) map[string]struct{} {
	if names != nil {
		return names
	}
	names = make(map[string]struct{}, 2*inlineParams)
	for _, m := range p.members[:p.known] {
		text, _ := decode(obj[m.name:m.nameEnd], m.escaped)
		names[text] = struct{}{}
	}
	return names
}
