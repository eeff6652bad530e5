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
		file.selectors("time", func(sel *ast.SelectorExpr) {
			if sel.Sel.Name == "Sleep" {
				assert.Truef(t, file.maySleep(sel),
					"%s: wait for what has to happen, or sleep in a testing/synctest bubble", tree.place(sel))
			}
		})
	}
}

// maySleep reports whether the function around a call has a bubble, or is a
// part that the bubbles of its file use. Whether a function runs in a bubble
// is more than the syntax tells; a test without any is what this finds.
func (f goFile) maySleep(call ast.Node) bool {
	var bubbles []ast.Node
	f.selectors("testing/synctest", func(sel *ast.SelectorExpr) { bubbles = append(bubbles, sel) })
	if len(bubbles) == 0 {
		return false
	}
	for _, decl := range f.syntax.Decls {
		function, ok := decl.(*ast.FuncDecl)
		if ok && encloses(function, call) && isTestName(function.Name.Name) {
			return slices.ContainsFunc(bubbles, func(bubble ast.Node) bool { return encloses(function, bubble) })
		}
	}
	return true
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
	} {
		syntax, err := parser.ParseFile(token.NewFileSet(), c.name, "package x_test; import ("+c.imports+"); "+c.body, parser.SkipObjectResolution)
		require.NoError(t, err, c.name)
		file := goFile{syntax: syntax, imports: importsOf(syntax)}
		sleeps := 0
		file.selectors("time", func(sel *ast.SelectorExpr) {
			sleeps++
			assert.Equal(t, c.allowed, file.maySleep(sel), c.name)
		})
		assert.Equal(t, 1, sleeps, c.name)
	}
}

// A skipped test is one that nobody misses when it is broken.
func TestTestsAreNotSkipped(t *testing.T) {
	tree := read(t)
	skips := []string{"Skip", "Skipf", "SkipNow"}
	for _, file := range tree.files {
		if !file.isTest {
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
