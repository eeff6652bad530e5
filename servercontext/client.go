package servercontext

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/heedmcp/heed/internal/jsonrpc"
	"github.com/heedmcp/heed/internal/schema"
	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	segment "github.com/segmentio/encoding/json"
)

// Client is what a client said about itself, in the handshake or in the
// request's _meta.
type Client struct {
	// Info is nil when the client did not say who it is.
	Info *mcp.Implementation
	// Capabilities is never nil.
	Capabilities *mcp.ClientCapabilities

	raw json.RawMessage // the capabilities as sent: presence matters, also of unknown ones
}

// NewClient decodes a client's description from its raw clientInfo (nil:
// unknown) and raw capabilities (nil: none). It returns an error when
// either has the wrong shape; its text names the member and is fit to be sent to the client.
func NewClient(info, capabilities json.RawMessage) (*Client, error) {
	c := &Client{Capabilities: &mcp.ClientCapabilities{}, raw: capabilities}
	if len(info) > 0 {
		c.Info = &mcp.Implementation{}
		if err := decode(info, c.Info); err != nil {
			return nil, misshapen("clientInfo", info, c.Info)
		}
	}
	if len(capabilities) > 0 {
		if err := decode(capabilities, c.Capabilities); err != nil {
			return nil, misshapen("capabilities", capabilities, c.Capabilities)
		}
		// The official type cannot tell an absent roots capability from an
		// empty one; its RootsV2 field can, but is not decoded.
		if roots, ok := jsonrpc.Get(capabilities, "roots"); ok {
			c.Capabilities.RootsV2 = &mcp.RootCapabilities{}
			if err := decode(roots, c.Capabilities.RootsV2); err != nil {
				return nil, misshapen("capabilities.roots", roots, c.Capabilities.RootsV2)
			}
		}
	}
	return c, nil
}

// misshapen says what is wrong with raw, which does not decode into v, without the names
// of types that the decoder would use.
func misshapen(what string, raw []byte, v any) error {
	err := schema.Decode(raw, v)
	if err == nil {
		return fmt.Errorf("%s: wrong type", what)
	}
	return fmt.Errorf("%s: %w", what, err)
}

func clientFromMeta(meta json.RawMessage) *Client {
	info, _ := jsonrpc.Get(meta, mcp.MetaKeyClientInfo)
	capabilities, _ := jsonrpc.Get(meta, mcp.MetaKeyClientCapabilities)
	c, err := NewClient(info, capabilities)
	if err != nil {
		return &Client{Capabilities: &mcp.ClientCapabilities{}}
	}
	return c
}

// Has reports whether the client declared a capability, named by its path in
// the capabilities object: "sampling", "sampling.tools", "elicitation.url",
// "roots", "extensions.io.modelcontextprotocol/tasks". A plain "elicitation" of
// the client counts as "elicitation.form" unless it names its modes.
func (c *Client) Has(capability string) bool {
	if c == nil {
		return false
	}
	if capability == "elicitation.form" && c.has("elicitation") && !c.has("elicitation.url") {
		return true
	}
	return c.has(capability)
}

func (c *Client) has(capability string) bool {
	at := []byte(c.raw)
	for _, key := range capabilityPath(capability) {
		if len(at) == 0 || at[0] != '{' {
			return false
		}
		next, ok := jsonrpc.Get(at, key)
		if !ok || string(next) == "null" || string(next) == "false" {
			return false
		}
		at = next
	}
	return true
}

// capabilityPath splits a path into at most two keys, since the names of
// extensions contain dots themselves.
func capabilityPath(capability string) []string {
	return strings.SplitN(capability, ".", 2)
}

// ClientInfo is what the client said about itself, nil if it did not. It must not be
// changed.
func (r *Request) ClientInfo() *mcp.Implementation {
	if r == nil {
		return nil
	}
	return r.lazy().client().Info
}

// ClientCapabilities are the capabilities the client declared for this request
// or session. Never nil; it must not be changed.
func (r *Request) ClientCapabilities() *mcp.ClientCapabilities {
	if r == nil {
		return &mcp.ClientCapabilities{}
	}
	return r.lazy().client().Capabilities
}

// HasClientCapability reports whether the client declared a capability, named
// as for [Client.Has].
func (r *Request) HasClientCapability(capability string) bool {
	return r != nil && r.lazy().client().Has(capability)
}

// RequireClientCapability returns nil when the client declared all these
// capabilities, named as for [Client.Has]. Otherwise it returns an error that a
// handler should return as it is: the client is told which ones are
// missing, in the stateless era with code -32021 and only those listed.
//
// Specification: basic/index (2026-07-28), MissingRequiredClientCapability.
func (r *Request) RequireClientCapability(capabilities ...string) error {
	var missing []string
	for _, c := range capabilities {
		if !r.HasClientCapability(c) {
			missing = append(missing, c)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return missingCapabilities(r.Stateless(), missing)
}

func missingCapabilities(stateless bool, missing []string) error {
	message := "client does not declare the capability " + strings.Join(missing, ", ")
	if !stateless {
		return &sdkrpc.Error{Code: sdkrpc.CodeInvalidRequest, Message: message}
	}
	required := map[string]map[string]any{}
	for _, m := range missing {
		path := capabilityPath(m)
		inner := required[path[0]]
		if inner == nil {
			inner = map[string]any{}
			required[path[0]] = inner
		}
		if len(path) > 1 {
			inner[path[1]] = struct{}{}
		}
	}
	data, err := json.Marshal(map[string]any{"requiredCapabilities": required})
	if err != nil {
		return err
	}
	return &sdkrpc.Error{Code: mcp.CodeMissingRequiredClientCapabilities, Message: message, Data: data}
}

// decode is case-sensitive, unlike encoding/json, so that no other reader of
// the same message sees another value.
func decode(raw []byte, v any) error {
	_, err := segment.Parse(raw, v, segment.DontMatchCaseInsensitiveStructFields)
	return err
}

func decodeMeta(raw []byte) mcp.Meta {
	var m mcp.Meta
	if decode(raw, &m) != nil {
		return nil
	}
	return m
}
