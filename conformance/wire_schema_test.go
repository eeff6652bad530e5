package conformance_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"github.com/yosida95/uritemplate/v3"
)

// wireSchema is the JSON schema of one protocol revision.
type wireSchema struct {
	version    string
	prefix     string // of a definition's URI
	names      map[string]bool
	ofMethod   map[string]string // definitions of requests and notifications, by method
	ofResult   map[string]string // definitions of results, by the request's method
	ofError    map[int]string    // definitions of error responses, by code
	hasBatches bool

	mu       sync.Mutex // guards the fields below
	compiler *jsonschema.Compiler
	compiled map[string]*jsonschema.Schema
}

// wireSchemas are the schemas by revision. 2024-11-05, which the suite has no schema of, is held to
// that of its successor.
var wireSchemas = sync.OnceValues(func() (map[string]*wireSchema, error) {
	output, err := exec.Command("node_modules/.bin/node", "testdata/schemas.mjs").Output()
	if err != nil {
		return nil, fmt.Errorf("reading the schemas of the suite: %w", err)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(output, &all); err != nil {
		return nil, err
	}
	schemas := map[string]*wireSchema{}
	for version, raw := range all {
		if schemas[version], err = newWireSchema(version, raw); err != nil {
			return nil, fmt.Errorf("schema of %s: %w", version, err)
		}
	}
	schemas["2024-11-05"] = schemas["2025-03-26"]
	return schemas, nil
})

// wireFormats are formats that the validator does not know, or takes to be less than they are:
// a template may have a variable in place of a host.
var wireFormats = map[string]func(string) error{
	"byte":         func(s string) error { _, err := base64.StdEncoding.DecodeString(s); return err },
	"uri-template": func(s string) error { _, err := uritemplate.New(s); return err },
}

func loadWireSchemas(t testing.TB) map[string]*wireSchema {
	t.Helper()
	schemas, err := wireSchemas()
	require.NoError(t, err)
	return schemas
}

func newWireSchema(version string, raw json.RawMessage) (*wireSchema, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	key := "$defs"
	definitions, ok := document.(map[string]any)[key].(map[string]any)
	if !ok {
		key = "definitions"
		definitions = document.(map[string]any)[key].(map[string]any)
	}
	// Numbers in the schemas of forms are any numbers; two revisions were published with
	// integers in place of them, by a tool's mistake.
	if number, ok := definitions["NumberSchema"].(map[string]any); ok {
		for _, name := range []string{"minimum", "maximum", "default"} {
			if p, ok := number["properties"].(map[string]any)[name].(map[string]any); ok && p["type"] == "integer" {
				p["type"] = "number"
			}
		}
	}
	// An id is repeated as the client wrote it; which numbers clients may take is their matter.
	if id, ok := definitions["RequestId"].(map[string]any); ok {
		id["type"] = []any{"string", "number"}
	}
	url := "mcp://" + version + "/schema.json"
	s := &wireSchema{
		version: version, prefix: url + "#/" + key + "/", hasBatches: version == "2025-03-26",
		names: map[string]bool{}, ofMethod: map[string]string{}, ofResult: map[string]string{}, ofError: map[int]string{},
		compiler: jsonschema.NewCompiler(), compiled: map[string]*jsonschema.Schema{},
	}
	s.compiler.AssertFormat()
	for name, valid := range wireFormats {
		s.compiler.RegisterFormat(&jsonschema.Format{Name: name, Validate: func(v any) error {
			if text, ok := v.(string); ok {
				return valid(text)
			}
			return nil
		}})
	}
	for name, definition := range definitions {
		s.names[name] = true
		s.index(name, definition.(map[string]any), definitions)
	}
	return s, s.compiler.AddResource(url, document)
}

// index notes what a definition is of.
func (s *wireSchema) index(name string, definition, all map[string]any) {
	properties, _ := definition["properties"].(map[string]any)
	method, _ := properties["method"].(map[string]any)
	if text, ok := method["const"].(string); ok {
		s.ofMethod[text] = name
		if result := strings.TrimSuffix(name, "Request") + "Result"; strings.HasSuffix(name, "Request") && all[result] != nil {
			s.ofResult[text] = result
		}
	}
	e, _ := properties["error"].(map[string]any)
	parts, _ := e["allOf"].([]any)
	for _, part := range parts {
		p, _ := part.(map[string]any)["properties"].(map[string]any)
		code, _ := p["code"].(map[string]any)
		if n, ok := code["const"].(json.Number); ok {
			value, _ := n.Int64()
			s.ofError[int(value)] = name
		}
	}
}

// check validates one message that a server sent. method is the request's that it answers, "" if
// that is not known.
func (s *wireSchema) check(raw []byte, method string) error {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	m, ok := v.(map[string]any)
	if !ok {
		return fmt.Errorf("neither a request nor a notification nor a response")
	}
	_, hasID := m["id"]
	echoed(m, "id")
	if params, ok := m["params"].(map[string]any); ok {
		echoed(params, "progressToken")
	}
	switch {
	case m["method"] != nil:
		name, _ := m["method"].(string)
		definition := s.ofMethod[name]
		if definition == "" && hasID {
			definition = "JSONRPCRequest"
		} else if definition == "" {
			definition = "JSONRPCNotification"
		}
		return s.validate(definition, v)
	case m["error"] != nil:
		// A message that cannot be read has no id; JSON-RPC has null for that.
		if m["id"] == nil && (hasID || s.version != newest) {
			m["id"] = json.Number("0")
		}
		e, _ := m["error"].(map[string]any)
		code, _ := e["code"].(json.Number)
		n, _ := code.Int64()
		if definition := s.ofError[int(n)]; definition != "" {
			return s.validate(definition, v)
		}
		return s.validate(s.first("JSONRPCErrorResponse", "JSONRPCError"), v)
	case m["result"] != nil:
		result, _ := m["result"].(map[string]any)
		definition := s.ofResult[method]
		switch kind, _ := result["resultType"].(string); kind {
		case "input_required":
			definition = "InputRequiredResult"
		case "task": // an extension's, which has no schema here
			definition = ""
		}
		if definition != "" {
			if err := s.validate(definition, m["result"]); err != nil {
				return fmt.Errorf("result of %s: %w", method, err)
			}
		}
		return s.validate(s.first("JSONRPCResultResponse", "JSONRPCResponse"), v)
	}
	return fmt.Errorf("neither a request nor a notification nor a response")
}

// echoed lets fractions pass where only a client can have put them: what names its request is
// said back exactly as it was said.
func echoed(m map[string]any, name string) {
	if n, ok := m[name].(json.Number); ok && strings.ContainsAny(n.String(), ".eE") {
		m[name] = json.Number("0")
	}
}

func (s *wireSchema) first(names ...string) string {
	for _, name := range names {
		if s.names[name] {
			return name
		}
	}
	return names[0]
}

func (s *wireSchema) validate(definition string, v any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	compiled := s.compiled[definition]
	if compiled == nil {
		var err error
		if compiled, err = s.compiler.Compile(s.prefix + definition); err != nil {
			return err
		}
		s.compiled[definition] = compiled
	}
	return compiled.Validate(v)
}

// The schemas tell good messages from bad ones.
func TestWireSchemasTellGoodFromBad(t *testing.T) {
	schemas := loadWireSchemas(t)
	for _, c := range []struct {
		version, method, message string
		good                     bool
	}{
		{newest, "tools/list", `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","tools":[],"ttlMs":0,"cacheScope":"private"}}`, true},
		{newest, "tools/list", `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","tools":[],"cacheScope":"private"}}`, false},
		{newest, "", `{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"no","data":{"supported":[],"requested":"x"}}}`, true},
		{newest, "", `{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"no"}}`, false},
		{newestHandshake, "tools/list", `{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}`, true},
		{newestHandshake, "tools/list", `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a"}]}}`, false},
		{newestHandshake, "", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}`, true},
		{newestHandshake, "", `{"jsonrpc":"2.0","id":null,"result":{}}`, false},
		{newestHandshake, "", `{"jsonrpc":"2.0","id":1}`, false},
		{"2025-06-18", "", `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`, true},
		{"2025-06-18", "", `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1}}`, false},
		{"2024-11-05", "", `{"jsonrpc":"2.0","id":1,"result":[]}`, false},
	} {
		err := schemas[c.version].check([]byte(c.message), c.method)
		if c.good {
			require.NoError(t, err, "%s %s", c.version, c.message)
		} else {
			require.Error(t, err, "%s %s", c.version, c.message)
		}
	}
}
