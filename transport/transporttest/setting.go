package transporttest

import "strings"

// Setting is a way in which a client talks to a server: a transport, an era of the
// protocol and, over HTTP, what the client accepts as an answer. Settings can be
// or-ed into a set.
type Setting uint8

const (
	StreamHandshake   Setting = 1 << iota // lines, a revision from 2024-11-05 to 2025-11-25
	StreamStateless                       // lines, revision 2026-07-28
	HTTPHandshake                         // streamable HTTP, a session
	HTTPHandshakeJSON                     // the same for a client that accepts only application/json
	HTTPStateless                         // streamable HTTP, revision 2026-07-28
	HTTPStatelessJSON                     // the same for a client that accepts only application/json
)

// Sets of settings.
const (
	Streams     = StreamHandshake | StreamStateless
	OverHTTP    = HTTPHandshake | HTTPHandshakeJSON | HTTPStateless | HTTPStatelessJSON
	Handshakes  = StreamHandshake | HTTPHandshake | HTTPHandshakeJSON
	Statelesses = StreamStateless | HTTPStateless | HTTPStatelessJSON
	JSONs       = HTTPHandshakeJSON | HTTPStatelessJSON
	All         = Streams | OverHTTP

	// notified are those in which notifications/cancelled is the cancel; in the rest
	// it is the end of the response.
	notified = Streams | HTTPHandshake | HTTPHandshakeJSON
	// asking are those in which a server can send requests.
	asking = StreamHandshake | HTTPHandshake
)

var settingNames = map[Setting]string{
	StreamHandshake: "stdio/handshake", StreamStateless: "stdio/stateless",
	HTTPHandshake: "http/handshake", HTTPHandshakeJSON: "http/handshake/json",
	HTTPStateless: "http/stateless", HTTPStatelessJSON: "http/stateless/json",
}

// Each returns the members of a set, in the order of their constants.
func (s Setting) Each() []Setting {
	var each []Setting
	for one := StreamHandshake; one <= HTTPStatelessJSON && one != 0; one <<= 1 {
		if s&one != 0 {
			each = append(each, one)
		}
	}
	return each
}

// Has tells whether one is a member.
func (s Setting) Has(one Setting) bool { return s&one == one && one != 0 }

// String names a setting, or the members of a set.
func (s Setting) String() string {
	var names []string
	for _, one := range s.Each() {
		names = append(names, settingNames[one])
	}
	return strings.Join(names, ", ")
}

func (s Setting) stream() bool    { return Streams&s != 0 }
func (s Setting) handshake() bool { return Handshakes&s != 0 }
func (s Setting) json() bool      { return JSONs&s != 0 }
