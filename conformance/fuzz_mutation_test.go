package conformance_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// fuzzValues are what members are replaced by. None makes a wait much longer.
var fuzzValues = []string{"null", "true", "0", "-1", "3.7", "1e308", "1e400", "9007199254740993", `""`, `"x"`, `"2.0"`, `"1.0"`, "[]", "{}", `[[[]]]`, `{"a":{"b":[1,"2",null]}}`, `"\u0000"`, `"\ud800"`, `"2025-06-18"`}

// mutate changes a message in one way.
func (f *fuzzer) mutate(raw []byte) []byte {
	raw = slices.Clone(raw)
	switch f.IntN(16) {
	case 0, 1, 2, 3, 4, 5:
		return f.member(raw)
	case 6: // lost
		return raw[:f.IntN(len(raw)+1)]
	case 7: // a byte is another
		if len(raw) > 0 {
			raw[f.IntN(len(raw))] = byte(f.IntN(256))
		}
		return bytes.ReplaceAll(raw, []byte("\n"), []byte(" "))
	case 8: // a part is gone
		if len(raw) > 2 {
			at := f.IntN(len(raw) - 1)
			raw = slices.Delete(raw, at, at+1+f.IntN(min(8, len(raw)-at-1)))
		}
		return raw
	case 9: // a batch
		parts := [][]byte{raw}
		for range f.IntN(4) {
			method, params := f.message()
			parts = append(parts, f.encode(f.odds(2), method, params))
		}
		return slices.Concat([]byte("["), bytes.Join(parts, []byte(",")), []byte("]"))
	case 10: // around it
		return slices.Concat([]byte(pick(f, "", " ", "\t", "\ufeff", "\r", "//")), raw, []byte(pick(f, " ", "\r", "  \t", "{}", "x", "\x00")))
	case 11: // a key twice
		return bytes.Replace(raw, []byte(`"jsonrpc"`), []byte(pick(f, `"id":2,"jsonrpc"`, `"method":"ping","jsonrpc"`, `"jsonrpc":"1.0","jsonrpc"`, `"params":{},"jsonrpc"`, `"Method":"ping","jsonrpc"`)), 1)
	case 12: // deep
		depth := pick(f, 50, 127, 128, 129, 5000)
		return bytes.Replace(raw, []byte(`"jsonrpc"`), []byte(`"deep":`+strings.Repeat("[", depth)+strings.Repeat("]", depth)+`,"jsonrpc"`), 1)
	case 13: // an answer that nobody asked for
		return []byte(pick(f, `{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"m"}}`, `{"jsonrpc":"2.0","id":1,"result":{},"error":{}}`, `{"jsonrpc":"2.0","id":null,"result":7}`, `{"jsonrpc":"2.0"}`))
	case 14: // nothing of the kind
		return []byte(pick(f, "", "{}", "[]", "null", "7", `"x"`, "[[]]", "[1,2]", "\xff\xfe", "{", "]", "GET / HTTP/1.1", "[{}]", "[null]"))
	}
	return bytes.ReplaceAll(raw, []byte(`"name"`), []byte(pick(f, `"Name"`, `"n\u0061me"`, `"name":"echo","name"`)))
}

// member replaces, removes or adds a member somewhere.
func (f *fuzzer) member(raw []byte) []byte {
	var v any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if decoder.Decode(&v) != nil {
		return raw
	}
	var objects []map[string]any
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			objects = append(objects, v)
			for _, name := range sortedKeys(v) {
				walk(v[name])
			}
		case []any:
			for _, item := range v {
				walk(item)
			}
		}
	}
	walk(v)
	if len(objects) == 0 {
		return raw
	}
	object := pick(f, objects...)
	value := json.RawMessage(pick(f, fuzzValues...))
	keys := sortedKeys(object)
	switch {
	case len(keys) == 0 || f.odds(5):
		object[pick(f, "x", "_meta", "id", "cursor", "uri", "name", "requestState", "inputResponses", "task")] = value
	case f.odds(3):
		delete(object, pick(f, keys...))
	default:
		object[pick(f, keys...)] = value
	}
	out, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return out
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
