package schema

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"time"
	"unicode"
)

var (
	timeType            = reflect.TypeFor[time.Time]()
	jsonMarshalerType   = reflect.TypeFor[json.Marshaler]()
	jsonUnmarshalerType = reflect.TypeFor[json.Unmarshaler]()
	textMarshalerType   = reflect.TypeFor[encoding.TextMarshaler]()
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// implements says that t or *t has the methods of an interface.
func implements(t, iface reflect.Type) bool {
	return t.Implements(iface) || reflect.PointerTo(t).Implements(iface)
}

// customDecode says that decoding into t is code of t's own.
func customDecode(t reflect.Type) bool {
	return implements(t, jsonUnmarshalerType) || implements(t, textUnmarshalerType)
}

// jsonTag is the json tag of a field, read the way encoding/json does.
type jsonTag struct {
	name     string // of the member; the Go name without a tag
	named    bool   // by the tag
	skip     bool   // "-" or not exported
	optional bool   // omitempty or omitzero
	options  []string
}

func readTag(f reflect.StructField) jsonTag {
	text := f.Tag.Get("json")
	if text == "-" || !f.IsExported() && !f.Anonymous {
		return jsonTag{skip: true}
	}
	name, rest, _ := strings.Cut(text, ",")
	t := jsonTag{name: name, named: name != "", options: strings.Split(rest, ",")}
	if !t.named {
		t.name = f.Name
	}
	t.optional = t.has("omitempty") || t.has("omitzero")
	return t
}

func (t *jsonTag) has(option string) bool {
	for _, o := range t.options {
		if o == option {
			return true
		}
	}
	return false
}

// validName says that encoding/json takes a tag's name rather than ignoring it.
func validName(s string) bool {
	for _, c := range s {
		if !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", c) && !unicode.IsLetter(c) && !unicode.IsDigit(c) {
			return false
		}
	}
	return s != ""
}

// embeds says that the fields of an embedded struct belong to its owner, and gives the struct.
func embeds(f reflect.StructField, tag jsonTag) (reflect.Type, bool) {
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t, f.Anonymous && !tag.named && t.Kind() == reflect.Struct
}

// jsonFields maps the member names of a struct to the types of their fields.
func jsonFields(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for i := range t.NumField() {
		f := t.Field(i)
		tag := readTag(f)
		if tag.skip {
			continue
		}
		if inner, ok := embeds(f, tag); ok {
			for name, ft := range jsonFields(inner) {
				if _, taken := fields[name]; !taken {
					fields[name] = ft
				}
			}
			continue
		}
		fields[tag.name] = f.Type
	}
	return fields
}
