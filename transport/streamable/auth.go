package streamable

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/heedmcp/heed/internal/jsonrpc"
	"github.com/heedmcp/heed/server"
	"github.com/modelcontextprotocol/go-sdk/auth"
)

// Auth demands a bearer token with each request, as an OAuth 2.1 resource server
// does. Verifier is required; the zero value of everything else works.
//
// Specification: basic/authorization (2026-07-28); RFC 6750, RFC 9728.
type Auth struct {
	// Verifier tells what a token says. An error that matches auth.ErrInvalidToken
	// becomes 401, auth.ErrOAuth 400, and any other 500, with a text that
	// does not repeat the error. It should set TokenInfo.UserID: that is who a
	// session belongs to.
	Verifier auth.TokenVerifier
	// MetadataURL is where the protected resource metadata is served. "": refusals
	// do not say where.
	MetadataURL string
	// Scopes must be granted for every request.
	Scopes []string
	// ScopesFor names the scopes that a call needs on top: method is the
	// protocol's, name the tool, prompt or resource URI, "" where there is none. nil: none.
	ScopesFor func(method, name string) []string
	// Satisfies tells whether the scopes that were granted include a needed one, where
	// some imply others. nil: it must be among them.
	Satisfies func(granted []string, needed string) bool
	// AllowMissingExpiration accepts tokens that do not say when they expire.
	AllowMissingExpiration bool
	// ClockSkew is how long after its expiration a token is still accepted.
	ClockSkew time.Duration
	// Logger gets the errors of Verifier that are not the client's fault. nil:
	// slog.Default().
	Logger *slog.Logger
}

// challenge is a refusal in terms of RFC 6750, section 3.
type challenge struct {
	status int
	code   string // the error parameter, "" when no token was sent
	text   string
	scopes []string
}

// Wrap returns a handler that passes on to next what has a good token, with the
// token's auth.TokenInfo in the request's context, where the official SDK's
// auth.TokenInfoFromContext finds it. The body of what it refuses has the default of Options.BodyTimeout to arrive.
func (a *Auth) Wrap(next http.Handler) http.Handler { return a.wrap(next, defaultBodyTimeout) }

func (a *Auth) wrap(next http.Handler, bodyTimeout time.Duration) http.Handler {
	// Only the official middleware can put a TokenInfo where the official SDK looks for it. It
	// is told what was found out here, and has nothing left to refuse.
	inject := auth.RequireBearerToken(func(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
		return ctx.Value(verifiedKey{}).(*auth.TokenInfo), nil
	}, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true, ClockSkew: 100 * 365 * 24 * time.Hour})(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, refused := a.verify(r)
		if refused != nil {
			unread(w, r, bodyTimeout)
			a.refuse(w, refused, jsonrpc.ID{})
			return
		}
		inject.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), verifiedKey{}, info)))
	})
}

type verifiedKey struct{}

// verify checks the token of a request: first that it is one, then that it is
// still good, then what it is good for.
func (a *Auth) verify(r *http.Request) (*auth.TokenInfo, *challenge) {
	token, refused := bearerToken(r.Header)
	if refused != nil {
		refused.scopes = a.Scopes
		return nil, refused
	}
	info, err := a.Verifier(r.Context(), token, r)
	switch {
	case errors.Is(err, auth.ErrInvalidToken):
		return nil, &challenge{http.StatusUnauthorized, "invalid_token", "the token is not valid", a.Scopes}
	case errors.Is(err, auth.ErrOAuth):
		return nil, &challenge{http.StatusBadRequest, "invalid_request", "the request for authorization is malformed", nil}
	case err != nil || info == nil:
		if a.Logger != nil {
			a.Logger.Error("token verifier failed", "error", err)
		} else {
			slog.Error("token verifier failed", "error", err)
		}
		return nil, &challenge{status: http.StatusInternalServerError, text: "the token could not be verified"}
	}
	switch {
	case info.Expiration.IsZero() && !a.AllowMissingExpiration:
		return nil, &challenge{http.StatusUnauthorized, "invalid_token", "the token does not say when it expires", a.Scopes}
	case !info.Expiration.IsZero() && time.Now().After(info.Expiration.Add(a.ClockSkew)):
		return nil, &challenge{http.StatusUnauthorized, "invalid_token", "the token has expired", a.Scopes}
	case !a.grants(info, a.Scopes):
		return nil, insufficient(a.Scopes)
	}
	return info, nil
}

