package architecture_test

import (
	"bytes"
	"go/ast"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// yardstick is the folder whose programs measure. They are changed as little
// as possible, so that their numbers stay comparable.
const yardstick = "bench"

// maxLines is where a file has stopped to be about one noun.
const maxLines = 500

func TestFilesAreShort(t *testing.T) {
	for _, file := range read(t).files {
		if file.isTest || within(file.dir, yardstick) || ast.IsGenerated(file.syntax) {
			continue
		}
		lines := bytes.Count(file.text, []byte("\n"))
		assert.LessOrEqualf(t, lines, maxLines, "%s has %d lines: it holds more than one noun", file.path, lines)
	}
}

// Each package explains itself exactly once, in doc.go; a command may do so
// in main.go.
func TestEveryPackageHasOneComment(t *testing.T) {
	tree := read(t)
	for _, dir := range tree.dirs() {
		if within(dir, yardstick) {
			continue
		}
		var found []goFile
		command, files := false, 0
		for _, file := range tree.files {
			if file.dir != dir || file.isTest {
				continue
			}
			files++
			command = command || file.syntax.Name.Name == "main"
			if file.syntax.Doc != nil {
				found = append(found, file)
			}
		}
		if !assert.Lenf(t, found, 1, "package %s must have exactly one package comment", dir) {
			continue
		}
		name := path.Base(found[0].path)
		assert.Truef(t, name == "doc.go" || command && name == "main.go",
			"%s: the package comment belongs in doc.go", found[0].path)
		if !command { // godoc's form for commands is free: "Longtool tells …"
			checkComment(t, found[0], files > 1)
		}
	}
}

func checkComment(t *testing.T, file goFile, hasAPI bool) {
	t.Helper()
	text := file.syntax.Doc.Text()
	assert.Truef(t, strings.HasPrefix(text, "Package "+file.syntax.Name.Name+" "),
		"%s: the comment begins with %q", file.path, "Package "+file.syntax.Name.Name)
	if !hasAPI || within(file.dir, "examples") {
		return // tests alone, or a part of a program: nothing to call
	}
	for _, heading := range []string{"# Concurrency", "# Guarantees"} {
		assert.Containsf(t, text, "\n"+heading+"\n", "%s: the package comment has no %q", file.path, heading)
	}
}
