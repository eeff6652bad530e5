package jsonrpc

// An envelopeMember is a set of the members that JSON-RPC defines.
type envelopeMember uint8

const (
	memberVersion envelopeMember = 1 << iota
	memberID
	memberMethod
	memberParams
	memberResult
	memberError
)

func (s envelopeMember) has(m envelopeMember) bool { return s&m != 0 }

// envelope is the state of one scan. It is written by scanner.envelope and
// judged by verdict.
type envelope struct {
	m        *Message
	seen     envelopeMember
	repeated envelopeMember
	valid    envelopeMember // seen, and of the right type and value
	nullID   bool
}

// named returns the member that a name stands for, or 0 for an unknown one.
func named(name []byte, escaped bool) envelopeMember {
	if escaped {
		var buf [32]byte
		name, _ = appendDecoded(buf[:0], name)
	}
	switch string(name) {
	case "jsonrpc":
		return memberVersion
	case "id":
		return memberID
	case "method":
		return memberMethod
	case "params":
		return memberParams
	case "result":
		return memberResult
	case "error":
		return memberError
	}
	return 0
}

// envelope walks the message's object, whose brace is expected at i.
func (s *scanner) envelope(i int, e *envelope) int {
	b := s.b
	if i >= len(b) {
		return ^i
	}
	s.enter(1)
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == '}' {
		return i + 1
	}
	for done := false; !done; {
		name, at := s.key(i)
		if at < 0 {
			return at
		}
		which := named(s.text(name), name.escaped)
		if e.seen.has(which) {
			e.repeated |= which
			which = 0
		}
		e.seen |= which
		end := s.member(at, which, e)
		if end < 0 {
			return end
		}
		if i, done = s.more(end, '}'); i < 0 {
			return i
		}
	}
	return i
}

// member walks the value at i and notes it as the envelope's.
func (s *scanner) member(i int, which envelopeMember, e *envelope) int {
	b := s.b
	if i >= len(b) {
		return ^i
	}
	first := b[i]
	if first == '"' && which&(memberVersion|memberID|memberMethod) != 0 {
		end, escaped := scanString(b, i+1)
		if end >= 0 {
			e.text(which, b[i:end:end], escaped)
		}
		return end
	}
	if first == '{' && which == memberParams {
		end := s.params(i, 2, &e.m.params)
		if end >= 0 {
			e.m.Params = b[i:end:end]
			e.valid |= memberParams
		}
		return end
	}
	end := s.value(i, 1)
	if end < 0 {
		return end
	}
	raw := b[i:end:end]
	switch which {
	case memberID:
		if first == '-' || first-'0' <= 9 {
			e.m.ID, _ = makeID(raw, false)
			e.valid |= memberID
		}
		e.nullID = first == 'n'
	case memberParams:
		e.m.Params = raw
	case memberResult:
		e.m.Result = raw
		e.valid |= memberResult
	case memberError:
		e.m.Error = raw
		if first == '{' {
			e.valid |= memberError
		}
	}
	return end
}

// text notes a member whose value is a string.
func (e *envelope) text(which envelopeMember, raw []byte, escaped bool) {
	inside, ok := raw[1:len(raw)-1], false
	switch which {
	case memberVersion:
		ok = equal(inside, escaped, "2.0")
	case memberID:
		e.m.ID, ok = makeID(raw, escaped)
	case memberMethod:
		if e.m.Method, ok = decode(inside, escaped); !ok {
			e.m.Method = ""
		}
	}
	if ok {
		e.valid |= which
	}
}

// kind decides from the members alone. A result needs the id it answers. An
// error does not: its sender may have been unable to read it.
func (e *envelope) kind() Kind {
	noID := !e.seen.has(memberID)
	switch e.seen & (memberMethod | memberResult | memberError) {
	case memberMethod:
		switch {
		case !e.valid.has(memberMethod):
		case noID:
			return KindNotification
		case e.valid.has(memberID):
			return KindRequest
		}
	case memberResult:
		if e.valid.has(memberID) {
			return KindResponse
		}
	case memberError:
		if noID || e.nullID || e.valid.has(memberID) {
			return KindErrorResponse
		}
	}
	return KindInvalid
}

// verdict sets the kind and names the first fault. Faults of the envelope come
// before faults of params, because only in a sound envelope params mean
// anything.
func (e *envelope) verdict(s *scanner) *Error {
	m := e.m
	if e.repeated.has(memberID) {
		m.ID = ID{}
	}
	if e.repeated != 0 {
		return invalidRequest("a member of the message appears twice")
	}
	m.Kind = e.kind()
	calls := m.Kind == KindRequest || m.Kind == KindNotification
	switch {
	case !e.valid.has(memberVersion):
		return invalidRequest(`"jsonrpc" is not "2.0"`)
	case m.Kind == KindInvalid:
		return invalidRequest(e.fault())
	case m.Kind == KindErrorResponse && !e.valid.has(memberError):
		return invalidRequest(`"error" is not an object`)
	case s.deep:
		return tooDeep(s.limit)
	case calls && e.seen.has(memberParams) && !e.valid.has(memberParams):
		return invalidParams("not an object")
	case calls && m.params.repeated:
		return invalidParams("a member appears twice")
	}
	return nil
}

// fault says why the members make no message.
func (e *envelope) fault() string {
	switch e.seen & (memberMethod | memberResult | memberError) {
	case 0:
		return `no "method", "result" or "error"`
	case memberMethod:
		if !e.valid.has(memberMethod) {
			return `"method" is not a string`
		}
		return `"id" is not a string or a number`
	case memberResult:
		return `"result" without a valid "id"`
	case memberError:
		return `"error" with an invalid "id"`
	}
	return `more than one of "method", "result" and "error"`
}
