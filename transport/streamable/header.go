package streamable

import (
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/heedmcp/heed/internal/jsonrpc"
	"github.com/heedmcp/heed/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Header names in the canonical form in which net/http keeps them.
const (
	headerVersion     = "Mcp-Protocol-Version"
	headerSession     = "Mcp-Session-Id"
	headerMethod      = "Mcp-Method"
	headerName        = "Mcp-Name"
	headerParam       = "Mcp-Param-"
	headerLastEventID = "Last-Event-Id"
)

// isStateless tells whether a revision has no handshake. Versions that nobody
// knows are none of either era.
func isStateless(version string) bool { return version == server.Version20260728 }

// primes tells whether streams of a revision begin with an event that has only
// an id, so that the client can resume them from the start.
func primes(version string) bool { return version == server.Version20251125 }

// metadata is what a message's _meta says about its era.
type metadata struct {
	speaks  bool   // it has what only the stateless era puts there
	version string // the protocol version it names, "" if none
}

func metaOf(m *jsonrpc.Message) (d metadata) {
	raw, ok := m.Param("_meta")
	if !ok {
		return d
	}
	for key, value := range jsonrpc.Members(raw) {
		switch key {
		case mcp.MetaKeyProtocolVersion:
			d.speaks = true
			d.version, _ = jsonrpc.Unquote(value)
		case mcp.MetaKeyClientCapabilities:
			d.speaks = true
		}
	}
	return d
}

// checkHeaders compares the headers of a stateless-era request with its body. It
// returns what is wrong, "" if nothing is.
//
// Specification: basic/transports/streamable-http (2026-07-28), server validation.
func (h *Handler) checkHeaders(p *post, meta metadata) string {
	header, m := p.r.Header, &p.msg
	switch {
	case p.version == "":
		return "the MCP-Protocol-Version header is required"
	case meta.version != "" && meta.version != p.version:
		return fmt.Sprintf("MCP-Protocol-Version is %q, the body says %q", bounded(p.version), bounded(meta.version))
	case meta.version == "" && !isStateless(p.version):
		return fmt.Sprintf("MCP-Protocol-Version is %q, the body speaks %q", bounded(p.version), server.Version20260728)
	}
	method, ok := single(header[headerMethod])
	switch {
	case !ok || method == "":
		return "the Mcp-Method header is required, once"
	case method != m.Method:
		return fmt.Sprintf("Mcp-Method is %q, the body says %q", bounded(method), bounded(m.Method))
	}
	if member := h.server.NameParam(m.Method); member != "" {
		raw, _ := m.Param(member)
		if wrong := checkName(header[headerName], raw); wrong != "" {
			return wrong
		}
	}
	if m.Method == "tools/call" {
		return h.checkParams(header, m)
	}
	return ""
}

func checkName(values []string, raw []byte) string {
	name, inBody := jsonrpc.Unquote(raw)
	if len(values) == 0 {
		if inBody {
			return "the Mcp-Name header is required"
		}
		return "" // the body is wrong, which is for the server to say
	}
	told, ok := single(values)
	if ok {
		told, ok = decodeValue(told)
	}
	switch {
	case !ok:
		return "the Mcp-Name header is malformed"
	case !inBody || told != name:
		return fmt.Sprintf("Mcp-Name is %q, the body says %q", bounded(told), bounded(name))
	}
	return ""
}

// single is the one value of a header, without the white space around it; "" if
// there is none. It reports false when there are several.
func single(values []string) (string, bool) {
	switch len(values) {
	case 0:
		return "", true
	case 1:
		return trim(values[0]), true
	}
	return "", false
}

func trim(value string) string { return strings.Trim(value, " \t") }

const (
	encodedPrefix = "=?base64?"
	encodedSuffix = "?="
)

// decodeValue decodes a header value that may be in Base64. It reports false when
// the value holds characters that a header must not, or is badly encoded.
//
// Specification: basic/transports/streamable-http (2026-07-28), value encoding.
func decodeValue(value string) (string, bool) {
	for i := range len(value) {
		if c := value[i]; c >= 0x7f || c < 0x20 && c != '\t' {
			return "", false
		}
	}
	inner, ok := strings.CutPrefix(value, encodedPrefix)
	if !ok {
		return value, true
	}
	// A value as short as "=?base64?=" has a prefix and a suffix that overlap: it is literal.
	if inner, ok = strings.CutSuffix(inner, encodedSuffix); !ok {
		return value, true
	}
	text, err := base64.StdEncoding.Strict().DecodeString(inner)
	if err != nil || !utf8.Valid(text) {
		return "", false
	}
	return string(text), true
}

// maxQuoted bounds text of a client that is repeated in an error, in bytes.
const maxQuoted = 200

func bounded(s string) string {
	if len(s) <= maxQuoted {
		return s
	}
	return strings.ToValidUTF8(s[:maxQuoted], "") + "…"
}

// lastEventID is what a client that resumes a stream says it has seen last. It reports
// false when that is no event id.
func lastEventID(values []string) (id eventID, ok bool) {
	text, ok := single(values)
	if !ok {
		return id, false
	}
	return parseEventID(text)
}
