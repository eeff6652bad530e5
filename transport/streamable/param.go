package streamable

import (
	"fmt"
	"math"
	"net/http"
	"net/textproto"
	"strconv"

	"github.com/heedmcp/heed/internal/jsonrpc"
	"github.com/heedmcp/heed/server"
)

// checkParams compares the Mcp-Param headers of a tool call with its arguments.
// It returns what is wrong, "" if nothing is. A tool that does not exist is for
// the server to refuse.
//
// Specification: basic/transports/streamable-http (2026-07-28), custom headers
// from tool parameters.
func (h *Handler) checkParams(header http.Header, m *jsonrpc.Message) string {
	raw, _ := m.Param("name")
	tool, _ := jsonrpc.Unquote(raw)
	bindings := h.server.ParamHeaders(tool)
	if len(bindings) == 0 {
		return ""
	}
	arguments, _ := m.Param("arguments")
	for _, b := range bindings {
		name := textproto.CanonicalMIMEHeaderKey(headerParam + b.Name)
		if wrong := checkParam(name, header[name], at(arguments, b.Path), b); wrong != "" {
			return wrong
		}
	}
	return ""
}

// at is the value at a path of property names, nil when there is none or it is null.
func at(value []byte, path []string) []byte {
	for _, name := range path {
		var ok bool
		if value, ok = jsonrpc.Get(value, name); !ok {
			return nil
		}
	}
	if string(value) == "null" {
		return nil
	}
	return value
}

func checkParam(name string, values []string, raw []byte, b server.ParamHeader) string {
	if raw == nil {
		if len(values) > 0 {
			return fmt.Sprintf("%s is given, but the body has no such argument", name)
		}
		return ""
	}
	if len(values) == 0 {
		return fmt.Sprintf("the %s header is required", name)
	}
	told, ok := single(values)
	if ok {
		told, ok = decodeValue(told)
	}
	if !ok {
		return fmt.Sprintf("the %s header is malformed", name)
	}
	if !sameValue(told, raw, b.Type) {
		return fmt.Sprintf("%s is %q, which is not what the body says", name, bounded(told))
	}
	return ""
}

// sameValue compares a header's text with an argument. An argument of a type that
// the schema does not have is compared by its text, and refused later on.
func sameValue(told string, raw []byte, kind string) bool {
	if text, ok := jsonrpc.Unquote(raw); ok {
		return told == text
	}
	if kind == "integer" {
		return sameInteger(told, string(raw))
	}
	return told == string(raw)
}

// maxSafe is the greatest integer that every JSON number of JavaScript can tell
// from its neighbours.
const maxSafe = 1<<53 - 1

// sameInteger compares two JSON numbers by value: 42.0 is 42. What is outside of
// the safe range, or no integer, equals nothing.
func sameInteger(a, b string) bool {
	x, ok := integer(a)
	if !ok {
		return false
	}
	y, ok := integer(b)
	return ok && x == y
}

func integer(text string) (float64, bool) {
	if _, ok := jsonrpc.ParseID([]byte(text)); !ok || text[0] == '"' {
		return 0, false // not a JSON number: strconv takes more
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > maxSafe {
		return 0, false
	}
	return f, true
}
