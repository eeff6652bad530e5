package architecture_test

import (
	"go/ast"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
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

// maySleep reports whether a call is inside of an argument of synctest.Test,
// or in a function that is no test by itself of a file that has such bubbles.
func (f goFile) maySleep(call ast.Node) bool {
	bubbles := 0
	inside := false
	f.selectors("testing/synctest", func(*ast.SelectorExpr) { bubbles++ })
	if bubbles == 0 {
		return false
	}
	ast.Inspect(f.syntax, func(node ast.Node) bool {
		outer, ok := node.(*ast.CallExpr)
		if !ok {
			return true
		}
		fun, ok := outer.Fun.(*ast.SelectorExpr)
		if ok && isIdent(fun.X, "synctest") && fun.Sel.Name == "Test" {
			inside = inside || encloses(outer, call)
		}
		return true
	})
	return inside || !slices.ContainsFunc(f.syntax.Decls, func(decl ast.Decl) bool {
		function, ok := decl.(*ast.FuncDecl)
		return ok && encloses(function, call) && isTestName(function.Name.Name)
	})
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
