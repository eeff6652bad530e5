package schema

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// survey walks a type before its schema is inferred: it finds what must be refused, and which types contain
// themselves. Filled by visit, read by the inferrer.
type survey struct {
	sizes  map[reflect.Type]int  // fields and elements, all nested ones counted; at most maxSize
	loops  map[reflect.Type]bool // a type that contains itself is reachable
	cyclic map[reflect.Type]bool // contains itself
	path   []reflect.Type        // being visited
}

const maxSize = 1 << 20

func newSurvey() *survey {
	return &survey{sizes: map[reflect.Type]int{}, loops: map[reflect.Type]bool{}, cyclic: map[reflect.Type]bool{}}
}

func (s *survey) visit(t reflect.Type) (size int, err error) {
	if size, ok := s.sizes[t]; ok {
		return size, nil
	}
	for i, above := range s.path {
		if above == t {
			for _, in := range s.path[i:] {
				s.cyclic[in], s.loops[in] = true, true
			}
			return 1, nil
		}
	}
	s.path = append(s.path, t)
	defer func() { s.path = s.path[:len(s.path)-1] }()
	size, err = s.measure(t)
	if err != nil {
		return 0, err
	}
	s.sizes[t] = min(size, maxSize)
	return s.sizes[t], nil
}

func (s *survey) measure(t reflect.Type) (int, error) {
	if t == urlType {
		return 0, errors.New("url.URL has no JSON text form; use a string with format=uri")
	}
	if leaf(t) != nil || speaks(t) {
		return 1, nil
	}
	if _, ok := reflect.New(t).Interface().(interface{ JSONSchemaAlias() any }); ok {
		return 0, fmt.Errorf("%v: JSONSchemaAlias is not supported, use JSONSchema", t)
	}
	switch t.Kind() {
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer, reflect.Uintptr:
		return 0, fmt.Errorf("%v has no JSON form", t)
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			return 0, fmt.Errorf("%v: keys must be strings", t)
		}
		return s.part(t, t.Elem(), "[*]")
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 && !customDecode(t.Elem()) {
			return 1, nil
		}
		return s.part(t, t.Elem(), "[*]")
	case reflect.Array:
		return s.part(t, t.Elem(), "[*]")
	case reflect.Pointer:
		return s.part(t, t.Elem(), "")
	case reflect.Struct:
		return s.fields(t, t, map[string]bool{}, nil)
	}
	return 1, nil
}

func (s *survey) part(whole, t reflect.Type, where string) (int, error) {
	n, err := s.visit(t)
	if err != nil {
		if where != "" {
			err = fmt.Errorf("%s: %w", where, err)
		}
		return 0, err
	}
	s.loops[whole] = s.loops[whole] || s.loops[t]
	return n + 1, nil
}

// fields visits the fields of t as members of owner. names are those taken so far.
func (s *survey) fields(owner, t reflect.Type, names map[string]bool, embedding []reflect.Type) (int, error) {
	for _, above := range embedding {
		if above == t {
			return 0, fmt.Errorf("%v embeds itself", t)
		}
	}
	size := 1
	for i := range t.NumField() {
		f := t.Field(i)
		tag := readTag(f)
		if tag.skip || strings.HasPrefix(f.Tag.Get("jsonschema"), "-") {
			continue
		}
		if inner, ok := embeds(f, tag); ok {
			if f.Type.Kind() == reflect.Pointer && !f.IsExported() {
				return 0, fmt.Errorf("%s: a pointer to an unexported struct cannot be embedded", f.Name)
			}
			n, err := s.fields(owner, inner, names, append(embedding, t))
			if err != nil {
				return 0, err
			}
			size += n
			continue
		}
		if err := checkField(f, tag); err != nil {
			return 0, fmt.Errorf("field %s: %w", f.Name, err)
		}
		if names[tag.name] {
			return 0, fmt.Errorf("field %s: the name %s is taken by another field", f.Name, quote(tag.name))
		}
		names[tag.name] = true
		n, err := s.part(owner, f.Type, "")
		if err != nil {
			return 0, fmt.Errorf("field %s: %w", f.Name, err)
		}
		size = min(size+n, maxSize)
	}
	return size, nil
}
