package skills_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/heedmcp/heed/skills"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const least = "name: a\ndescription: b\n"

// Scalars mean what the core schema of YAML 1.2 says, and authors' order stays.
func TestFrontmatterByTheCoreSchema(t *testing.T) {
	for yaml, want := range map[string]string{
		"v: 014":                       `14`,
		"v: 0o14":                      `12`,
		"v: 0xFf":                      `255`,
		"v: +7":                        `7`,
		"v: -0012":                     `-12`,
		"v: 12345678901234567890":      `12345678901234567890`,
		"v: 1.10":                      `1.10`,
		"v: .5":                        `0.5`,
		"v: 5.":                        `5`,
		"v: -1e3":                      `-1e3`,
		"v: 2026-11-30":                `"2026-11-30"`,
		"v: 2026-11-30T10:00:00Z":      `"2026-11-30T10:00:00Z"`,
		"v: 1_000":                     `"1_000"`,
		"v: 1:30":                      `"1:30"`,
		"v: yes":                       `"yes"`,
		"v: off":                       `"off"`,
		"v: TRUE":                      `true`,
		"v: False":                     `false`,
		"v: ~":                         `null`,
		"v:":                           `null`,
		"v: ''":                        `""`,
		"v: \"7\"":                     `"7"`,
		"v: !!str 7":                   `"7"`,
		"v: |\n  two\n  lines":         `"two\nlines\n"`,
		"v: >-\n  one\n  line":         `"one line"`,
		"v: [1, {x: y}, []]":           `[1,{"x":"y"},[]]`,
		"v: {7: a, true: b}":           `{"7":"a","true":"b"}`,
		"x: &a {k: 1}\nv: *a":          `{"k":1}`,
		"v: {<<: {k: 1}}":              `{"<<":{"k":1}}`,
		"v: \"<&>\\u2028\\U0001F600\"": `"<&>\u2028😀"`,
	} {
		got, err := skills.Frontmatter([]byte("---\n" + least + yaml + "\n---\n"))
		require.NoError(t, err, yaml)
		var members map[string]json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(got), &members), got)
		assert.JSONEq(t, want, string(members["v"]), yaml)
		if want[0] != '"' && want[0] != '{' && want[0] != '[' {
			assert.Equal(t, want, string(members["v"]), "numbers keep their text: %s", yaml)
		}
	}
	got, err := skills.Frontmatter([]byte("---\nz: 1\n" + least + "a: 2\n---\n"))
	require.NoError(t, err)
	assert.Equal(t, `{"z":1,"name":"a","description":"b","a":2}`, got)
}

func TestFrontmatterIsFound(t *testing.T) {
	for name, file := range map[string]string{
		"plain":           "---\n" + least + "---\n# Title\n",
		"CRLF":            "---\r\nname: a\r\ndescription: b\r\n---\r\ntext",
		"byte order mark": "\ufeff---\n" + least + "---\n",
		"at the end":      "---\n" + least + "---",
		"trailing blanks": "---\n" + least + "--- \t\nx",
		"more hyphens":    "---\n" + least + "---\ntext\n---\nmore: yaml\n---\n",
	} {
		got, err := skills.Frontmatter([]byte(file))
		require.NoError(t, err, name)
		assert.Equal(t, `{"name":"a","description":"b"}`, got, name)
	}
}

func TestFrontmatterThatIsRefused(t *testing.T) {
	deep := strings.Repeat("[", 70) + strings.Repeat("]", 70)
	bomb := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i := range 8 {
		one, next := string(rune('0'+i)), string(rune('1'+i))
		bomb += "a" + next + ": &a" + next + " [" + strings.TrimSuffix(strings.Repeat("*a"+one+",", 10), ",") + "]\n"
	}
	for name, c := range map[string]struct{ file, says string }{
		"empty":             {"", "three hyphens"},
		"no line":           {"# Title\n", "three hyphens"},
		"four hyphens":      {"----\n" + least + "----\n", "three hyphens"},
		"no end":            {"---\n" + least, "does not end"},
		"far end":           {"---\n" + least + strings.Repeat("# ....................\n", 3000) + "---\n", "does not end"},
		"a list":            {"---\n- a\n---\n", "no mapping"},
		"nothing":           {"---\n\n---\n", "no mapping"},
		"no YAML":           {"---\n\t{\n---\n", "cannot be used"},
		"twice":             {"---\n" + least + "name: a\n---\n", "twice"},
		"a key of keys":     {"---\n" + least + "? {a: b}\n: c\n---\n", "no scalar"},
		"infinite":          {"---\n" + least + "v: .inf\n---\n", "no number"},
		"binary":            {"---\n" + least + "v: !!binary aGk=\n---\n", "tag"},
		"deep":              {"---\n" + least + "v: " + deep + "\n---\n", "too deep"},
		"a bomb":            {"---\n" + least + bomb + "---\n", "too large"},
		"in itself":         {"---\n" + least + "v: &v [*v]\n---\n", ""},
		"no name":           {"---\ndescription: b\n---\n", "name"},
		"name is a number":  {"---\nname: 7\ndescription: b\n---\n", "name"},
		"big letters":       {"---\nname: A\ndescription: b\n---\n", "name"},
		"hyphen first":      {"---\nname: -a\ndescription: b\n---\n", "name"},
		"hyphens":           {"---\nname: a--b\ndescription: b\n---\n", "name"},
		"long name":         {"---\nname: " + strings.Repeat("a", 65) + "\ndescription: b\n---\n", "name"},
		"no description":    {"---\nname: a\n---\n", "description"},
		"blank description": {"---\nname: a\ndescription: \" \"\n---\n", "description"},
		"long description":  {"---\nname: a\ndescription: " + strings.Repeat("ü", 1025) + "\n---\n", "description"},
		"reserved":          {"---\n" + least + "metadata: {io.modelcontextprotocol/x: 1}\n---\n", "reserved"},
	} {
		_, err := skills.Frontmatter([]byte(c.file))
		require.Error(t, err, name)
		assert.ErrorContains(t, err, c.says, name)
	}
	_, err := skills.Frontmatter([]byte("---\nname: " + strings.Repeat("a", 64) + "\ndescription: " + strings.Repeat("ü", 1024) + "\n---\n"))
	require.NoError(t, err, "as long as is allowed")
}

// Whatever the file is, there is an error or a JSON object with a good name.
func FuzzFrontmatter(f *testing.F) {
	for _, seed := range []string{"---\n" + least + "---\n", "---\n? [a]\n: b\n---\n", "---\na: &a [*a]\n---\n", "---\n" + least + "v: !!float .5e+9\n---", "---\n" + least + "v: 00.e1\n---"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		got, err := skills.Frontmatter(file)
		if err != nil {
			return
		}
		var members struct{ Name, Description any }
		require.NoError(t, json.Unmarshal([]byte(got), &members), got)
	})
}
