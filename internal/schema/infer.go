package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/invopop/jsonschema"
)

// maxInline is how many fields a type may have, all nested ones counted, to be written out wherever it is used.
// Larger types, and types that contain themselves, stand once under $defs.
const maxInline = 400

// For infers the schema of the JSON that encoding/json writes for a t and that [Decode] reads into one.
//
// The root is written inline, without $schema and $id; types that contain themselves refer to $defs. Structs are
// closed ("additionalProperties": false) and list their properties in the order of their fields, embedded structs
// flattened. A field is required unless its json tag has omitempty or omitzero, pointers included: a pointer
// alone does not make a field optional, and null is accepted only with jsonschema:"nullable".
//
// Keywords come from the tags jsonschema ("title=…,enum=a,enum=b,minimum=1,maxLength=10,default=5", a comma in a
// value is written \\,), jsonschema_description (free text) and mcp_header, which names the HTTP header that
// mirrors the argument ("x-mcp-header"). Unknown keywords and keywords that do not suit the type are errors.
//
//   - []byte is base64 text, time.Time a date-time, time.Duration an integer of nanoseconds
//   - unsigned integers have minimum 0
//   - any, json.RawMessage and types with UnmarshalJSON or MarshalJSON accept anything, unless they write strings
//   - types with UnmarshalText or MarshalText are strings
//   - a type with JSONSchema() *jsonschema.Schema (invopop/jsonschema) speaks for itself
//
// An error is returned for types that JSON cannot carry (chan, func, complex, maps whose keys are not strings),
// for structs that embed themselves or give one name to two fields, and for tags that make no sense.
func For(t reflect.Type) (json.RawMessage, error) { return rawOf(Infer(t)) }

// ForOutput is [For] with one difference: a required field that may be nil (slice, map, pointer, []byte) also
// accepts null, because that is what encoding/json writes for it. Nil elements of slices and maps are not
// covered.
func ForOutput(t reflect.Type) (json.RawMessage, error) { return rawOf(InferOutput(t)) }

// Infer is [For] for whoever will validate with the schema: to know that it is good, it has to be compiled.
func Infer(t reflect.Type) (*Schema, error) { return infer(t, false) }

// InferOutput is [ForOutput] as Infer is For.
func InferOutput(t reflect.Type) (*Schema, error) { return infer(t, true) }

func rawOf(s *Schema, err error) (json.RawMessage, error) {
	if err != nil {
		return nil, err
	}
	return s.Raw(), nil
}

func infer(t reflect.Type, output bool) (compiled *Schema, err error) {
	defer func() { // invopop/jsonschema panics on what it does not know, and JSONSchema methods are foreign code
		if r := recover(); r != nil {
			compiled, err = nil, fmt.Errorf("schema of %v: %s", t, plainText(fmt.Sprint(r)))
		}
	}()
	if t == nil {
		return nil, errors.New("schema of a nil type")
	}
	root := t
	for root.Kind() == reflect.Pointer {
		root = root.Elem()
	}
	survey := newSurvey()
	if _, err := survey.visit(root); err != nil {
		return nil, fmt.Errorf("schema of %v: %w", t, err)
	}
	in := inferrer{survey: survey, output: output, names: map[reflect.Type]string{}, taken: map[string]bool{}}
	s := in.reflect(root)
	text, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("schema of %v: %w", t, err)
	}
	raw, err := tidy(text)
	if err == nil {
		compiled, err = compileInferred(raw)
	}
	if err != nil {
		return nil, fmt.Errorf("schema of %v: %w", t, err)
	}
	return compiled, nil
}

// compileInferred finds what only the engine sees: bad patterns, defaults that their own property refuses.
func compileInferred(raw json.RawMessage) (*Schema, error) {
	s, err := Compile(raw, &Limits{Subschemas: 1 << 20, Bytes: 16 << 20})
	if err != nil {
		return nil, err
	}
	if _, err := s.Headers(); err != nil {
		return nil, err
	}
	for _, sub := range s.graph.byLocation {
		if sub.Default == nil {
			continue
		}
		if err := sub.Validate(*sub.Default); err != nil {
			return nil, fmt.Errorf("default %s at %s does not conform", show(*sub.Default), place(sub))
		}
	}
	return s, nil
}

