package servercontext

import "sync"

// Session identifies a handshake-era session, or one byte stream such as
// stdio, and holds values that handlers want to keep with it.
//
// A nil *Session is valid; it has no id and keeps nothing. Requests of the
// stateless era over HTTP have none.
type Session struct {
	id string

	mu     sync.RWMutex // guards values
	values map[any]any  // written by handlers; nil while there are none, as in most sessions
}

// NewSession returns a session without values. Servers make one per session,
// tests of handlers one per case.
func NewSession(id string) *Session { return &Session{id: id} }

// ID is the session's id as the transport knows it: the Mcp-Session-Id over
// HTTP, a name of the stream elsewhere. It is "" for a nil session.
func (s *Session) ID() string {
	if s == nil {
		return ""
	}
	return s.id
}

// Load returns the value stored under key.
func (s *Session) Load(key any) (value any, ok bool) {
	if s == nil {
		return nil, false
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	value, ok = s.values[key]
	return value, ok
}

// Store keeps value under key until the session ends. Keys are compared with
// ==; use an unexported type of your own, as for context values.
func (s *Session) Store(key, value any) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.values == nil {
		s.values = map[any]any{}
	}
	s.values[key] = value
}

// Delete removes what is stored under key.
func (s *Session) Delete(key any) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.values, key)
}
