package streamable_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/heedmcp/heed/transport/streamable"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// byName takes a token for the name of its user.
func byName(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
	return &auth.TokenInfo{UserID: token}, nil
}

// byParts takes tokens of the form user:scope+scope:state.
func byParts(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
	parts := strings.Split(token, ":")
	info := &auth.TokenInfo{UserID: parts[0], Scopes: strings.Split(parts[1], "+"), Expiration: time.Now().Add(time.Hour)}
	switch parts[2] {
	case "expired":
		info.Expiration = time.Now().Add(-time.Hour)
	case "skewed":
		info.Expiration = time.Now().Add(-time.Second)
	case "eternal":
		info.Expiration = time.Time{}
	case "unknown":
		return nil, errors.Join(auth.ErrInvalidToken, errors.New("secret detail"))
	case "oauth":
		return nil, auth.ErrOAuth
	case "broken":
		return nil, errors.New("secret detail")
	case "nothing":
		return nil, nil
	}
	return info, nil
}

func TestAuthChallenges(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		const where = `resource_metadata="https://mem.example/.well-known/oauth-protected-resource/mcp"`
		e := serve(t, f.s, &streamable.Options{Auth: &streamable.Auth{
			Verifier:    byParts,
			MetadataURL: "https://mem.example/.well-known/oauth-protected-resource/mcp",
			Scopes:      []string{"mcp"},
			ClockSkew:   time.Minute,
			ScopesFor: func(method, name string) []string {
				if method == "tools/call" && name == "wait" {
					return []string{"jobs.write"}
				}
				return nil
			},
			Satisfies: func(granted []string, needed string) bool {
				return slices.Contains(granted, needed) || slices.Contains(granted, strings.Split(needed, ".")[0]+".all")
			},
			Logger: f.s.Logger(),
		}})
		echo, wait := modernTool(1, "echo", M{"text": "x"}), modernTool(1, "wait", M{"tag": "a"})
		for _, c := range []struct {
			name, authorization string
			call                call
			status              int
			challenge           []string // parts of WWW-Authenticate; none: there is no such header
		}{
			{"good", "Bearer ann:mcp:", echo, 200, nil},
			{"lower-case scheme", "bearer ann:mcp:", echo, 200, nil},
			{"no token", "", echo, 401, []string{"Bearer scope=\"mcp\"", where}},
			{"another scheme", "Basic YTpi", echo, 401, []string{where}},
			{"no credentials", "Bearer", echo, 400, []string{`error="invalid_request"`}},
			{"two tokens", "Bearer a b", echo, 400, []string{`error="invalid_request"`}},
			{"unknown", "Bearer ann:mcp:unknown", echo, 401, []string{`error="invalid_token"`, `scope="mcp"`, where}},
			{"expired", "Bearer ann:mcp:expired", echo, 401, []string{`error="invalid_token"`, where}},
			{"expired before its scopes matter", "Bearer ann:other:expired", echo, 401, []string{`error="invalid_token"`}},
			{"within the skew", "Bearer ann:mcp:skewed", echo, 200, nil},
			{"no expiration", "Bearer ann:mcp:eternal", echo, 401, []string{`error="invalid_token"`}},
			{"wrong scope", "Bearer ann:other:", echo, 403, []string{`error="insufficient_scope"`, `scope="mcp"`, where}},
			{"wrong scope for the tool", "Bearer ann:mcp:", wait, 403, []string{`error="insufficient_scope"`, `scope="mcp jobs.write"`, where}},
			{"oauth error", "Bearer ann:mcp:oauth", echo, 400, []string{`error="invalid_request"`}},
			{"verifier broken", "Bearer ann:mcp:broken", echo, 500, nil},
			{"verifier says nothing", "Bearer ann:mcp:nothing", echo, 500, nil},
		} {
			a := e.do(c.call.with("Authorization", c.authorization))
			assert.Equalf(t, c.status, a.status, "%s: %s", c.name, a.body)
			got := a.header.Get("WWW-Authenticate")
			for _, part := range c.challenge {
				assert.Containsf(t, got, part, c.name)
			}
			if c.challenge == nil {
				assert.Emptyf(t, got, c.name)
			}
			assert.Equalf(t, "application/json", a.header.Get("Content-Type"), c.name)
			assert.NotContainsf(t, a.body+got, "secret", c.name)
			if c.status != 200 {
				assert.NotZerof(t, a.code(t), c.name)
			}
		}
		require.Empty(t, f.started, "no handler ran")

		// One scope may imply others.
		w := e.open(wait.with("Authorization", "Bearer ann:mcp+jobs.all:"))
		f.begun("a")
		w.drop()
		f.next("a")
	})
}

func TestAuthCoversEveryCallOfABatch(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		e := serve(t, f.s, &streamable.Options{Auth: &streamable.Auth{
			Verifier: byName, AllowMissingExpiration: true,
			ScopesFor: func(method, name string) []string {
				if name == "wait" {
					return []string{"jobs.write"}
				}
				return nil
			},
		}})
		e.bearer = "ann"
		in := e.initialize(server.Version20250326, nil)
		a := in.do(newCall("POST", `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wait","arguments":{"tag":"a"}}}]`))
		require.Equal(t, 403, a.status)
		require.Empty(t, f.started)
	})
}

func TestTokenAndHeaderReachTheHandler(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		server.MustAddTool(f.s, &mcp.Tool{Name: "who"}, func(ctx context.Context, req *servercontext.Request, _ struct{}) (string, error) {
			if auth.TokenInfoFromContext(ctx) != req.TokenInfo() {
				return "", errors.New("the official accessor does not agree")
			}
			return req.TokenInfo().UserID + " " + req.Header().Get("X-Test"), nil
		})
		h := streamable.NewHandler(f.s, nil)
		for name, e := range map[string]*endpoint{
			"option":              serve(t, f.s, &streamable.Options{Auth: &streamable.Auth{Verifier: byName, AllowMissingExpiration: true}}),
			"official middleware": serveHandler(t, f.s, h, auth.RequireBearerToken(byName, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(h)),
		} {
			e.bearer = "ann"
			in := e.initialize(server.Version20251125, nil)
			for _, a := range []answer{
				e.do(modernTool(1, "who", M{}).with("X-Test", "there")),
				in.do(classicTool(1, "who", M{}).with("X-Test", "there")),
			} {
				assert.Containsf(t, a.body, "ann there", name)
			}
		}
	})
}