// bearerToken is the token in the Authorization header, the only place where one
// may be.
func bearerToken(h http.Header) (string, *challenge) {
	values := h["Authorization"]
	if len(values) == 0 {
		return "", &challenge{status: http.StatusUnauthorized, text: "a bearer token is required"}
	}
	fields := strings.Fields(values[0])
	if len(fields) == 0 || !strings.EqualFold(fields[0], "bearer") {
		return "", &challenge{status: http.StatusUnauthorized, text: "a bearer token is required"}
	}
	if len(values) > 1 || len(fields) != 2 {
		return "", &challenge{status: http.StatusBadRequest, code: "invalid_request", text: "the Authorization header is malformed"}
	}
	return fields[1], nil
}

func insufficient(scopes []string) *challenge {
	return &challenge{http.StatusForbidden, "insufficient_scope", "the token's scopes do not suffice", scopes}
}

func (a *Auth) grants(info *auth.TokenInfo, needed []string) bool {
	for _, scope := range needed {
		if a.Satisfies != nil {
			if !a.Satisfies(info.Scopes, scope) {
				return false
			}
		} else if !slices.Contains(info.Scopes, scope) {
			return false
		}
	}
	return true
}

// permits checks the scopes that the call itself needs, or answers it. A batch
// needs those of all its calls.
func (a *Auth) permits(s *server.Server, p *post) bool {
	if a.ScopesFor == nil {
		return true
	}
	needed := slices.Clone(a.Scopes)
	for _, scope := range a.needed(s, p) {
		if !slices.Contains(needed, scope) {
			needed = append(needed, scope)
		}
	}
	if p.token != nil && a.grants(p.token, needed) {
		return true
	}
	a.refuse(p.w, insufficient(needed), p.answerable())
	return false
}

func (a *Auth) needed(s *server.Server, p *post) (scopes []string) {
	if !p.batch {
		return a.neededBy(s, &p.msg)
	}
	elements, fault := jsonrpc.Batch(p.body, jsonrpc.Limits{})
	if fault != nil {
		return nil // nothing of it will run
	}
	for element := range elements {
		var m jsonrpc.Message
		if jsonrpc.Scan(element, jsonrpc.Limits{}, &m) == nil {
			scopes = append(scopes, a.neededBy(s, &m)...)
		}
	}
	return scopes
}

func (a *Auth) neededBy(s *server.Server, m *jsonrpc.Message) []string {
	if m.Kind != jsonrpc.KindRequest {
		return nil
	}
	raw, _ := m.Param(s.NameParam(m.Method))
	name, _ := jsonrpc.Unquote(raw)
	return a.ScopesFor(m.Method, name)
}

// refuse answers with a challenge, as RFC 6750 wants it.
func (a *Auth) refuse(w http.ResponseWriter, c *challenge, id jsonrpc.ID) {
	if c.status == http.StatusUnauthorized || c.status == http.StatusForbidden || c.code != "" {
		var params []string
		if c.code != "" {
			params = append(params, fmt.Sprintf("error=%q, error_description=%q", c.code, c.text))
		}
		if len(c.scopes) > 0 {
			params = append(params, fmt.Sprintf("scope=%q", strings.Join(c.scopes, " ")))
		}
		if a.MetadataURL != "" {
			params = append(params, fmt.Sprintf("resource_metadata=%q", a.MetadataURL))
		}
		value := "Bearer"
		if len(params) > 0 {
			value += " " + strings.Join(params, ", ")
		}
		w.Header().Set("WWW-Authenticate", value)
	}
	code := jsonrpc.CodeInvalidRequest
	if c.status == http.StatusInternalServerError {
		code = jsonrpc.CodeInternalError
	}
	refuseID(w, c.status, id, code, c.text, nil)
}
