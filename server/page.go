package server

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/heedmcp/heed/internal/jsonrpc"
)

// list is one kind of registered things in the order in which they are listed.
type list[T any] struct {
	names []string // as they are listed
	keys  []string // by what the list is sorted: the names, or when they were registered
	items []T
	last  uint64 // how many keys were given out; 0 when the names are the keys
}

// relist lists what is registered: as it came if ordered, else by name. before is
// the list as it was.
//
// What is sorted by name is sorted when somebody asks for it: a server registers
// its thousands one by one, before anybody lists them.
func relist[K, T any](ordered bool, before func() *list[T], registered map[string]K, definition func(K) T) func() *list[T] {
	if !ordered {
		return sync.OnceValue(func() *list[T] {
			l := newList(registered, definition)
			return &l
		})
	}
	old := &list[T]{}
	if before != nil {
		old = before()
	}
	l := extendList(old, registered, definition)
	return func() *list[T] { return &l }
}

// newList lists what is registered by its name.
func newList[K, T any](registered map[string]K, definition func(K) T) list[T] {
	names := slices.Sorted(maps.Keys(registered))
	l := list[T]{names: names, keys: names, items: make([]T, len(names))}
	for i, name := range names {
		l.items[i] = definition(registered[name])
	}
	return l
}

// extendList lists what is registered as it came: what was listed before stays
// where it is, also when it was replaced, and new things follow.
func extendList[K, T any](before *list[T], registered map[string]K, definition func(K) T) list[T] {
	l := list[T]{last: before.last}
	add := func(name, key string) {
		l.names, l.keys = append(l.names, name), append(l.keys, key)
		l.items = append(l.items, definition(registered[name]))
	}
	had := make(map[string]bool, len(before.names))
	for i, name := range before.names {
		if _, still := registered[name]; still {
			had[name] = true
			add(name, before.keys[i])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(registered)) {
		if !had[name] {
			l.last++
			add(name, fmt.Sprintf("%016x", l.last))
		}
	}
	return l
}

// after returns the position of the first item behind key; "" is before all. key
// need not be there any more.
func (l *list[T]) after(key string) int {
	if key == "" {
		return 0
	}
	i, found := slices.BinarySearch(l.keys, key)
	if found {
		i++
	}
	return i
}

// page returns up to size items from position from on that keep lets through,
// nil letting all, and the key of the last one if more follow, else "".
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
		last = l.keys[i]
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

// A cursor is the key of the last item of the page before (its name, or when it
// was registered), so that it stays good when items come and go, behind a letter
// that says what the key is of. To clients it is opaque.

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
