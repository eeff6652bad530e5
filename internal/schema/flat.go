package schema

// flat is the fast path.
type flat struct{}

func newFlat(map[string]any) *flat { return nil }

func (f *flat) prepare(args []byte) ([]byte, bool)                  { return nil, false }
func (f *flat) accept(raw []byte) (missing uint64, at int, ok bool) { return 0, 0, false }
