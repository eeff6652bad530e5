package cancellation

// Origin says where a cancellation came from. It decides whether the peer is
// still owed an answer. The zero value is no origin; it prints as "unknown".
type Origin uint8

const (
	// Peer: the client asked for this request to stop, with
	// notifications/cancelled or with tasks/cancel.
	Peer Origin = iota + 1
	// Disconnect: the stream or connection that would have carried the answer is gone.
	Disconnect
	// SessionEnd: the session that the request belongs to was closed or expired.
	SessionEnd
	// Timeout: a time limit for the request ran out.
	Timeout
	// Shutdown: the server is going down.
	Shutdown
	// Parent: a context above the request ended for a reason of its own.
	Parent
)

// String returns the origin's stable name, as logs and metrics carry it: peer,
// disconnect, session_end, timeout, shutdown, parent, or unknown.
func (o Origin) String() string {
	switch o {
	case Peer:
		return "peer"
	case Disconnect:
		return "disconnect"
	case SessionEnd:
		return "session_end"
	case Timeout:
		return "timeout"
	case Shutdown:
		return "shutdown"
	case Parent:
		return "parent"
	default:
		return "unknown"
	}
}

// AnswerOwed reports whether the peer still waits for a response. It is false
// for [Peer], [Disconnect] and [SessionEnd]: whoever asked has stopped listening,
// and the specification's cancellation page asks for silence. It is true for
// every other origin, unknown ones included, because silence would leave a
// waiting client hanging.
func (o Origin) AnswerOwed() bool {
	switch o {
	case Peer, Disconnect, SessionEnd:
		return false
	default:
		return true
	}
}
