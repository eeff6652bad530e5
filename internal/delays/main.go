// Command delays makes test runs in which goroutines lose their luck: it writes an overlay for
// the go command in which functions begin, now and then, with a delay.
//
//	delays ROOT OUT
//
// takes every Go file below ROOT and leaves OUT/overlay.json, for go test -overlay. With
// HEED_DELAY set to a number of microseconds, what is built with it has delays of up to that
// long: seldom at the start of a function, often where a goroutine starts. They
// are real time in bubbles of testing/synctest as well, whose clock they do not move. So a test, or a
// program, that takes something for done because it is usually done by then fails soon,
// and not once in a thousand runs.
package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: delays ROOT OUT")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "delays:", err)
		os.Exit(1)
	}
}

func run(root, out string) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	if out, err = filepath.Abs(out); err != nil {
		return err
	}
	o := &overlay{out: out, Replace: map[string]string{}}
	dirs, err := packages(root)
	if err != nil {
		return err
	}
	for dir, files := range dirs {
		if err := o.folder(dir, files); err != nil {
			return err
		}
	}
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return o.file("overlay.json", text)
}

// packages are the folders below root that have Go files, with those.
func packages(root string) (map[string][]string, error) {
	dirs := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch name := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && (name == "node_modules" || name == "testdata" || name == ".git"):
			return filepath.SkipDir
		case !entry.IsDir() && strings.HasSuffix(name, ".go"):
			dir := filepath.Dir(path)
			dirs[dir] = append(dirs[dir], path)
		}
		return nil
	})
	return dirs, err
}

// overlay is what the go command reads. It says which file takes another's place.
type overlay struct {
	Replace map[string]string

	out     string // folder of the files; set once
	written int    // how many there are
}

// replace has text stand in for a file, which need not exist.
func (o *overlay) replace(path string, text []byte) error {
	o.written++
	name := fmt.Sprintf("%d_%s", o.written, filepath.Base(path))
	o.Replace[path] = filepath.Join(o.out, name)
	return o.file(name, text)
}

func (o *overlay) file(name string, text []byte) error {
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(o.out, name), text, 0o644)
}
