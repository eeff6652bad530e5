package schema

import (
	"reflect"
	"strconv"
	"strings"
)

// nullMark is a keyword between retag and tidy: the property accepts null as well.
const nullMark = "heed-null"

// retag repeats fields with keywords that invopop/jsonschema has no tag for; it replaces the property of the
// first reading in place. These are mcp_header and, for outputs, null for what may be nil.
func (in *inferrer) retag(t reflect.Type) []reflect.StructField {
	var out []reflect.StructField
	for i := range t.NumField() {
		f := t.Field(i)
		var extras []string
		if header, ok := f.Tag.Lookup("mcp_header"); ok {
			extras = append(extras, "x-mcp-header="+header)
		}
		if in.output && writesNull(f) {
			extras = append(extras, nullMark+"=true")
		}
		if len(extras) == 0 {
			continue
		}
		if more := f.Tag.Get("jsonschema_extras"); more != "" {
			extras = append([]string{more}, extras...)
		}
		f.Tag = reflect.StructTag("jsonschema_extras:"+strconv.Quote(strings.Join(extras, ","))+" ") + f.Tag
		out = append(out, f)
	}
	return out
}

// writesNull says that a field is always written, and as null when it is nil.
func writesNull(f reflect.StructField) bool {
	tag := readTag(f)
	if _, embedded := embeds(f, tag); embedded || tag.skip || tag.optional {
		return false
	}
	for _, option := range splitTag(f.Tag.Get("jsonschema")) {
		if option == "nullable" {
			return false // says so already
		}
	}
	if f.Type == rawType { // accepts anything
		return false
	}
	switch f.Type.Kind() {
	case reflect.Pointer:
		return true
	case reflect.Slice, reflect.Map:
		return !implements(f.Type, jsonMarshalerType) && !implements(f.Type, textMarshalerType)
	}
	return false
}
