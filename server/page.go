package server

import (
	"encoding/base64"
	"maps"
	"slices"
	"sync"

	"github.com/heedmcp/heed/internal/jsonrpc"
)

// list is one kind of registered things in the order in which they are listed.
type list[T any] struct {
	names []string // sorted
	items []T
}

func newList[K, T any](registered map[string]K, definition func(K) T) list[T] {
	l := list[T]{names: slices.Sorted(maps.Keys(registered)), items: make([]T, len(registered))}
	for i, name := range l.names {
		l.items[i] = definition(registered[name])
	}
	return l
}

// after returns the position of the first item behind name; "" is before all.
func (l *list[T]) after(name string) int {
	if name == "" {
		return 0
	}
	i, found := slices.BinarySearch(l.names, name)
	if found {
		i++
	}
	return i
}

// page returns up to size items from position from on that keep lets through,
// nil letting all, and the name of the last one if more follow, else "".
func (l *list[T]) page(from, size int, keep func(T) bool) (items []T, last string) {
	items = []T{}
	for i := from; i < len(l.items); i++ {
		if keep != nil && !keep(l.items[i]) {
			continue
		}
		if len(items) == size {
			return items, last
		}
		items = append(items, l.items[i])
		last = l.names[i]
	}
	return items, ""
}

// pages caches the pages of lists, and their encodings, for as long as a
// registry lives: every client asks for the same ones.
type pages struct {
	results sync.Map // pageKey → result
	owned   sync.Map // result → struct{}: what results holds
	encoded sync.Map // encodedKey → []byte
}

// pageKey names a page by its position, so that cursors cannot fill the cache.
type pageKey struct {
	method string
	from   int
	rev    *revision // nil: the same in all
}

// encodedKey names a page as one revision has it.
type encodedKey struct {
	result any
	rev    *revision
}

// result returns the cached result for a key, made by make if need be.
func (p *pages) result(key pageKey, make func() any) any {
	if cached, ok := p.results.Load(key); ok {
		return cached
	}
	stored, _ := p.results.LoadOrStore(key, make())
	p.owned.Store(stored, struct{}{})
	return stored
}

// append appends the encoding of a result: from the cache when it is one of the
// server's own pages, not a copy that middleware made.
func (p *pages) append(b []byte, result any, rev *revision, encode func() ([]byte, error)) ([]byte, error) {
	key := encodedKey{result: result, rev: rev}
	if cached, ok := p.encoded.Load(key); ok {
		return append(b, cached.([]byte)...), nil
	}
	encoded, err := encode()
	if err != nil {
		return b, err
	}
	if _, own := p.owned.Load(result); own {
		p.encoded.Store(key, encoded)
	}
	return append(b, encoded...), nil
}

// A cursor is the name of the last item of the page before, so that it stays
// good when items come and go, behind a letter that says what the name is of. To
// clients it is opaque.

const cursorItem = "n" // a registered item

func encodeCursor(kind, name string) string {
	if name == "" {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString([]byte(kind + ":" + name))
}

var errCursor = invalidParams("params.cursor is not one that this server gave out")

// cursorOf returns the kind and the name that the cursor in params stands for;
// none for the first page.
//
// Specification: server/utilities/pagination: invalid cursors are -32602.
func cursorOf(params []byte) (kind, name string, err error) {
	raw, ok := jsonrpc.Get(params, "cursor")
	if !ok || string(raw) == "null" {
		return cursorItem, "", nil
	}
	text, ok := jsonrpc.Unquote(raw)
	if !ok {
		return "", "", invalidParams("params.cursor must be a string")
	}
	decoded, e := base64.RawURLEncoding.Strict().DecodeString(text)
	if e != nil || len(decoded) < 3 || decoded[1] != ':' {
		return "", "", errCursor
	}
	return string(decoded[:1]), string(decoded[2:]), nil
}

// itemCursor is cursorOf for lists that hold nothing but registered items.
func itemCursor(params []byte) (name string, err error) {
	kind, name, err := cursorOf(params)
	if err == nil && kind != cursorItem {
		err = errCursor
	}
	return name, err
}
