package skills_test

import (
	"errors"
	"fmt"
	"testing/fstest"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/skills"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Skills come from any file system: an embedded one, an os.Root, or one in memory. A skill that
// breaks a rule of the format is named, and nothing is added.
func ExampleEnable() {
	s := server.New(&mcp.Implementation{Name: "desk", Version: "1.0.0"}, nil)
	files := fstest.MapFS{
		"read-an-answer/SKILL.md": {Data: []byte("---\nname: read-an-answer\ndescription: How to tell an answer from silence.\n---\nWait for the id.\n")},
		"nameless/SKILL.md":       {Data: []byte("Just text.\n")},
	}
	err := skills.Enable(s, files, nil)
	var broken *skills.SkillError
	fmt.Println(errors.As(err, &broken), broken.Path)

	delete(files, "nameless/SKILL.md")
	fmt.Println(skills.Enable(s, files, &skills.Options{DirectoryRead: true}))
	// Output:
	// true nameless
	// <nil>
}
