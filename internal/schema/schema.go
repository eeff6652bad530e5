package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Schema is a compiled JSON Schema. It is immutable and safe for concurrent use.
type Schema struct {
	raw        json.RawMessage
	object     bool               // the root says "type": "object"
	everything bool               // every value conforms
	root       *jsonschema.Schema // the engine's form
	graph      *graph
	plan       *plan // nil: no defaults to add
	flat       *flat // nil: no fast path
	steps      int   // of one validation
}

// base is where the document is taken to stand. Nothing is ever loaded: references that leave the document fail.
// It has a path, so that a relative reference leads elsewhere; against a URN it would lead back.
const base = "mem:///-"

// Compile prepares a schema for validation. The dialect is JSON Schema 2020-12 unless "$schema" names
// draft 2019-09, 7, 6 or 4. Nil limits mean the defaults.
//
// An error is returned when raw is not a valid schema, names an unknown dialect, refers to anything outside of
// itself, refers to itself in a circle, holds a regular expression that RE2 does not have, or exceeds the limits.
func Compile(raw json.RawMessage, lim *Limits) (*Schema, error) {
	if len(raw) > lim.bytes() {
		return nil, fmt.Errorf("schema: %d bytes, the limit is %d", len(raw), lim.bytes())
	}
	doc, p, err := parse(raw, nil, lim.depth())
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	if p.values > lim.subschemas() {
		return nil, fmt.Errorf("schema: %d objects and booleans, the limit is %d", p.values, lim.subschemas())
	}
	if err := checkDialect(doc); err != nil {
		return nil, err
	}
	s := &Schema{raw: oneLine(raw), steps: lim.steps()}
	if err := s.compile(doc); err != nil {
		return nil, err
	}
	obj, _ := doc.(map[string]any)
	s.object = obj["type"] == "object"
	s.everything = s.root.Bool != nil && *s.root.Bool
	s.plan = planFor(s.root)
	s.flat = newFlat(obj)
	return s, nil
}

func (s *Schema) compile(doc any) (err error) {
	defer func() { // the engine is trusted with valid schemas only
		if r := recover(); r != nil {
			err = fmt.Errorf("schema: cannot be compiled: %s", plainText(fmt.Sprint(r)))
		}
	}()
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(refuse{})
	ps := &patterns{known: map[string]*pattern{}}
	defer func() { ps.sealed = true }()
	c.UseRegexpEngine(ps.compile)
	c.AssertFormat()
	c.AssertContent()
	c.RegisterContentMediaType(&jsonschema.MediaType{ // an annotation: only contentEncoding is asserted
		Name:     "application/json",
		Validate: func([]byte) error { return nil },
	})
	if err := c.AddResource(base, doc); err != nil {
		return fmt.Errorf("schema: %w", err)
	}
	if s.root, err = c.Compile(base); err != nil {
		return compileError(err)
	}
	var anchored []*jsonschema.Schema
	for _, at := range anchors(doc, "#", nil) {
		if sub, err := c.Compile(base + at); err == nil {
			anchored = append(anchored, sub)
		}
	}
	if s.graph, err = newGraph(s.root, anchored); err != nil {
		return fmt.Errorf("schema: %w", err)
	}
	return nil
}

// Raw is the schema as it was given to Compile, without line breaks. Unknown keywords and the order of members
// are kept. The caller must not change it.
func (s *Schema) Raw() json.RawMessage { return s.raw }

// IsObject says that the root has "type": "object", as the input schema of a tool must.
func (s *Schema) IsObject() bool { return s.object }

func checkDialect(doc any) error {
	obj, _ := doc.(map[string]any)
	v, ok := obj["$schema"]
	if !ok {
		return nil
	}
	name, ok := v.(string)
	if !ok {
		return errors.New("schema: $schema must be a string")
	}
	bare := strings.TrimSuffix(name, "#")
	bare = strings.TrimPrefix(strings.TrimPrefix(bare, "https://"), "http://")
	switch bare {
	case "json-schema.org/draft/2020-12/schema", "json-schema.org/draft/2019-09/schema",
		"json-schema.org/draft-07/schema", "json-schema.org/draft-06/schema", "json-schema.org/draft-04/schema":
		return nil
	}
	return fmt.Errorf("schema: unknown dialect %s; known are JSON Schema 2020-12, 2019-09 and drafts 7, 6 and 4", quote(name))
}

// refuse is the loader of every external reference.
type refuse struct{}

var errExternal = errors.New("references must stay inside the schema, nothing is loaded")

func (refuse) Load(string) (any, error) { return nil, errExternal }

func compileError(err error) error {
	var load *jsonschema.LoadURLError
	if errors.As(err, &load) {
		return fmt.Errorf("schema: reference to %s: %w", quote(load.URL), errExternal)
	}
	var invalid *jsonschema.SchemaValidationError
	var details *jsonschema.ValidationError
	if errors.As(err, &invalid) && errors.As(invalid.Err, &details) {
		return fmt.Errorf("schema: not a valid schema: %w", explain(details, nil, nil))
	}
	return fmt.Errorf("schema: %s", plainText(strings.ReplaceAll(err.Error(), base, "")))
}

// anchors lists, as URI fragments, the places of dynamic and recursive anchors.
func anchors(v any, at string, found []string) []string {
	switch v := v.(type) {
	case map[string]any:
		if v["$dynamicAnchor"] != nil || v["$recursiveAnchor"] != nil {
			found = append(found, at)
		}
		for name, sub := range v {
			found = anchors(sub, at+"/"+pointerToken(name), found)
		}
	case []any:
		for i, sub := range v {
			found = anchors(sub, fmt.Sprintf("%s/%d", at, i), found)
		}
	}
	return found
}

// oneLine drops line breaks, which in valid JSON stand only between tokens: messages on stdio are single lines.
func oneLine(raw []byte) json.RawMessage {
	return bytes.Map(func(r rune) rune {
		if r == '\n' || r == '\r' {
			return -1
		}
		return r
	}, raw)
}
