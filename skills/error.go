package skills

import (
	"errors"
	"fmt"

	"github.com/heedmcp/heed/internal/jsonrpc"
	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// SkillError says why a skill is not served. [Enable] returns it, for each such skill.
type SkillError struct {
	// Path is the skill's directory in the tree.
	Path string
	// Err says what is wrong.
	Err error
}

func (e *SkillError) Error() string { return fmt.Sprintf("skill %q: %v", e.Path, e.Err) }

func (e *SkillError) Unwrap() error { return e.Err }

// invalidParams is the error for a request that names nothing that is served.
func invalidParams(uri, text string) error {
	e := &sdkrpc.Error{Code: sdkrpc.CodeInvalidParams, Message: text}
	if uri != "" && len(uri) <= maxURI {
		e.Data = append(jsonrpc.AppendString([]byte(`{"uri":`), uri), '}')
	}
	return e
}

// problems are what is wrong with the tree, nil if nothing is.
func (c *catalog) problems() error {
	all := make([]error, len(c.refused))
	for i, e := range c.refused {
		all[i] = e
	}
	return errors.Join(all...)
}
