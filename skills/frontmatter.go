package skills

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/heedmcp/heed/internal/jsonrpc"
)

// Bounds of a frontmatter, in bytes: every listing carries it.
const (
	maxFrontmatter     = 64 << 10
	maxFrontmatterJSON = 256 << 10
	maxDescription     = 1024 // characters
	maxName            = 64
)

// reservedMetadata is how the keys of metadata begin that extensions of the protocol
// define; there are none.
const reservedMetadata = "io.modelcontextprotocol/"

// nameSyntax is that of names, but for hyphens that follow one another.
var nameSyntax = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

// frontmatter is what stands at the top of a SKILL.md.
type frontmatter struct {
	raw         json.RawMessage // all of it, an object
	name        string
	description string
}

// parseFrontmatter reads the top of a SKILL.md and checks it.
//
// Specification: the format of agent skills, frontmatter; extension
// io.modelcontextprotocol/skills, frontmatter and reservations.
func parseFrontmatter(file []byte) (*frontmatter, error) {
	text, err := cutFrontmatter(file)
	if err != nil {
		return nil, err
	}
	raw, err := yamlToJSON(text)
	if err != nil {
		return nil, fmt.Errorf("the frontmatter cannot be used: %w", err)
	}
	f := &frontmatter{raw: raw}
	name, _ := jsonrpc.Get(raw, "name")
	if f.name, _ = jsonrpc.Unquote(name); !isName(f.name) {
		return nil, fmt.Errorf("the frontmatter's name must be a string of 1 to %d small letters, digits and single hyphens", maxName)
	}
	description, _ := jsonrpc.Get(raw, "description")
	f.description, _ = jsonrpc.Unquote(description)
	if strings.TrimSpace(f.description) == "" || utf8.RuneCountInString(f.description) > maxDescription {
		return nil, fmt.Errorf("the frontmatter's description must be a string of 1 to %d characters", maxDescription)
	}
	metadata, _ := jsonrpc.Get(raw, "metadata")
	for key := range jsonrpc.Members(metadata) {
		if strings.HasPrefix(key, reservedMetadata) {
			return nil, fmt.Errorf("the key %.120q of the frontmatter's metadata is reserved by the protocol", key)
		}
	}
	return f, nil
}

func isName(s string) bool {
	return len(s) <= maxName && nameSyntax.MatchString(s) && !strings.Contains(s, "--")
}

// cutFrontmatter returns the text between the first line, of three hyphens, and the next
// such line.
func cutFrontmatter(file []byte) ([]byte, error) {
	file = bytes.TrimPrefix(file, []byte("\ufeff"))
	first, rest, _ := bytes.Cut(file, []byte("\n"))
	if string(bytes.TrimSuffix(first, []byte("\r"))) != "---" {
		return nil, errors.New("SKILL.md does not begin with a line of three hyphens")
	}
	for at := 0; at < len(rest); {
		line := rest[at:]
		if end := bytes.IndexByte(line, '\n'); end >= 0 {
			line = line[:end+1]
		}
		if string(bytes.TrimRight(line, " \t\r\n")) == "---" {
			if at > maxFrontmatter {
				break
			}
			return rest[:at], nil
		}
		at += len(line)
	}
	return nil, fmt.Errorf("the frontmatter of SKILL.md does not end within %d bytes", maxFrontmatter)
}
