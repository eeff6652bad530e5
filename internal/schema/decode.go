package schema

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	segment "github.com/segmentio/encoding/json"
)

// flags: encoding/json would let "NAME" fill a field named "name", which a validator that knows only "name" has
// never seen. Nothing is borrowed from the input.
const flags = segment.DontMatchCaseInsensitiveStructFields

const maxDecodeDepth = 1000 // the decoder recurses without a bound of its own

// Decode reads JSON into v, which must be a non-nil pointer. Names of fields match by case. An integral number may
// be written 1.0 or 1e3, as JSON Schema has it. The error is a *ValidationError that names the field.
//
// v may be partly filled when an error is returned.
func Decode(raw []byte, v any) error {
	f := inspect(raw)
	if f.depth > maxDecodeDepth {
		return problem("", "nests deeper than "+strconv.Itoa(maxDecodeDepth))
	}
	err := decode(raw, v)
	if err != nil && f.fraction && isTypeError(err) {
		if plain, changed := plainIntegers(raw); changed {
			err = decode(plain, v)
			raw = plain
		}
	}
	if err == nil && f.huge {
		err = checkHuge(raw, v)
	}
	if err == nil {
		return nil
	}
	return decodeProblem(raw, v, err)
}

func decode(raw []byte, v any) error {
	rest, err := segment.Parse(raw, v, flags)
	if err == nil && len(rest) > 0 {
		return errors.New("unexpected data after the value")
	}
	return err
}

func isTypeError(err error) bool {
	var te *segment.UnmarshalTypeError
	return errors.As(err, &te)
}

// decodeProblem names the field that err is about. The decoder does so for wrong types only; for errors of
// UnmarshalJSON and the like the field is found by decoding part by part.
func decodeProblem(raw []byte, v any, err error) *ValidationError {
	var te *segment.UnmarshalTypeError
	if errors.As(err, &te) {
		return problem(dotted(te.Field), typeMessage(te))
	}
	var invalid *segment.InvalidUnmarshalError
	if errors.As(err, &invalid) {
		return problem("", "cannot be decoded: "+plainText(invalid.Error()))
	}
	if t := reflect.TypeOf(v); t != nil && t.Kind() == reflect.Pointer {
		if path, partErr := locate(raw, t.Elem(), 0); partErr != nil {
			return problem(path, "cannot be decoded: "+plainText(partErr.Error()))
		}
	}
	return problem("", "cannot be decoded: "+plainText(err.Error()))
}

func typeMessage(te *segment.UnmarshalTypeError) string {
	want := te.Type.String()
	switch te.Type.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		bits := te.Type.Bits()
		want = fmt.Sprintf("an integer between %d and %d", int64(-1)<<(bits-1), uint64(1)<<(bits-1)-1)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		want = fmt.Sprintf("an integer between 0 and %d", ^uint64(0)>>(64-te.Type.Bits()))
	case reflect.Float32, reflect.Float64:
		want = "a number"
	case reflect.String:
		want = "a string"
	case reflect.Bool:
		want = "a boolean"
	case reflect.Slice, reflect.Array:
		want = "an array"
	case reflect.Struct, reflect.Map:
		want = "an object"
	}
	switch te.Type {
	case timeType:
		want = "a date-time like 2006-01-02T15:04:05Z"
	case bytesType:
		want = "base64 text"
	}
	return "must be " + want
}

// dotted turns items.2.name into items[2].name.
func dotted(field string) string {
	path := ""
	for i, token := range strings.Split(field, ".") {
		if n, err := strconv.Atoi(token); err == nil && i > 0 {
			path = element(path, n)
		} else if token != "" {
			path = member(path, token)
		}
	}
	return path
}

// locate finds the part of raw that does not decode into a t, and its error.
func locate(raw []byte, t reflect.Type, depth int) (string, error) {
	err := decode(raw, reflect.New(t).Interface())
	if err == nil || depth > maxValueDepth || customDecode(t) {
		return "", err
	}
	switch t.Kind() {
	case reflect.Pointer:
		return locate(raw, t.Elem(), depth+1)
	case reflect.Struct:
		var parts map[string]segment.RawMessage
		if decode(raw, &parts) != nil {
			return "", err
		}
		for name, ft := range jsonFields(t) {
			if part, ok := parts[name]; ok {
				if path, partErr := locate(part, ft, depth+1); partErr != nil {
					return join(member("", name), path), partErr
				}
			}
		}
	case reflect.Map:
		var parts map[string]segment.RawMessage
		if decode(raw, &parts) != nil {
			return "", err
		}
		for name, part := range parts {
			if path, partErr := locate(part, t.Elem(), depth+1); partErr != nil {
				return join(member("", name), path), partErr
			}
		}
	case reflect.Slice, reflect.Array:
		var parts []segment.RawMessage
		if t == bytesType || decode(raw, &parts) != nil {
			return "", err
		}
		for i, part := range parts {
			if path, partErr := locate(part, t.Elem(), depth+1); partErr != nil {
				return join(element("", i), path), partErr
			}
		}
	}
	return "", err
}

// features of a JSON text that decide how it must be decoded.
type features struct {
	depth    int
	fraction bool // a number with a fraction or an exponent
	huge     bool // an integer of 20 digits or more
}

func inspect(raw []byte) features {
	var f features
	depth, digits := 0, 0
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if '0' <= c && c <= '9' {
			if digits++; digits >= 20 {
				f.huge = true
			}
			continue
		}
		if digits > 0 && (c == '.' || c == 'e' || c == 'E') {
			f.fraction = true
		}
		digits = 0
		switch c {
		case '"':
			for i++; i < len(raw) && raw[i] != '"'; i++ {
				if raw[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
			f.depth = max(f.depth, depth)
		case '}', ']':
			depth--
		}
	}
	return f
}

// checkHuge guards against silent overflow: the decoder reads 20500000000000000000 into an int64 as another
// number. Written with an exponent the same number is refused for integers, and read alike by everything else
// but code of a type's own. When that refuses the one spelling, it is not known what stands behind it, and the
// numbers are tried one by one.
func checkHuge(raw []byte, v any) error {
	t := reflect.TypeOf(v).Elem()
	var ends []int
	for start, end := range numbers(raw) {
		if beyond64(raw[start:end]) {
			ends = append(ends, end)
		}
	}
	if len(ends) == 0 {
		return nil
	}
	var te *segment.UnmarshalTypeError
	err := decode(withExponents(raw, ends), reflect.New(t).Interface())
	if err == nil {
		return nil
	}
	if errors.As(err, &te) {
		return te
	}
	if len(ends) > maxTried {
		return errors.New("too many numbers beyond 64 bits")
	}
	for i := range ends {
		if err := decode(withExponents(raw, ends[i:i+1]), reflect.New(t).Interface()); errors.As(err, &te) {
			return te
		}
	}
	return nil
}

const maxTried = 100 // numbers, each with a decoding of the whole

// withExponents writes the numbers that end at ends with an exponent of zero.
func withExponents(raw []byte, ends []int) []byte {
	out := make([]byte, 0, len(raw)+2*len(ends))
	last := 0
	for _, end := range ends {
		out = append(append(out, raw[last:end]...), "e0"...)
		last = end
	}
	return append(out, raw[last:]...)
}

var bytesType = reflect.TypeFor[[]byte]()
