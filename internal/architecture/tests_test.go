package architecture_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A test that sleeps is slow where it passes and fails where it is slow. In a
// synctest bubble the clock is not the wall's, and sleeping moves it.
func TestTestsDoNotSleep(t *testing.T) {
	tree := read(t)
	for _, file := range tree.files {
		if !file.isTest || isIn(file.dir, []string{"examples", "bench"}) {
			continue
		}
		for _, sleep := range sleepsOutsideBubbles(file, bubbleMakers(tree.files, file.dir)) {
			assert.Failf(t, "a test sleeps",
				"%s: wait for what has to happen, or sleep in a testing/synctest bubble", tree.place(sleep))
		}
	}
}

// bubbleMakers returns the names of a package's test functions that make
// bubbles for others, directly or through one another:
// func inBubble(t, f) { synctest.Test(t, f) }.
func bubbleMakers(files []goFile, dir string) []string {
	var makers []string
	for before := -1; before < len(makers); {
		before = len(makers)
		for _, file := range files {
			if !file.isTest || file.dir != dir {
				continue
			}
			for _, function := range functions(file.syntax) {
				name := function.Name.Name
				if function.Body != nil && !isTestName(name) && !slices.Contains(makers, name) && mentions(file, function.Body, makers) {
					makers = append(makers, name)
				}
			}
		}
	}
	return makers
}

// sleepsOutsideBubbles returns the sleeps of tests that make no bubble, and
// those of other functions in a file where no function does. Whether a function
// runs in a bubble is more than the syntax tells; this finds who cannot.
func sleepsOutsideBubbles(file goFile, makers []string) []ast.Node {
	var sleeps []ast.Node
	file.selectors("time", func(sel *ast.SelectorExpr) {
		if sel.Sel.Name != "Sleep" {
			return
		}
		var around ast.Node = file.syntax
		for _, function := range functions(file.syntax) {
			if encloses(function, sel) && isTestName(function.Name.Name) {
				around = function
			}
		}
		if !mentions(file, around, makers) {
			sleeps = append(sleeps, sel)
		}
	})
	return sleeps
}

// mentions reports whether a node uses testing/synctest, internal/bubble or one of the
// makers.
func mentions(file goFile, node ast.Node, makers []string) bool {
	found := false
	for _, maker := range []string{"testing/synctest", modulePath + "/internal/bubble"} {
		file.selectors(maker, func(sel *ast.SelectorExpr) { found = found || encloses(node, sel) })
	}
	ast.Inspect(node, func(inner ast.Node) bool {
		if name, ok := inner.(*ast.Ident); ok && slices.Contains(makers, name.Name) {
			found = true
		}
		return !found
	})
	return found
}

func TestSleepRuleKnowsBubbles(t *testing.T) {
	for _, c := range []struct {
		name, imports, body string
		allowed             bool
	}{
		{"bare", `"time"`, `func TestX() { time.Sleep(1) }`, false},
		{"bubble", `"time"; "testing/synctest"`, `func TestX() { synctest.Test(nil, func() { time.Sleep(1) }) }`, true},
		{"bubble elsewhere", `"time"; "testing/synctest"`, `func TestX() { time.Sleep(1) }; func TestY() { synctest.Test(nil, nil) }`, false},
		{"part of a bubble", `"time"; "testing/synctest"`, `func wait() { time.Sleep(1) }; func TestY() { synctest.Test(nil, wait) }`, true},
		{"part without one", `"time"`, `func wait() { time.Sleep(1) }`, false},
		{"made bubble", `"time"; "testing/synctest"`, `func TestX() { inBubble(func() { time.Sleep(1) }) }; func inBubble(f any) { synctest.Test(nil, f) }`, true},
		{"bubble made by two", `"time"; "testing/synctest"`, `func TestX() { each(func() { time.Sleep(1) }) }; func each(f any) { inBubble(f) }; func inBubble(f any) { synctest.Test(nil, f) }`, true},
		{"bubble made by another", `"time"; "testing/synctest"`, `func TestX() { f(); time.Sleep(1) }; func inBubble(f any) { synctest.Test(nil, f) }`, false},
	} {
		syntax, err := parser.ParseFile(token.NewFileSet(), c.name, "package x_test; import ("+c.imports+"); "+c.body, parser.SkipObjectResolution)
		require.NoError(t, err, c.name)
		file := goFile{dir: "x", isTest: true, syntax: syntax, imports: importsOf(syntax)}
		sleeps := sleepsOutsideBubbles(file, bubbleMakers([]goFile{file}, "x"))
		assert.Equal(t, c.allowed, len(sleeps) == 0, c.name)
	}
}

// maySkip are the files that may, and why.
var maySkip = map[string]string{
	"conformance/need_test.go": "nginx, Chromium and network namespaces are the machine's; where they are missing CI fails, and others skip",
}

// A skipped test is one that nobody misses when it is broken.
func TestTestsAreNotSkipped(t *testing.T) {
	tree := read(t)
	for path, why := range maySkip {
		assert.NotEmpty(t, why, path)
		assert.Truef(t, slices.ContainsFunc(tree.files, func(file goFile) bool { return file.path == path }), "%s is gone: it may not skip any longer", path)
	}
	skips := []string{"Skip", "Skipf", "SkipNow"}
	for _, file := range tree.files {
		if !file.isTest || maySkip[file.path] != "" {
			continue
		}
		ast.Inspect(file.syntax, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if ok && slices.Contains(skips, sel.Sel.Name) {
				assert.Falsef(t, slices.ContainsFunc([]string{"t", "b", "f", "tb"}, func(name string) bool { return isIdent(sel.X, name) }),
					"%s: a test runs everywhere, or fails and says what it misses", tree.place(call))
			}
			return true
		})
	}
}

func functions(syntax *ast.File) []*ast.FuncDecl {
	var functions []*ast.FuncDecl
	for _, decl := range syntax.Decls {
		if function, ok := decl.(*ast.FuncDecl); ok {
			functions = append(functions, function)
		}
	}
	return functions
}

func isTestName(name string) bool {
	return slices.ContainsFunc([]string{"Test", "Benchmark", "Fuzz", "Example"}, func(prefix string) bool {
		return strings.HasPrefix(name, prefix)
	})
}

func isIdent(expression ast.Expr, name string) bool {
	ident, ok := expression.(*ast.Ident)
	return ok && ident.Name == name
}

func encloses(outer, inner ast.Node) bool {
	return outer.Pos() <= inner.Pos() && inner.End() <= outer.End()
}