type inferrer struct {
	survey *survey
	output bool                    // of the program: nil is written as null
	names  map[reflect.Type]string // under $defs
	taken  map[string]bool
}

func (in *inferrer) reflect(root reflect.Type) *jsonschema.Schema {
	if in.inlined(root) {
		s := in.inline(root)
		return s
	}
	r := jsonschema.Reflector{
		Anonymous:        true,
		ExpandedStruct:   true,
		Namer:            in.name,
		AdditionalFields: in.retag,
		Mapper: func(t reflect.Type) *jsonschema.Schema {
			if s := leaf(t); s != nil {
				return s
			}
			if k := t.Kind(); t != root && (k == reflect.Struct || k == reflect.Map || k == reflect.Slice) && in.inlined(t) {
				return in.inline(t)
			}
			return nil
		},
	}
	s := r.ReflectFromType(root)
	s.Version = ""
	if in.survey.cyclic[root] { // the root is written out, and what refers back to it needs it under $defs too
		def := *s
		def.Definitions = nil
		if s.Definitions == nil {
			s.Definitions = jsonschema.Definitions{}
		}
		s.Definitions[in.name(root)] = &def
	}
	return s
}

// inlined says that t is small enough and free of recursion.
func (in *inferrer) inlined(t reflect.Type) bool {
	return !in.survey.loops[t] && in.survey.sizes[t] <= maxInline
}

func (in *inferrer) inline(t reflect.Type) *jsonschema.Schema {
	r := jsonschema.Reflector{Anonymous: true, DoNotReference: true, Mapper: leaf, AdditionalFields: in.retag}
	s := r.ReflectFromType(t)
	s.Version = ""
	s.Definitions = nil
	return s
}

// name is unique per type: types of the same name in two packages are two definitions.
func (in *inferrer) name(t reflect.Type) string {
	if t.Name() == "" {
		return ""
	}
	if name, ok := in.names[t]; ok {
		return name
	}
	plain := strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, t.Name())
	name := plain
	for i := 2; in.taken[name]; i++ {
		name = plain + "_" + strconv.Itoa(i)
	}
	in.names[t], in.taken[name] = name, true
	return name
}

var (
	rawType      = reflect.TypeFor[json.RawMessage]()
	numberType   = reflect.TypeFor[json.Number]()
	durationType = reflect.TypeFor[time.Duration]()
	bigIntType   = reflect.TypeFor[big.Int]()
	urlType      = reflect.TypeFor[url.URL]()
)

// leaf is the schema of a type whose JSON form its kind does not tell; nil for all others.
func leaf(t reflect.Type) *jsonschema.Schema {
	if speaks(t) {
		return nil
	}
	switch t {
	case timeType:
		return &jsonschema.Schema{Type: "string", Format: "date-time"}
	case durationType, bigIntType:
		return &jsonschema.Schema{Type: "integer"}
	case numberType:
		return &jsonschema.Schema{Type: "number"}
	case rawType:
		return &jsonschema.Schema{}
	}
	if t.Kind() == reflect.Interface {
		return &jsonschema.Schema{}
	}
	asJSON := implements(t, jsonMarshalerType) || implements(t, jsonUnmarshalerType)
	asText := implements(t, textMarshalerType) || implements(t, textUnmarshalerType)
	switch {
	case asText && (!asJSON || writesString(t)):
		return &jsonschema.Schema{Type: "string"}
	case asJSON:
		return &jsonschema.Schema{}
	}
	switch t.Kind() {
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return &jsonschema.Schema{Type: "integer", Minimum: "0"}
	}
	return nil
}

// writesString says that the zero value of a type with both MarshalJSON and MarshalText is a JSON string.
func writesString(t reflect.Type) (yes bool) {
	defer func() { _ = recover() }() // foreign code on a zero value
	text, err := json.Marshal(reflect.New(t).Interface())
	return err == nil && len(text) > 0 && text[0] == '"'
}

// speaks says that the type gives its own schema.
func speaks(t reflect.Type) bool {
	_, whole := reflect.New(t).Interface().(interface{ JSONSchema() *jsonschema.Schema })
	_, extends := reflect.New(t).Interface().(interface{ JSONSchemaExtend(*jsonschema.Schema) })
	return whole || extends
}
