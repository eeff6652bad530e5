package mediatype_test

import (
	"testing"

	"github.com/heedmcp/heed/internal/mediatype"
	"github.com/stretchr/testify/assert"
)

func TestTypes(t *testing.T) {
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"guide.md", nil, "text/markdown"},
		{"a/GUIDE.MD", []byte{0xff}, "text/markdown"},
		{"x.png", nil, "image/png"},
		{"LICENSE", nil, ""},
		{"LICENSE", []byte("text"), "text/plain"},
		{"LICENSE", []byte{}, "text/plain"},
		{"blob", []byte("%PDF-1.7\x00"), "application/pdf"},
		{"blob", []byte{0, 1, 2}, "application/octet-stream"},
		{"a.dir/blob", []byte("text"), "text/plain"},
	} {
		assert.Equal(t, c.want, mediatype.Of(c.name, c.data), "%s %q", c.name, c.data)
	}
}

func TestText(t *testing.T) {
	assert.True(t, mediatype.IsText(nil))
	assert.True(t, mediatype.IsText([]byte("\ufeffgrün\r\n")))
	assert.False(t, mediatype.IsText([]byte("a\x00b")))
	assert.False(t, mediatype.IsText([]byte{0xc3, 0x28}))
}
