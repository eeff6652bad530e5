package main

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/heedmcp/heed/examples/internal/host"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { host.Main(m, main) }

// bearer is a client's web client: it adds the token to each request.
type bearer struct {
	token string
	web   *http.Transport
}

func (b *bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.web.RoundTrip(r)
}

func as(t *testing.T, token string) *http.Client {
	b := &bearer{token: token, web: &http.Transport{}}
	t.Cleanup(b.web.CloseIdleConnections)
	return &http.Client{Transport: b}
}

func connect(t *testing.T, url, token, revision string) *host.Session {
	return host.Connect(t, &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: as(t, token)}, host.Options{Revision: revision})
}

func post(t *testing.T, web *http.Client, url, session, body string) (status int, challenge, answer string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	request.Header.Set("Mcp-Session-Id", session)
	request.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	response, err := web.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	all, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, response.Header.Get("WWW-Authenticate"), string(bytes.TrimSpace(all))
}

func TestTokensAreDemanded(t *testing.T) {
	url, _ := host.Listen(t, host.Program(t, "-addr", "127.0.0.1:0"))
	status, challenge, _ := post(t, as(t, "stolen"), url, "", `{}`)
	assert.Equal(t, http.StatusUnauthorized, status)
	assert.Contains(t, challenge, "Bearer")

	ada, bob := connect(t, url, "ada-token", ""), connect(t, url, "bob-token", "")
	assert.Equal(t, "ada", ada.Text("whoami", nil))
	assert.Equal(t, "bob", bob.Text("whoami", nil))
	assert.Equal(t, "the job of ada is done", ada.Text("run_job", map[string]any{"seconds": 1}))
	_, err := bob.CallTool(t.Context(), &mcp.CallToolParams{Name: "run_job", Arguments: map[string]any{"seconds": 1}})
	assert.Error(t, err, "bob may not write")
}

// In each era a call stops when its own client cancels it.
func TestJobStops(t *testing.T) {
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) {
			url, said := host.Listen(t, host.Program(t, "-addr", "127.0.0.1:0"))
			call := connect(t, url, "ada-token", revision).Begin("run_job", map[string]any{"seconds": 3600})
			assert.Equal(t, "for ada", call.Report().Message)
			call.Stop()
			assert.Eventually(t, func() bool { return strings.Contains(said.String(), "the job of ada stopped: cancelled") },
				host.Patience, 5*time.Millisecond, "%s", said)
		})
	}
}

// Who knows the session's id and the request's, but has another token, cancels nothing.
func TestNobodyCancelsForSomebodyElse(t *testing.T) {
	url, _ := host.Listen(t, host.Program(t, "-addr", "127.0.0.1:0"))
	ada := connect(t, url, "ada-token", "2025-11-25")
	require.NotEmpty(t, ada.ID())
	call := ada.Begin("run_job", map[string]any{"seconds": 2})
	call.Report()
	for id := range 10 {
		cancel := strings.Replace(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":ID}}`, "ID", string(rune('0'+id)), 1)
		status, _, _ := post(t, as(t, "bob-token"), url, ada.ID(), cancel)
		assert.GreaterOrEqual(t, status, 400)
	}
	assert.Equal(t, "the job of ada is done", call.Text())
}
