package main

import (
	"embed"
	"io/fs"
	"time"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/skills"
)

//go:embed skills
var shelf embed.FS

// addSkills adds the extension and two skills, one with a file in a directory of its own.
func (f *fixture) addSkills() {
	tree, err := fs.Sub(shelf, "skills")
	if err == nil {
		err = skills.Enable(f.server, tree, &skills.Options{
			DirectoryRead: true,
			Cache:         server.CacheHint{TTL: time.Minute, Public: true},
		})
	}
	if err != nil {
		panic(err) // the skills are part of the program
	}
}
