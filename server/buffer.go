package server

import "sync"

// maxPooled bounds the buffers that are kept for reuse, in bytes, so that one
// large result does not stay in memory for ever.
const maxPooled = 64 << 10

var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 512); return &b }}

// getBuffer returns an empty buffer; give it back with putBuffer when nothing
// refers to its bytes any more.
func getBuffer() *[]byte {
	b := buffers.Get().(*[]byte)
	*b = (*b)[:0]
	return b
}

func putBuffer(b *[]byte) {
	if cap(*b) <= maxPooled {
		buffers.Put(b)
	}
}
