// Command human asks before it acts: its tool deletes files only when the user has said yes. The
// handler waits for the answer as for a function; in every protocol revision that has elicitation
// the question goes to the user in that revision's own way. A cancel while the question is open
// ends the question, and nothing is deleted.
//
//	go run ./examples/human FOLDER
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/heedmcp/heed/transport/stdio"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type deleteIn struct {
	Names []string `json:"names" jsonschema:"minItems=1" jsonschema_description:"the files to delete"`
}

// folder is where files are; a root lets no name lead out of it.
type folder struct{ root *os.Root }

// region ask
func (f *folder) delete(ctx context.Context, req *servercontext.Request, in deleteIn) (string, error) {
	answer, err := req.Elicit(ctx, &mcp.ElicitParams{
		Message: fmt.Sprintf("Delete %q for good?", in.Names),
		RequestedSchema: map[string]any{
			"type":       "object",
			"properties": map[string]any{"sure": map[string]any{"type": "boolean", "title": "Yes, delete them"}},
			"required":   []string{"sure"},
		},
	})
	if err != nil {
		return "", err // cancelled, nobody to ask, or no answer in time: in any case no yes
	}
	if answer.Action != "accept" || answer.Content["sure"] != true {
		return "nothing was deleted", nil // that is an answer, and no error
	}
	for i, name := range in.Names {
		if err := cancellation.Checkpoint(ctx); err != nil {
			return "", fmt.Errorf("%w; %d of %d were deleted", err, i, len(in.Names))
		}
		if err := f.root.Remove(name); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("deleted %d", len(in.Names)), nil
}

// endregion

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: human FOLDER")
		os.Exit(2)
	}
	root, err := os.OpenRoot(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	defer root.Close()
	f := &folder{root: root}
	s := server.New(&mcp.Implementation{Name: "human", Version: "1.0.0"}, nil)
	server.MustAddTool(s, &mcp.Tool{Name: "delete_files", Description: "Deletes files, if the user agrees."}, f.delete)
	if err := stdio.Serve(context.Background(), s, nil); err != nil {
		log.Print(err)
	}
}
