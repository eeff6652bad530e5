package architecture_test

import (
	"go/ast"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	codeFence = regexp.MustCompile("(?ms)^```.*?^```")
	codeSpan  = regexp.MustCompile("`([^`\n]+)`")
	symbol    = regexp.MustCompile(`\b([A-Za-z]\w*)\.([A-Z]\w*)(?:\.([A-Z]\w*))?`)
)

// Variables that pages name without declaring them, and whose they are.
var knownVariables = map[string]string{"req": "Request", "s": "Server"}

// What pages call by name in their prose is there: server.Options, Options.Grace, req.Progress. Code
// in fences is compiled elsewhere. Decisions may name what was not built.
func TestSymbolsThatPagesNameExist(t *testing.T) {
	tree := read(t)
	packages, symbols := exported(tree)
	checked := 0
	for _, file := range tree.texts {
		if file.path != "README.md" && !strings.HasPrefix(file.path, "docs/") ||
			!strings.HasSuffix(file.path, ".md") || strings.HasPrefix(file.path, "docs/decisions/") {
			continue
		}
		prose := codeFence.ReplaceAllString(string(file.text), "")
		for line := range strings.Lines(prose) {
			if cells := strings.SplitN(line, " | ", 2); strings.HasPrefix(file.path, "docs/guides/") && len(cells) == 2 {
				line = cells[1] // the first cell is what another SDK calls it
			}
			for _, span := range codeSpan.FindAllStringSubmatch(line, -1) {
				for _, name := range symbol.FindAllStringSubmatch(span[1], -1) {
					first := name[1]
					if of, known := knownVariables[first]; known {
						first = of
					} else if !packages[first] && !symbols[first] {
						continue // somebody else's
					}
					full := first + "." + name[2]
					if packages[first] && name[3] != "" {
						full += "." + name[3]
					}
					checked++
					assert.Truef(t, symbols[full], "%s: there is no %s", file.path, name[0])
				}
			}
		}
	}
	require.Greater(t, checked, 150, "next to nothing was looked at")
}

// exported lists the names of the packages that users import, and what these export: with and without
// the package's name, members with that of their type.
func exported(tree *tree) (packages, symbols map[string]bool) {
	packages, symbols = map[string]bool{}, map[string]bool{}
	for _, file := range tree.files {
		if file.isTest || !tree.inLibrary(file.dir) || isIn(file.dir, []string{"internal", "cmd", "examples"}) {
			continue
		}
		name := file.syntax.Name.Name
		packages[name] = true
		add := func(symbol string) { symbols[symbol], symbols[name+"."+symbol] = true, true }
		for _, decl := range file.syntax.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				if decl.Recv == nil {
					add(decl.Name.Name)
				} else {
					add(typeName(decl.Recv.List[0].Type) + "." + decl.Name.Name)
				}
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					addSpec(add, spec)
				}
			}
		}
	}
	return packages, symbols
}

func addSpec(add func(string), spec ast.Spec) {
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range spec.Names {
			add(name.Name)
		}
	case *ast.TypeSpec:
		add(spec.Name.Name)
		var members *ast.FieldList
		switch of := spec.Type.(type) {
		case *ast.StructType:
			members = of.Fields
		case *ast.InterfaceType:
			members = of.Methods
		default:
			return
		}
		for _, member := range members.List {
			if member.Names == nil {
				add(spec.Name.Name + "." + typeName(member.Type)) // it is embedded
			}
			for _, name := range member.Names {
				add(spec.Name.Name + "." + name.Name)
			}
		}
	}
}

// typeName is the name of a named type, or of what it points to, without its package.
func typeName(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.StarExpr:
		return typeName(of.X)
	case *ast.IndexExpr:
		return typeName(of.X)
	case *ast.SelectorExpr:
		return of.Sel.Name
	case *ast.Ident:
		return of.Name
	}
	return ""
}
