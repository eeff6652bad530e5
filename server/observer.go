package server

import (
	"time"

	"github.com/heedmcp/heed/cancellation"
)

// Observer is told what operators of a server want to measure. Each field may
// be nil. The functions are called on the goroutine of the request, must be safe for
// concurrent use and should return soon; their panics are contained and logged.
type Observer struct {
	// RequestDone is called once for every request that has ended: its handler has
	// returned, or it was cancelled before its handler started, or, in the stateless
	// era, it was answered with a question and its handler waits for the retry (Parked).
	//
	// How a parked handler ends is told with its last retry. When there is none, because it was
	// cancelled while parked or nobody came for what it returned, RequestDone is called
	// once more with the id that it was parked for.
	RequestDone func(RequestDone)

	// Unresponsive is called for a cancelled handler that has not returned within
	// [Options.Grace]. RequestDone follows if it ever does.
	Unresponsive func(Unresponsive)
}

// RequestDone describes a request that has ended. The three instants Requested,
// Observed and Returned tell who was asked to stop, who noticed, and how long
// it took.
type RequestDone struct {
	// Session is the session's id, "" without one; ID the request's id as JSON text.
	Session, ID string
	// Method is the protocol's method; Name the tool, prompt or resource URI, if any.
	Method, Name string

	// Cancelled says whether a cancel was accepted; Origin and Reason are
	// meaningful only then. Reason is the peer's text, bounded and untrusted.
	Cancelled bool
	Origin    cancellation.Origin
	Reason    string

	// Started is when the handler began; zero if it never did.
	Started time.Time
	// Requested is when the cancel was accepted; zero without one.
	Requested time.Time
	// Observed is when the handler could first be seen to have noticed; zero
	// without a cancel. A handler that noticed only by receiving from Done counts
	// as of its return at the latest.
	Observed time.Time
	// Returned is when the handler returned.
	Returned time.Time

	// Answered says whether a response was written.
	Answered bool
	// Parked says that the handler has not returned: the response asks the client for
	// input. Returned is then when the handler was parked.
	Parked bool
	// Err is what the handler returned, also when the peer was not told.
	Err error
}

// Unresponsive describes a cancelled handler that ignores its token.
type Unresponsive struct {
	Session, ID  string
	Method, Name string
	Origin       cancellation.Origin
	Reason       string
	Requested    time.Time
	// Stack is the handler's stack as of now, "" when it could not be told apart.
	Stack string
}
