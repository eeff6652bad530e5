package skills

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/heedmcp/heed/internal/jsonrpc"
	"go.yaml.in/yaml/v3"
)

// The library reads YAML; what a scalar means is decided here, by the core schema of YAML 1.2. By
// older rules, which the library follows, 014 is twelve and a date is no string: a client
// that compares a file with its entry would find them to differ.

// Bounds of a frontmatter. Aliases make a short text a huge value.
const (
	maxNodes = 10_000
	maxDepth = 64
)

var (
	errTooLarge = errors.New("it is too large")
	errTooDeep  = errors.New("it is nested too deep")

	coreNull  = regexp.MustCompile(`^(null|Null|NULL|~|)$`)
	coreBool  = regexp.MustCompile(`^(true|True|TRUE|false|False|FALSE)$`)
	coreInt   = regexp.MustCompile(`^[-+]?[0-9]+$`)
	coreBased = regexp.MustCompile(`^0(o[0-7]+|x[0-9a-fA-F]+)$`)
	coreFloat = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
	coreOther = regexp.MustCompile(`^([-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$`)
)

// yamlToJSON turns a mapping into a JSON object with its members in the same order.
func yamlToJSON(text []byte) (json.RawMessage, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	if document.Kind != yaml.DocumentNode || len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("it is no mapping")
	}
	t := translation{}
	if err := t.value(document.Content[0], 0); err != nil {
		return nil, err
	}
	return t.out.Bytes(), nil
}

// translation is one run of yamlToJSON.
type translation struct {
	out   bytes.Buffer
	nodes int // written so far
}

func (t *translation) value(n *yaml.Node, depth int) error {
	if t.nodes++; t.nodes > maxNodes || t.out.Len() > maxFrontmatterJSON {
		return errTooLarge
	}
	if depth > maxDepth {
		return errTooDeep // also an alias inside of what it stands for
	}
	switch n.Kind {
	case yaml.AliasNode:
		return t.value(n.Alias, depth+1)
	case yaml.MappingNode:
		return t.mapping(n, depth)
	case yaml.SequenceNode:
		t.out.WriteByte('[')
		for i, item := range n.Content {
			if i > 0 {
				t.out.WriteByte(',')
			}
			if err := t.value(item, depth+1); err != nil {
				return err
			}
		}
		t.out.WriteByte(']')
		return nil
	case yaml.ScalarNode:
		return t.scalar(n)
	}
	return fmt.Errorf("line %d is no value", n.Line)
}

func (t *translation) mapping(n *yaml.Node, depth int) error {
	seen := map[string]bool{}
	t.out.WriteByte('{')
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		for key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode {
			return fmt.Errorf("line %d: a key is no scalar", key.Line)
		}
		if seen[key.Value] {
			return fmt.Errorf("line %d: the key %.80q is there twice", key.Line, key.Value)
		}
		seen[key.Value] = true
		if i > 0 {
			t.out.WriteByte(',')
		}
		t.text(key.Value)
		t.out.WriteByte(':')
		if err := t.value(n.Content[i+1], depth+1); err != nil {
			return err
		}
	}
	t.out.WriteByte('}')
	return nil
}

// scalar writes a scalar: what is quoted, or has several lines, is a string; so is all that
// the core schema knows no better name for.
func (t *translation) scalar(n *yaml.Node) error {
	if n.Style&yaml.TaggedStyle != 0 {
		switch n.ShortTag() {
		case "!!str":
			t.text(n.Value)
			return nil
		case "!!null", "!!bool", "!!int", "!!float":
			return t.plain(n)
		}
		return fmt.Errorf("line %d: JSON has nothing for the tag %.80q", n.Line, n.Tag)
	}
	if n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		t.text(n.Value)
		return nil
	}
	return t.plain(n)
}

func (t *translation) plain(n *yaml.Node) error {
	v := n.Value
	switch {
	case coreNull.MatchString(v):
		t.out.WriteString("null")
	case coreBool.MatchString(v):
		t.out.WriteString(strings.ToLower(v))
	case coreInt.MatchString(v), coreFloat.MatchString(v):
		t.out.WriteString(jsonNumber(v))
	case coreBased.MatchString(v):
		t.out.WriteString(based(v))
	case coreOther.MatchString(v):
		return fmt.Errorf("line %d: JSON has no number %s", n.Line, v)
	default:
		t.text(v)
	}
	return nil
}

func (t *translation) text(s string) {
	t.out.Write(jsonrpc.AppendString(nil, s))
}
