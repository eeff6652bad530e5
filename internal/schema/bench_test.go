package schema_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/heedmcp/heed/internal/schema"
)

type three struct {
	City  string `json:"city" jsonschema:"minLength=1"`
	Units string `json:"units,omitempty" jsonschema:"enum=metric,enum=imperial"`
	Days  int    `json:"days,omitempty" jsonschema:"minimum=1,maximum=14,default=3"`
}

func threeFields(b testing.TB) *schema.Schema {
	raw, err := schema.For(reflect.TypeFor[three]())
	require.NoError(b, err)
	s, err := schema.Compile(raw, nil)
	require.NoError(b, err)
	return s
}

var threeArgs = []byte(`{"city":"Oslo","units":"metric","days":7}`)

func BenchmarkPrepare(b *testing.B) {
	s := threeFields(b)
	for name, f := range map[string]func([]byte) ([]byte, error){"fast": s.Prepare, "engine": s.Slow} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := f(threeArgs); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("defaults", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.Prepare([]byte(`{"city":"Oslo"}`)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		var v three
		if err := schema.Decode(threeArgs, &v); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	raw := json.RawMessage(threeFields(b).Raw())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := schema.Compile(raw, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// The fast path allocates nothing when there is nothing to add, whatever the machine.
func TestPrepareAllocations(t *testing.T) {
	s := threeFields(t)
	allocs := testing.AllocsPerRun(100, func() {
		if _, err := s.Prepare(threeArgs); err != nil {
			t.Fatal(err)
		}
	})
	require.Zero(t, allocs)
}
