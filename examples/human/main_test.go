package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/heedmcp/heed/examples/internal/host"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { host.Main(m, main) }

// In the first of these the server sends the question as a request, in the second as its answer.
var revisions = []string{"2025-11-25", "2026-07-28"}

func files(t *testing.T, names ...string) (dir string) {
	dir = t.TempDir()
	for _, name := range names {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	return dir
}

func left(t *testing.T, dir string) (names []string) {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func TestTheUserDecides(t *testing.T) {
	for _, revision := range revisions {
		for _, c := range []struct {
			name   string
			answer mcp.ElicitResult
			said   string
			left   []string
		}{
			{"yes", mcp.ElicitResult{Action: "accept", Content: map[string]any{"sure": true}}, "deleted 2", []string{"c"}},
			{"no", mcp.ElicitResult{Action: "accept", Content: map[string]any{"sure": false}}, "nothing was deleted", []string{"a", "b", "c"}},
			{"declined", mcp.ElicitResult{Action: "decline"}, "nothing was deleted", []string{"a", "b", "c"}},
		} {
			t.Run(revision+" "+c.name, func(t *testing.T) {
				t.Parallel()
				dir := files(t, "a", "b", "c")
				session := host.Start(t, host.Program(t, dir), host.Options{
					Revision: revision,
					Elicit: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
						assert.Equal(t, `Delete ["a" "b"] for good?`, r.Params.Message)
						return &c.answer, nil
					},
				})
				assert.Equal(t, c.said, session.Text("delete_files", map[string]any{"names": []string{"a", "b"}}))
				assert.Equal(t, c.left, left(t, dir))
			})
		}
	}
}

// A cancel ends the question that is open, and its answer, when it comes, deletes nothing.
func TestCancelWhileTheUserThinks(t *testing.T) {
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) {
			dir := files(t, "a")
			asked, ended := make(chan struct{}), make(chan struct{})
			session := host.Start(t, host.Program(t, dir), host.Options{
				Revision: revision,
				Elicit: func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					close(asked)
					<-ctx.Done()
					close(ended)
					return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"sure": true}}, nil
				},
			})
			call := session.Begin("delete_files", map[string]any{"names": []string{"a"}})
			host.Soon(t, asked, "the user is asked")
			call.Stop()
			host.Soon(t, ended, "the question is withdrawn")
			require.NoError(t, session.Close()) // the program has ended
			assert.Equal(t, []string{"a"}, left(t, dir))
		})
	}
}

// A client that cannot ask its user gets an error at once.
func TestNobodyToAsk(t *testing.T) {
	dir := files(t, "a")
	session := host.Start(t, host.Program(t, dir), host.Options{Revision: "2025-11-25"})
	_, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "delete_files", Arguments: map[string]any{"names": []string{"a"}}})
	assert.ErrorContains(t, err, "client does not declare the capability elicitation.form")
	assert.Equal(t, []string{"a"}, left(t, dir))
}
