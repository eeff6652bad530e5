package server

import (
	"context"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
)

// Extra is what a transport knows about a message beyond its bytes. The zero
// value, and a nil *Extra, know nothing.
type Extra struct {
	// Context carries values for the handler; its end is ignored. nil: the session's.
	Context context.Context
	// TokenInfo is what the bearer token said.
	TokenInfo *auth.TokenInfo
	// Header is the HTTP request's header.
	Header http.Header
	// CloseStream closes the response stream so that the client resumes it later;
	// nil: the transport cannot.
	CloseStream func(retry time.Duration) error
	// Stateless says that the message came outside of any session, so that it
	// must speak the stateless era.
	Stateless bool
}

var noExtra = &Extra{}
