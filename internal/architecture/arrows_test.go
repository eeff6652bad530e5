package architecture_test

import (
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// arrow says what the packages of one pattern may import, besides the standard
// library. Test files are free, and so are modules of their own: programs that
// put parts together.
type arrow struct {
	pattern string   // folder, path.Match syntax
	heed    []string // packages of this module, path.Match syntax; "*" is any
	foreign []string // module or package paths of others; "*" is any
	why     string
}

// The order of the rows is the order of the arrows, innermost first. A row
// whose pattern matches no package fails, and so does a package without a row.
var arrows = []arrow{
	{
		pattern: "cancellation",
		heed:    []string{"cancellation/internal/*"},
		why:     "tokens are the vocabulary of everything else and must be usable without any of it",
	},
	{
		pattern: "cancellation/cancellationtest",
		heed:    []string{"cancellation", "cancellation/internal/*"},
		foreign: []string{"go.uber.org/goleak"},
		why:     "whoever tests code that only knows tokens needs nothing but tokens",
	},
	{
		pattern: "cancellation/internal/*",
		why:     "what tokens and their test kit share must not know more than tokens do",
	},
	{
		pattern: "servercontext",
		heed:    []string{"cancellation", "internal/*"},
		foreign: []string{"*"},
		why:     "handlers see this package; it must not know the server that calls them",
	},
	{
		pattern: "server",
		heed:    []string{"cancellation", "servercontext", "internal/*"},
		foreign: []string{"*"},
		why:     "the server knows requests and sessions and never learns which transport it serves",
	},
	{
		pattern: "transport/transporttest",
		heed:    []string{"cancellation", "servercontext", "server", "internal/*", "transport/transporttest/*"},
		foreign: []string{"*"},
		why:     "the contract of transports is tried from outside, whatever the transport",
	},
	{
		pattern: "transport/transporttest/fixture",
		heed:    []string{"cancellation", "servercontext", "server", "tasks"},
		foreign: []string{"*"},
		why:     "fixtures are handlers on a server, and may be called as tasks",
	},
	{
		pattern: "transport/*",
		heed:    []string{"cancellation", "servercontext", "server", "internal/*"},
		foreign: []string{"*"},
		why:     "transports are adapters: they know bytes and streams, and not one another",
	},
	{
		pattern: "skills",
		heed:    []string{"cancellation", "servercontext", "server", "internal/*"},
		foreign: []string{"github.com/modelcontextprotocol/go-sdk", "go.yaml.in/yaml/v3"},
		why:     "an extension of the server, on any transport and with any tree of files",
	},
	{
		pattern: "tasks",
		heed:    []string{"cancellation", "servercontext", "server", "internal/*"},
		foreign: []string{"*"},
		why:     "an extension of the server, on any transport and with any store",
	},
	{
		pattern: "tasks/sqlstore",
		heed:    []string{"tasks"},
		why:     "databases are reached through database/sql; drivers are the program's choice",
	},
	{
		pattern: "tasks/storetest",
		heed:    []string{"tasks", "server"},
		foreign: []string{"github.com/stretchr/testify/*"},
		why:     "a test kit for stores knows stores, and no server that runs",
	},
	{
		pattern: "gosdk",
		heed:    []string{"cancellation", "servercontext", "server", "internal/*"},
		foreign: []string{"*"},
		why:     "it brings the official SDK's handlers to the server, whatever carries the messages",
	},
	{
		pattern: "internal/*",
		heed:    []string{"internal/*"},
		foreign: []string{"*"},
		why:     "internal packages are leaves that any layer may use, so they must not point back up",
	},
	{
		pattern: "cmd/*",
		heed:    []string{"transport/transporttest", "transport/transporttest/*"},
		why:     "heedcheck tries any server, so that it must not know ours",
	},
	{
		pattern: "examples/internal/*",
		foreign: []string{"github.com/modelcontextprotocol/go-sdk", "github.com/stretchr/testify", "go.uber.org/goleak"},
		why:     "what starts examples for their tests is a client, and knows no server",
	},
	{
		pattern: "examples/*",
		heed:    []string{"*"},
		foreign: []string{"*"},
		why:     "examples put everything together",
	},
}

func TestImportsFollowTheArrows(t *testing.T) {
	tree := read(t)
	for _, file := range tree.files {
		if file.isTest || !tree.inLibrary(file.dir) {
			continue
		}
		row := rowOf(file.dir)
		if row < 0 {
			continue // TestEveryPackageHasItsPlace reports it
		}
		for _, target := range slices.Sorted(maps.Values(file.imports)) {
			assert.Truef(t, mayImport(row, file.dir, target),
				"%s imports %s, which %s may not: %s", file.path, target, file.dir, arrows[row].why)
		}
	}
}

func TestEveryPackageHasItsPlace(t *testing.T) {
	tree := read(t)
	for _, dir := range tree.dirs() {
		assert.Truef(t, rowOf(dir) >= 0 || !tree.inLibrary(dir),
			"package %s has no row in the table of arrows: decide what it may import, and why", dir)
	}
}

func TestNoArrowIsAboutAPackageThatIsGone(t *testing.T) {
	dirs := read(t).dirs()
	for _, row := range arrows {
		assert.Truef(t, slices.ContainsFunc(dirs, func(dir string) bool { return matches(row.pattern, dir) }),
			"the row of %s matches no package any longer: remove it", row.pattern)
		assert.NotEmptyf(t, row.why, "the row of %s says no reason", row.pattern)
	}
}

func TestArrowRulesRefuseWhatTheyShould(t *testing.T) {
	for _, c := range []struct {
		from, to string
		allowed  bool
	}{
		{"cancellation", "context", true},
		{"cancellation", modulePath + "/server", false},
		{"cancellation", "github.com/modelcontextprotocol/go-sdk/mcp", false},
		{"cancellation/cancellationtest", modulePath + "/cancellation", true},
		{"servercontext", modulePath + "/cancellation", true},
		{"servercontext", modulePath + "/server", false},
		{"server", modulePath + "/internal/jsonrpc", true},
		{"server", modulePath + "/transport/stdio", false},
		{"transport/stdio", modulePath + "/server", true},
		{"transport/stdio", modulePath + "/transport/streamable", false},
		{"internal/jsonrpc", modulePath + "/cancellation", false},
	} {
		row := rowOf(c.from)
		require.GreaterOrEqual(t, row, 0, c.from)
		assert.Equalf(t, c.allowed, mayImport(row, c.from, c.to), "%s imports %s", c.from, c.to)
	}
}

// rowOf returns the index of the first row for the package in dir, or -1.
// A folder below a matching one belongs to it: examples/longtool/internal/x.
func rowOf(dir string) int {
	for ; dir != "." && dir != "/"; dir = path.Dir(dir) {
		i := slices.IndexFunc(arrows, func(row arrow) bool { return matches(row.pattern, dir) })
		if i >= 0 {
			return i
		}
	}
	return -1
}

func mayImport(row int, from, target string) bool {
	inside, ours := strings.CutPrefix(target, modulePath+"/")
	switch {
	case target == modulePath:
		return false // the root holds no package
	case ours:
		return inside == from || matchesAny(arrows[row].heed, inside)
	case isStandard(target):
		return true
	default:
		return slices.ContainsFunc(arrows[row].foreign, func(base string) bool {
			return base == "*" || within(target, base)
		})
	}
}

// isStandard: only import paths with a dot in their first element are
// anybody else's.
func isStandard(target string) bool {
	first, _, _ := strings.Cut(target, "/")
	return !strings.Contains(first, ".")
}

func matchesAny(patterns []string, dir string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return matches(pattern, dir) })
}

func matches(pattern, dir string) bool {
	ok, err := path.Match(pattern, dir)
	return err == nil && (ok || pattern == "*")
}
