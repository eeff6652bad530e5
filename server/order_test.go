package server_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// orderedServer has three tools, registered neither in the order of their names
// nor in that of the alphabet backwards.
func orderedServer(pageSize int, ordered bool) *server.Server {
	s := server.New(&mcp.Implementation{Name: "order", Version: "1"}, &server.Options{PageSize: pageSize, RegistrationOrder: ordered})
	for _, name := range []string{"m", "z", "a"} {
		addNamed(s, name)
	}
	return s
}

func addNamed(s *server.Server, name string) {
	server.MustAddTool(s, &mcp.Tool{Name: name}, func(context.Context, *servercontext.Request, struct{}) (string, error) {
		return name, nil
	})
}

// toolPage is one page of tools/list.
func toolPage(t *testing.T, p *peer, id int, cursor string) (names []string, next string) {
	t.Helper()
	params := M{}
	if cursor != "" {
		params["cursor"] = cursor
	}
	p.Request(id, "tools/list", params)
	var list struct {
		Tools      []struct{ Name string }
		NextCursor string
	}
	raw, err := json.Marshal(p.Result(id))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &list))
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return names, list.NextCursor
}

func TestListsAreOrderedByNameUnlessAskedOtherwise(t *testing.T) {
	for ordered, want := range map[bool][]string{false: {"a", "m", "z"}, true: {"m", "z", "a"}} {
		names, next := toolPage(t, newPeer(t, orderedServer(0, ordered), peerOptions{}), 1, "")
		assert.Equal(t, want, names)
		assert.Empty(t, next)
	}
}

func TestRegistrationOrderKeepsWhatIsReplaced(t *testing.T) {
	s := orderedServer(0, true)
	p := newPeer(t, s, peerOptions{})
	addNamed(s, "z")
	names, _ := toolPage(t, p, 1, "")
	assert.Equal(t, []string{"m", "z", "a"}, names)

	s.RemoveTools("m", "unknown")
	addNamed(s, "m")
	names, _ = toolPage(t, p, 2, "")
	assert.Equal(t, []string{"z", "a", "m"}, names, "what comes back comes last")
}

// A cursor goes on behind the item it was given for, whatever has come and
// gone meanwhile: nothing is listed twice, nothing that stayed is left out.
func TestRegistrationOrderKeepsCursors(t *testing.T) {
	s := orderedServer(1, true)
	p := newPeer(t, s, peerOptions{})
	_, first := toolPage(t, p, 1, "")
	names, second := toolPage(t, p, 2, first)
	require.Equal(t, []string{"z"}, names)

	s.RemoveTools("z") // the item of the second cursor
	addNamed(s, "m")   // replaced
	addNamed(s, "b")   // new
	for id, cursor := range []string{first, second} {
		names, next := toolPage(t, p, 10+id, cursor)
		require.Equal(t, []string{"a"}, names)
		names, next = toolPage(t, p, 20+id, next)
		assert.Equal(t, []string{"b"}, names)
		assert.Empty(t, next)
	}
	s.RemoveTools("m", "a", "b")
	names, next := toolPage(t, p, 30, second)
	assert.Empty(t, names)
	assert.Empty(t, next)
	addNamed(s, "z")
	names, _ = toolPage(t, p, 31, second)
	assert.Equal(t, []string{"z"}, names, "it was registered anew, behind all that the cursor has seen")
}
