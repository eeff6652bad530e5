package wire_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/heedmcp/heed/transport/transporttest/wire"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sink is a server's input.
type sink struct{ bytes.Buffer }

func (*sink) Close() error { return nil }

func TestStreamLogsLinesInOrder(t *testing.T) {
	log := wire.NewLog()
	in := `{"jsonrpc":"2.0","id":1,"result":{}}` + "\r\n" + "garbage\n" + `{"jsonrpc":"2.0","method":"a"}`
	var out sink
	s := wire.NewStream(log, strings.NewReader(in), &out)
	<-s.Ended()
	require.NoError(t, s.Send([]byte(`{"jsonrpc":"2.0","id":2,"method":"b"}`), []byte(`x`)))
	entries := log.Since(0)
	require.Len(t, entries, 6)
	assert.Equal(t, wire.Received, entries[0].Kind)
	assert.Equal(t, wire.Garbage, entries[1].Kind)
	assert.Equal(t, wire.Garbage, entries[2].Kind, "a line without an end is no message")
	assert.Equal(t, wire.Closed, entries[3].Kind)
	assert.Equal(t, "b", entries[4].Message.Method)
	assert.Equal(t, "x", entries[5].Text)
	assert.Equal(t, `{"jsonrpc":"2.0","id":2,"method":"b"}`+"\nx\n", out.String())
}

// Whoever learns of the end by the log finds it on the stream, and the other way round.
func TestTheEndIsOneInstant(t *testing.T) {
	isEnd := func(e wire.Entry) bool { return e.Kind == wire.Closed }
	for range 500 {
		log := wire.NewLog()
		s := wire.NewStream(log, strings.NewReader("garbage\n"), &sink{})
		_, told := log.Wait(t.Context(), 0, isEnd)
		require.True(t, told)
		select {
		case <-s.Ended():
		default:
			require.Fail(t, "the log says that the stream has ended, and the stream does not")
		}

		log = wire.NewLog()
		s = wire.NewStream(log, strings.NewReader("garbage\n"), &sink{})
		<-s.Ended()
		_, told = log.Find(0, isEnd)
		require.True(t, told, "the stream has ended, and the log does not say so")
	}
}

func TestStreamSaysWhyNothingMoreIsRead(t *testing.T) {
	broken := errors.New("the line is dead")
	for _, c := range []struct {
		from io.Reader
		why  string // "" for a stream that the other side has ended
	}{
		{strings.NewReader("garbage\n"), ""},
		{strings.NewReader("a part of a line"), ""},
		{iotest.ErrReader(broken), broken.Error()},
		{strings.NewReader(strings.Repeat("x", 17<<20)), "a line of more than"},
	} {
		held, begin := io.Pipe()
		s := wire.NewStream(wire.NewLog(), io.MultiReader(held, c.from), &sink{})
		require.NoError(t, s.Err(), "it has not ended")
		begin.Close()
		<-s.Ended()
		if c.why == "" {
			require.NoError(t, s.Err())
		} else {
			require.ErrorContains(t, s.Err(), c.why)
		}
	}
}

// A server that sends without end fills a log, and no more memory.
func TestLogIsBounded(t *testing.T) {
	log := wire.NewLog()
	endless := strings.NewReader(strings.Repeat(strings.Repeat("x", 1<<20)+"\n", 40))
	s := wire.NewStream(log, endless, &sink{})
	<-s.Ended()
	assert.True(t, log.Full())
	assert.ErrorContains(t, s.Err(), "too much was received")
	assert.Less(t, log.Len(), 40)
	before := log.Len()
	log.Notef("more")
	assert.Equal(t, before, log.Len())
	_, ok := log.Wait(context.Background(), 0, func(e wire.Entry) bool { return e.Kind == wire.Closed })
	assert.False(t, ok, "nobody waits for what cannot come")
}

func TestEntriesAreOneBoundedLine(t *testing.T) {
	log := wire.NewLog()
	log.Add(wire.Entry{Kind: wire.Garbage, Text: strings.Repeat("line\n", 1000)})
	text := log.Since(0)[0].String()
	assert.NotContains(t, text, "\n")
	assert.Less(t, len(text), 1000)
}

func TestProcessIsKilledAndSaysHowItEnded(t *testing.T) {
	p, err := wire.Start([]string{"/bin/sh", "-c", "echo hello >&2; exit 3"}, nil)
	require.NoError(t, err)
	<-p.Exited()
	status, text := p.Status()
	assert.Equal(t, 3, status)
	assert.Equal(t, "exit status 3", text)
	assert.Equal(t, "hello\n", p.Stderr())
	p.Kill()
	p.Kill()

	p, err = wire.Start([]string{"/bin/sh", "-c", "sleep 1000 & cat"}, []string{"X=1"})
	require.NoError(t, err)
	p.Kill()
	status, _ = p.Status()
	assert.Equal(t, -1, status)

	_, err = wire.Start(nil, nil)
	assert.Error(t, err)
}
