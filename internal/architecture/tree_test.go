package architecture_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

const modulePath = "github.com/heedmcp/heed"

// textFile is any file of the repository that people read.
type textFile struct {
	path string // relative to the root, with slashes
	text []byte
}

// goFile is a parsed Go file.
type goFile struct {
	textFile
	dir     string // "." for the root
	isTest  bool
	syntax  *ast.File
	imports map[string]string // local name -> import path
}

// tree is the repository as the rules see it. Written once by loadTree.
type tree struct {
	fset    *token.FileSet
	texts   []textFile
	files   []goFile
	modules []string // folders below the root with a go.mod of their own
}

var loadTree = sync.OnceValues(func() (*tree, error) {
	root, err := findRoot()
	if err != nil {
		return nil, err
	}
	t := &tree{fset: token.NewFileSet()}
	err = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return skipDir(entry.Name())
		}
		return t.add(root, filepath.ToSlash(rel), entry)
	})
	return t, err
})

// findRoot walks up to the go.mod of the main module.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.Contains(mod, []byte("module "+modulePath+"\n")) {
			return dir, nil
		}
		if filepath.Dir(dir) == dir {
			return "", fmt.Errorf("no go.mod of %s above the test", modulePath)
		}
		dir = filepath.Dir(dir)
	}
}

// skipDir leaves out what is not ours (git's and npm's folders), what is generated (the
// site), and recorded inputs, which must be free to hold anything.
func skipDir(name string) error {
	if name == ".git" || name == "node_modules" || name == "testdata" || name == ".site" {
		return fs.SkipDir
	}
	return nil
}

func (t *tree) add(root, rel string, entry fs.DirEntry) error {
	if !entry.Type().IsRegular() {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(rel)))
	if err != nil {
		return err
	}
	if !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0 {
		return nil // a binary: a database or an executable, ignored by git
	}
	if path.Base(rel) == "go.mod" && path.Dir(rel) != "." {
		t.modules = append(t.modules, path.Dir(rel))
	}
	file := textFile{path: rel, text: text}
	t.texts = append(t.texts, file)
	if path.Ext(rel) != ".go" {
		return nil
	}
	syntax, err := parser.ParseFile(t.fset, rel, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	t.files = append(t.files, goFile{
		textFile: file,
		dir:      path.Dir(rel),
		isTest:   strings.HasSuffix(rel, "_test.go"),
		syntax:   syntax,
		imports:  importsOf(syntax),
	})
	return nil
}

func importsOf(syntax *ast.File) map[string]string {
	imports := make(map[string]string, len(syntax.Imports))
	for _, spec := range syntax.Imports {
		target, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // the parser has accepted it, so this cannot be
		}
		name := path.Base(target)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if name == "_" || name == "." {
			name += target // keeps several of them apart
		}
		imports[name] = target
	}
	return imports
}

// read returns the tree, parsed once for all tests.
func read(t *testing.T) *tree {
	t.Helper()
	tree, err := loadTree()
	require.NoError(t, err)
	require.NotEmpty(t, tree.files, "the rules see no Go file at all")
	return tree
}

// place says where a node is, as an editor understands it.
func (t *tree) place(node ast.Node) string {
	at := t.fset.Position(node.Pos())
	return fmt.Sprintf("%s:%d", at.Filename, at.Line)
}

// dirs returns the folders that hold non-test Go files, sorted.
func (t *tree) dirs() []string {
	var dirs []string
	for _, file := range t.files {
		if !file.isTest && !slices.Contains(dirs, file.dir) {
			dirs = append(dirs, file.dir)
		}
	}
	slices.Sort(dirs)
	return dirs
}

// inLibrary reports whether a folder belongs to the main module.
func (t *tree) inLibrary(dir string) bool {
	return !isIn(dir, t.modules)
}

// selectors calls visit for each use pkg.Name of an imported package.
func (f goFile) selectors(importPath string, visit func(*ast.SelectorExpr)) {
	for name, target := range f.imports {
		if target != importPath {
			continue
		}
		ast.Inspect(f.syntax, func(node ast.Node) bool {
			if sel, ok := node.(*ast.SelectorExpr); ok {
				if x, ok := sel.X.(*ast.Ident); ok && x.Name == name {
					visit(sel)
				}
			}
			return true
		})
	}
}

// within reports whether dir is base or below it.
func within(dir, base string) bool {
	return dir == base || strings.HasPrefix(dir, base+"/")
}
