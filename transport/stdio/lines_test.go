package stdio_test

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/heedmcp/heed/transport/stdio"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// split returns the lines, with "!" for one that is too long, and the error at the
// end.
func split(r io.Reader, max int) (lines []string, err error) {
	l := stdio.NewLines(r, max)
	for {
		line, err := l.Next()
		switch {
		case errors.Is(err, stdio.ErrTooLong):
			lines = append(lines, "!")
		case err != nil:
			return lines, err
		default:
			lines = append(lines, string(line))
		}
	}
}

func TestLines(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     []string
	}{
		{"nothing", "", nil},
		{"two", "a\nb\n", []string{"a", "b"}},
		{"blank ones", "\n\n a\n\r\n \t\nb\n\n", []string{"a", "b"}},
		{"carriage returns", "a\r\nb\r\n", []string{"a", "b"}},
		{"white space around", " {\"a\":1}\t\r\n", []string{`{"a":1}`}},
		{"the last without an end", "a\nb", []string{"a", "b"}},
		{"the last is blank", "a\n  ", []string{"a"}},
		{"byte order mark", "\xef\xbb\xbfa\n\xef\xbb\xbfb\n", []string{"a", "\xef\xbb\xbfb"}},
		{"byte order mark alone", "\xef\xbb\xbf\r\na\n", []string{"a"}},
		{"no text", "\x00\xff\n\xc3\n", []string{"\x00\xff", "\xc3"}},
		{"as long as may be", "1234567890\nb\n", []string{"1234567890", "b"}},
		{"too long", "12345678901\nb\n", []string{"!", "b"}},
		{"too long at the end", "b\n12345678901", []string{"b", "!"}},
		{"too long in spaces", strings.Repeat(" ", 11) + "\nb\n", []string{"!", "b"}},
		{"two too long", strings.Repeat("x", 99) + "\n" + strings.Repeat("y", 99) + "\nb", []string{"!", "!", "b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			lines, err := split(strings.NewReader(c.in), 10)
			assert.Equal(t, c.want, lines)
			assert.Equal(t, io.EOF, err)
		})
	}
}

// chunks returns at most size bytes at a time.
type chunks struct {
	r    io.Reader
	size func() int
}

func (c chunks) Read(b []byte) (int, error) {
	return c.r.Read(b[:max(1, min(len(b), c.size()))])
}

func TestInvariant_L1_LinesDoNotDependOnChunks(t *testing.T) {
	long := strings.Repeat("long ", 20_000)
	in := "\xef\xbb\xbfa\r\n\n" + long + "\n  b  \n" + strings.Repeat("z", 200_001) + "\n" + long[1:] + "\nlast"
	want, _ := split(strings.NewReader(in), 200_000)
	require.Len(t, want, 6)
	for _, size := range []int{1, 2, 7, 100, 4095, 4096, 4097, 32 << 10, 1 << 20} {
		lines, err := split(chunks{strings.NewReader(in), func() int { return size }}, 200_000)
		require.Equal(t, want, lines, "chunks of %d", size)
		require.Equal(t, io.EOF, err)
	}
	lines, err := split(iotest.DataErrReader(strings.NewReader(in)), 200_000)
	require.Equal(t, want, lines, "the end together with data")
	require.Equal(t, io.EOF, err)
}

func FuzzInvariant_L1_LinesDoNotDependOnChunks(f *testing.F) {
	f.Add([]byte("a\nb\r\n\n  c  "), []byte{1, 2, 3}, 10)
	f.Add([]byte("\xef\xbb\xbf\n12345678901\nx"), []byte{0, 200}, 10)
	f.Add(bytes.Repeat([]byte("abc\n"), 3000), []byte{255, 1}, 3)
	f.Fuzz(func(t *testing.T, in, sizes []byte, limit int) {
		limit = max(limit%5000, 0)
		want, err := split(bytes.NewReader(in), limit)
		require.Equal(t, io.EOF, err)
		i := 0
		size := func() int {
			if i++; len(sizes) == 0 {
				return 1
			}
			return int(sizes[i%len(sizes)]) * 37
		}
		lines, err := split(chunks{bytes.NewReader(in), size}, limit)
		require.Equal(t, io.EOF, err)
		require.Equal(t, want, lines)
		require.Equal(t, reference(in, limit), lines)
	})
}

// reference splits the plain way.
func reference(in []byte, limit int) (lines []string) {
	first := true
	for line := range bytes.SplitSeq(in, []byte("\n")) {
		if len(line) == 0 {
			continue
		}
		if len(line) > limit {
			lines = append(lines, "!")
		} else {
			if first {
				line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
			}
			if line = bytes.Trim(line, " \t\r"); len(line) > 0 {
				lines = append(lines, string(line))
			}
		}
		first = false
	}
	return lines
}

func TestInvariant_L2_LinesAreNeverOverwritten(t *testing.T) {
	var in strings.Builder
	var want []string
	for i := range 5000 {
		line := strings.Repeat(string(rune('a'+i%26)), i%700+1)
		if i%100 == 0 {
			in.WriteString(strings.Repeat("-", 10_000) + "\n") // skipped: its place is used again
		}
		in.WriteString(line + "\n")
		want = append(want, line)
	}
	l := stdio.NewLines(chunks{strings.NewReader(in.String()), func() int { return 333 }}, 5000)
	var lines [][]byte
	for {
		line, err := l.Next()
		if errors.Is(err, stdio.ErrTooLong) {
			continue
		}
		if err != nil {
			break
		}
		lines = append(lines, line)
		assert.Equal(t, len(line), cap(line), "what follows the line is not its owner's")
	}
	require.Len(t, lines, len(want))
	for i := range lines {
		require.Equal(t, want[i], string(lines[i]))
	}
}

// endless returns n bytes without a line end.
type endless struct{ n int }

func (e *endless) Read(b []byte) (int, error) {
	if e.n == 0 {
		return copy(b, "\nnext\n"), io.EOF
	}
	n := min(len(b), e.n)
	for filled := copy(b[:n], "xxxxxxxx"); filled < n; filled *= 2 {
		copy(b[filled:n], b[:filled])
	}
	e.n -= n
	return n, nil
}

func TestInvariant_L3_LongLinesTakeNoMemory(t *testing.T) {
	const limit = 1 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	l := stdio.NewLines(&endless{n: 64 << 20}, limit)
	_, err := l.Next()
	runtime.ReadMemStats(&after)
	require.ErrorIs(t, err, stdio.ErrTooLong)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(6*limit))
	line, err := l.Next()
	require.NoError(t, err)
	assert.Equal(t, "next", string(line))
	_, err = l.Next()
	assert.Equal(t, io.EOF, err)
}

func TestLinesLetGoOfLargeBlocks(t *testing.T) {
	r, w := io.Pipe()
	go func() {
		io.WriteString(w, strings.Repeat("x", 1<<20)+"\n")
		io.WriteString(w, "small\n")
		w.Close()
	}()
	l := stdio.NewLines(r, 2<<20)
	_, err := l.Next()
	require.NoError(t, err)
	_, err = l.Next()
	require.NoError(t, err)
	assert.LessOrEqual(t, l.Held(), stdio.FullBlock)
}

func TestLinesGiveUpOnReadersThatReturnNothing(t *testing.T) {
	_, err := split(readerFunc(func([]byte) (int, error) { return 0, nil }), 10)
	assert.Equal(t, io.ErrNoProgress, err)
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }
