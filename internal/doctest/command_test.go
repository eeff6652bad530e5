package doctest_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	shellBlock = regexp.MustCompile("(?ms)^```(?:sh|console)\n(.*?)^```")
	inlineCode = regexp.MustCompile("`((?:make|go test|go run|go build|go doc) [^`\n]*)`")
	target     = regexp.MustCompile(`(?m)^([a-z-]+):`)
	quoted     = regexp.MustCompile(`'[^']*'|"[^"]*"`)
	testName   = regexp.MustCompile(`^[(^]*((?:Test|Fuzz|Example)\w+)`)
)

// commands are the command lines of a page: of its shell blocks, and those in its text.
func commands(page string) []string {
	var all []string
	for _, block := range shellBlock.FindAllStringSubmatch(page, -1) {
		joined := strings.ReplaceAll(block[1], "\\\n", " ")
		for line := range strings.Lines(joined) {
			all = append(all, strings.TrimSpace(line))
		}
	}
	for _, code := range inlineCode.FindAllStringSubmatch(page, -1) {
		all = append(all, code[1])
	}
	return all
}

// What a printed command refers to exists: make's targets, packages, tests that are named, scripts,
// and the flags of this repository's programs. Whether it works as well is tried by hand.
func TestEveryPrintedCommandRefersToWhatExists(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	var targets []string
	for _, found := range target.FindAllStringSubmatch(string(makefile), -1) {
		targets = append(targets, found[1])
	}
	checked := 0
	for _, path := range pages(t) {
		page, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, line := range commands(string(page)) {
			line, _, _ = strings.Cut(line, " #")
			for command := range strings.SplitSeq(line, "&&") {
				words := strings.Fields(command)
				if len(words) < 2 {
					continue
				}
				if checkCommand(t, path+": "+command, words, targets) {
					checked++
				}
			}
		}
	}
	require.Greater(t, checked, 40, "next to nothing was looked at")
}

// checkCommand reports whether there was something to look at.
func checkCommand(t *testing.T, where string, words, targets []string) bool {
	switch {
	case words[0] == "make":
		for _, word := range words[1:] {
			if !strings.Contains(word, "=") {
				assert.Contains(t, targets, word, where)
			}
		}
	case words[0] == "go" && slices.Contains([]string{"run", "build", "test"}, words[1]):
		checkGo(t, where, words[2:], words[1])
	case strings.HasPrefix(words[0], "examples/"):
		assert.FileExists(t, filepath.Join(root, words[0]), where)
	default:
		return false
	}
	return true
}

func checkGo(t *testing.T, where string, words []string, verb string) {
	at := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, "./") })
	if at < 0 || strings.HasSuffix(words[at], "...") || words[at] == "./fixtures" { // of another module
		return
	}
	dir := filepath.Join(root, words[at])
	if !assert.DirExists(t, dir, where) {
		return
	}
	switch verb {
	case "run":
		for _, word := range words[at+1:] {
			if word == "--" {
				break // the flags of a program that is not ours
			}
			if name, ok := strings.CutPrefix(word, "-"); ok && quoted.FindString(word) == "" {
				name, _, _ = strings.Cut(name, "=")
				if name == "h" {
					continue // package flag has it
				}
				assert.True(t, anySource(dir, "", `"`+name+`"`), "%s: no flag -%s in %s", where, name, dir)
			}
		}
	case "test":
		if bench := slices.Index(words, "-bench"); bench >= 0 && bench < at {
			name := strings.Trim(words[bench+1], `'"`)
			assert.True(t, anySource(dir, "_test", "func Benchmark"+name), "%s: no Benchmark%s in %s", where, name, dir)
		}
		run := slices.Index(words, "-run")
		if run < 0 || run > at {
			return
		}
		for name := range strings.SplitSeq(strings.Trim(words[run+1], `'"`), "|") {
			if found := testName.FindStringSubmatch(name); found != nil {
				assert.True(t, anySource(dir, "_test", "func "+found[1]), "%s: no %s in %s", where, found[1], dir)
			}
		}
	}
}

// anySource tells whether a Go file of a folder has the text.
func anySource(dir, kind, text string) bool {
	files, _ := filepath.Glob(filepath.Join(dir, "*"+kind+".go"))
	return slices.ContainsFunc(files, func(path string) bool {
		source, err := os.ReadFile(path)
		return err == nil && strings.Contains(string(source), text)
	})
}
