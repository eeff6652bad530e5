package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// How rare delays are: one in so many calls.
const (
	often     = 6    // what runs on a goroutine of its own
	sometimes = 150  // function literals, and functions of tests
	seldom    = 1500 // the rest
)

// folder adds the files of one folder, and what they call to each package that they make up.
func (o *overlay) folder(dir string, files []string) error {
	set := token.NewFileSet()
	var parsed []*ast.File
	for _, path := range files {
		file, err := parser.ParseFile(set, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		parsed = append(parsed, file)
	}
	started := startedFunctions(parsed)
	names := map[string]string{} // of a package: the file that defines delay for it
	for i, path := range files {
		test := strings.HasSuffix(path, "_test.go")
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		text, changed := delayed(set, parsed[i], text, test, started)
		if !changed {
			continue
		}
		if err := o.replace(path, text); err != nil {
			return err
		}
		switch name := parsed[i].Name.Name; {
		case !test:
			names[name] = "zz_delay.go"
		case names[name] == "":
			names[name] = "zz_delay_" + name + "_test.go"
		}
	}
	for name, file := range names {
		if err := o.replace(filepath.Join(dir, file), fmt.Appendf(nil, definition, name)); err != nil {
			return err
		}
	}
	return nil
}

// startedFunctions are the names of what some file starts on a goroutine: by go, or given to
// a method that is called Go or AfterFunc.
func startedFunctions(files []*ast.File) map[string]bool {
	started := map[string]bool{}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			for _, f := range starts(n) {
				started[lastName(f)] = true
			}
			return true
		})
	}
	delete(started, "")
	return started
}

// starts are the functions that a statement or call starts on goroutines.
func starts(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.GoStmt:
		return []ast.Expr{n.Call.Fun}
	case *ast.CallExpr:
		if name := lastName(n.Fun); name == "Go" || name == "AfterFunc" {
			return n.Args
		}
	}
	return nil
}

func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// delayed is a file with calls of delay, and whether it has any. Its lines are where they were.
func delayed(set *token.FileSet, file *ast.File, text []byte, test bool, started map[string]bool) (with []byte, changed bool) {
	literals := map[ast.Expr]bool{} // those that start on a goroutine
	rarity := map[*ast.BlockStmt]int{}
	var bodies []*ast.BlockStmt
	add := func(body *ast.BlockStmt, oneIn int) {
		bodies = append(bodies, body)
		rarity[body] = oneIn
	}
	ast.Inspect(file, func(n ast.Node) bool {
		for _, f := range starts(n) {
			literals[f] = true
		}
		switch n := n.(type) {
		case *ast.FuncDecl:
			switch name := n.Name.Name; {
			case n.Body == nil || hasPragma(n.Doc, "//go:nosplit"):
			case strings.HasPrefix(name, "Benchmark"):
			case started[name] && !test:
				add(n.Body, often)
			case test:
				add(n.Body, sometimes)
			default:
				add(n.Body, seldom)
			}
		case *ast.FuncLit:
			oneIn := sometimes
			if literals[n] {
				oneIn = often
			}
			add(n.Body, oneIn)
		}
		return true
	})
	var out bytes.Buffer
	from := 0
	for _, body := range bodies { // in the order of the text: Inspect goes from outside in
		at := set.Position(body.Lbrace).Offset + 1
		out.Write(text[from:at])
		fmt.Fprintf(&out, " delay_(%d);", rarity[body])
		from = at
	}
	out.Write(text[from:])
	return out.Bytes(), len(bodies) > 0
}

func hasPragma(doc *ast.CommentGroup, pragma string) bool {
	if doc == nil {
		return false
	}
	for _, line := range doc.List {
		if strings.HasPrefix(line.Text, pragma) {
			return true
		}
	}
	return false
}
