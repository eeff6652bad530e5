package architecture_test

import (
	"go/ast"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

const officialSDK = "github.com/modelcontextprotocol/go-sdk/mcp"

// Names of the official SDK that start its runtime, or are only of use to
// somebody who does. Its other types are this project's public vocabulary.
var (
	officialServer = []string{
		"NewServer", "Server", "ServerSession",
		"NewStreamableHTTPHandler", "StreamableHTTPHandler", "StreamableServerTransport",
		"NewSSEHandler", "SSEHandler", "SSEServerTransport",
	}
	officialClient = []string{"NewClient", "Client", "ClientSession"}
)

// Folders that may: gosdk serves code written for that SDK, bench compares
// with it, and examples and conformance may be its client, to show an unchanged one at work.
var (
	mayServe = []string{"gosdk", "bench"}
	mayCall  = []string{"gosdk", "bench", "examples", "conformance"}
)

func TestOfficialRuntimeIsNotStarted(t *testing.T) {
	tree := read(t)
	typesUsed := false
	for _, file := range tree.files {
		if file.isTest {
			continue
		}
		file.selectors(officialSDK, func(sel *ast.SelectorExpr) {
			typesUsed = true
			assert.Falsef(t, slices.Contains(officialServer, sel.Sel.Name) && !isIn(file.dir, mayServe),
				"%s: mcp.%s: the runtime is our own; only the official SDK's types are used", tree.place(sel), sel.Sel.Name)
			assert.Falsef(t, slices.Contains(officialClient, sel.Sel.Name) && !isIn(file.dir, mayCall),
				"%s: mcp.%s: only conformance, examples, gosdk and bench act as the official SDK's client", tree.place(sel), sel.Sel.Name)
		})
	}
	assert.True(t, typesUsed, "no file uses the official SDK's types: has its import path changed?")
}

func isIn(dir string, bases []string) bool {
	return slices.ContainsFunc(bases, func(base string) bool { return within(dir, base) })
}
