package schema

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// checkField refuses the tags that encoding/json, the decoder and invopop/jsonschema read differently or that
// would be ignored in silence.
func checkField(f reflect.StructField, tag jsonTag) error {
	switch {
	case !f.IsExported():
		return errors.New("an unexported type that is not a struct cannot be embedded")
	case tag.name == "-":
		return errors.New(`the name "-" is not supported`)
	case tag.named && !validName(tag.name):
		return fmt.Errorf("%s is not a valid name", quote(tag.name))
	case tag.has("inline"):
		return errors.New("the json option inline is not supported, embed the struct")
	}
	t := f.Type
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if tag.has("string") && t.Kind() == reflect.String {
		return errors.New("the json option string is not supported for strings")
	}
	if header, ok := f.Tag.Lookup("mcp_header"); ok {
		if err := checkHeaderName(header); err != nil {
			return err
		}
	}
	return checkKeywords(f.Tag.Get("jsonschema"), jsonKind(t, tag), t)
}

// jsonKind is the JSON type that keywords of a field apply to; "" when it is not known.
func jsonKind(t reflect.Type, tag jsonTag) string {
	if s := leaf(t); s != nil {
		if s.Type != "string" && s.Type != "" && tag.has("string") {
			return "string"
		}
		return s.Type
	}
	if speaks(t) {
		return ""
	}
	kind := ""
	switch t.Kind() {
	case reflect.Bool:
		kind = "boolean"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		kind = "integer"
	case reflect.Float32, reflect.Float64:
		kind = "number"
	case reflect.String:
		return "string"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "string"
		}
		return "array"
	case reflect.Array:
		return "array"
	default:
		return "object"
	}
	if tag.has("string") {
		return "string"
	}
	return kind
}

// keywords of the jsonschema tag by JSON type, as invopop/jsonschema knows them. n marks values that are numbers,
// c values that are counts.
var keywords = map[string]map[string]string{
	"any": {
		"title": "", "description": "", "type": "", "anchor": "", "oneof_required": "", "anyof_required": "",
		"oneof_ref": "", "oneof_type": "", "anyof_ref": "", "anyof_type": "",
	},
	"string": {
		"minLength": "c", "maxLength": "c", "pattern": "", "format": "", "readOnly": "", "writeOnly": "",
		"default": "", "example": "", "enum": "",
	},
	"number": {
		"multipleOf": "n", "minimum": "n", "maximum": "n", "exclusiveMinimum": "n", "exclusiveMaximum": "n",
		"default": "n", "example": "n", "enum": "n",
	},
	"boolean": {"default": "b"},
	"array":   {"minItems": "c", "maxItems": "c", "uniqueItems": "b", "default": "", "format": "", "pattern": ""},
	"object":  {},
}

func checkKeywords(tag, kind string, t reflect.Type) error {
	if tag == "" {
		return nil
	}
	for _, part := range splitTag(tag) {
		if part == "required" || part == "nullable" || part == "" {
			continue
		}
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			return fmt.Errorf("jsonschema tag: %s is not keyword=value; free text belongs into jsonschema_description", quote(part))
		}
		if err := checkKeyword(name, value, kind, t); err != nil {
			return fmt.Errorf("jsonschema tag: %w", err)
		}
	}
	return nil
}

func checkKeyword(name, value, kind string, t reflect.Type) error {
	if _, ok := keywords["any"][name]; ok || kind == "" {
		return nil
	}
	table := kind
	if kind == "integer" {
		table = "number"
	}
	form, ok := keywords[table][name]
	if !ok && kind == "array" { // the rest is for the elements
		return checkKeyword(name, value, jsonKind(t.Elem(), jsonTag{}), t.Elem())
	}
	if !ok {
		return fmt.Errorf("%s is no keyword for %s", quote(name), article(kind))
	}
	switch form {
	case "n":
		if _, err := strconv.ParseFloat(value, 64); err != nil {
			return fmt.Errorf("%s=%s is not a number", name, clip(value, maxQuoted))
		}
	case "c":
		if _, err := strconv.ParseUint(value, 10, 31); err != nil {
			return fmt.Errorf("%s=%s is not a count", name, clip(value, maxQuoted))
		}
	case "b":
		if value != "true" && value != "false" {
			return fmt.Errorf("%s=%s is neither true nor false", name, clip(value, maxQuoted))
		}
	}
	return nil
}

// splitTag splits at commas that have no backslash before them.
func splitTag(tag string) []string {
	var out []string
	for _, part := range strings.Split(tag, ",") {
		if n := len(out); n > 0 && strings.HasSuffix(out[n-1], `\`) {
			out[n-1] = strings.TrimSuffix(out[n-1], `\`) + "," + part
		} else {
			out = append(out, part)
		}
	}
	return out
}
