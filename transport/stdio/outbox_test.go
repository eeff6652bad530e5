package stdio_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/transport/stdio"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sink collects what is written, in as many writes as there were.
type sink struct {
	mu     sync.Mutex
	writes []string
}

func (s *sink) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes = append(s.writes, string(b))
	return len(b), nil
}

func (s *sink) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.writes, "")
}

// gate is a writer whose writes wait until they are let through, or interrupted.
type gate struct {
	sink
	let  chan int // bytes that one write may take
	stop chan struct{}
	once sync.Once
}

func newGate() *gate { return &gate{let: make(chan int), stop: make(chan struct{})} }

func (g *gate) Write(b []byte) (int, error) {
	for n := 0; n < len(b); {
		select {
		case more := <-g.let:
			part := b[n:min(len(b), n+more)]
			g.sink.Write(part)
			n += len(part)
		case <-g.stop:
			return n, io.ErrClosedPipe
		}
	}
	return len(b), nil
}

func (g *gate) Close() error {
	g.once.Do(func() { close(g.stop) })
	return nil
}

// open lets everything through until g is closed.
func (g *gate) open() {
	go func() {
		for {
			select {
			case g.let <- 1 << 20:
			case <-g.stop:
				return
			}
		}
	}()
}

func TestInvariant_O1_LinesAreWholeAndInOrder(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var w sink
		o := stdio.NewOutbox(&w, 1<<20, time.Minute)
		const writers, each = 20, 200
		var all sync.WaitGroup
		for i := range writers {
			all.Go(func() {
				r := o.Reply(true)
				for j := range each {
					assert.NoError(t, r.Send(fmt.Appendf(nil, "%d %d", i, j)))
				}
				r.Answer(fmt.Appendf(nil, "%d %d", i, each), 0)
			})
		}
		all.Wait()
		require.True(t, o.Finish(time.Minute))
		next := map[int]int{}
		for line := range strings.Lines(w.text()) {
			var i, j int
			_, err := fmt.Sscanf(line, "%d %d\n", &i, &j)
			require.NoError(t, err, line)
			require.Equal(t, next[i], j, "writer %d", i)
			next[i]++
		}
		for i := range writers {
			require.Equal(t, each+1, next[i], "writer %d", i)
		}
	})
}

func TestOutboxJoinsWhatIsReady(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		g := newGate()
		o := stdio.NewOutbox(g, 1<<20, time.Minute)
		for i := range 100 {
			o.Reply(true).Answer(fmt.Appendf(nil, "%d", i), 0)
		}
		g.open()
		require.True(t, o.Finish(time.Second))
		g.Close()
		assert.LessOrEqual(t, len(g.writes), 2)
		assert.Equal(t, 100, strings.Count(g.text(), "\n"))
	})
}

func TestInvariant_O2_HandlersWaitAndTheReaderDoesNot(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const room = 1000
		g := newGate()
		o := stdio.NewOutbox(g, room, time.Hour)
		msg := []byte(strings.Repeat("x", 99))
		var handlers sync.WaitGroup
		for range 50 {
			handlers.Go(func() { o.Reply(true).Answer(msg, 0) })
		}
		synctest.Wait()
		assert.Equal(t, 40, o.Blocked())
		assert.Equal(t, room, o.Pending())
		for range 10 {
			o.Reply(false).Answer(msg, 0) // would not return if it waited
		}
		assert.Equal(t, 2*room, o.Pending())
		go func() {
			for range 60 {
				g.let <- 100
			}
		}()
		handlers.Wait()
		require.True(t, o.AwaitIdle(time.Hour))
		assert.Equal(t, 60, strings.Count(g.text(), "\n"), "nothing is lost")
		assert.NoError(t, o.Err())
		assert.True(t, o.Finish(0))
	})
}

func TestInvariant_O2_FloodsAreGivenUp(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		g := newGate()
		o := stdio.NewOutbox(g, 1000, time.Hour)
		var err error
		n := 0
		for ; err == nil; n++ {
			err = o.Put(strings.Repeat("x", 99))
		}
		assert.Equal(t, 21, n)
		assert.Equal(t, stdio.ErrFlooded, err)
		assert.Equal(t, stdio.ErrFlooded, o.Err())
		assert.True(t, o.Finish(time.Hour), "the write was interrupted")
	})
}

func TestInvariant_O3_FailureFreesEverybody(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		g := newGate()
		o := stdio.NewOutbox(g, 100, time.Hour)
		mine := errors.New("mine")
		var waiting sync.WaitGroup
		for range 10 {
			waiting.Go(func() { o.Reply(true).Answer(make([]byte, 99), 0) })
		}
		waiting.Go(func() {
			for o.Put("fill") == nil && o.Pending() < 100 {
				continue
			}
			assert.Equal(t, mine, o.Reply(true).Send(make([]byte, 99)))
		})
		synctest.Wait()
		require.Positive(t, o.Blocked())
		o.Fail(mine)
		o.Fail(errors.New("a later one"))
		waiting.Wait()
		<-o.Failed()
		assert.Equal(t, mine, o.Put("x"))
		assert.True(t, o.Finish(time.Hour))
		assert.Equal(t, mine, o.Err())
		assert.Empty(t, g.text())
	})
}

func TestInvariant_O3_NothingIsWrittenAfterTheEnd(t *testing.T) {
	var w sink
	o := stdio.NewOutbox(&w, 100, time.Hour)
	require.NoError(t, o.Put("before"))
	require.True(t, o.Finish(time.Minute))
	assert.Equal(t, stdio.ErrEnded, o.Put("after"))
	assert.Equal(t, "before\n", w.text())
}

func TestInvariant_O3_WriteErrorsFail(t *testing.T) {
	broken := errors.New("broken")
	for name, w := range map[string]writerFunc{
		"error": func([]byte) (int, error) { return 0, broken },
		"short": func(b []byte) (int, error) { return len(b) - 1, nil },
	} {
		o := stdio.NewOutbox(w, 100, time.Hour)
		require.NoError(t, o.Put("x"))
		<-o.Failed()
		if name == "error" {
			assert.ErrorIs(t, o.Put("y"), broken)
		} else {
			assert.ErrorIs(t, o.Put("y"), io.ErrShortWrite)
		}
		assert.True(t, o.Finish(time.Minute))
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func TestInvariant_O4_SilenceLeavesAtMostOneMessage(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		g := newGate()
		o := stdio.NewOutbox(g, 1<<20, time.Hour)
		r, other := o.Reply(true), o.Reply(true)
		for i := range 10 {
			require.NoError(t, r.Send([]byte(notification(i))))
			require.NoError(t, other.Send([]byte(notification(100+i))))
		}
		synctest.Wait()
		r.Silence()
		require.NoError(t, r.Send([]byte(notification(10))), "late messages vanish")
		g.open()
		require.True(t, o.Finish(time.Hour))
		g.Close()
		mine, others := 0, 0
		for line := range strings.Lines(g.text()) {
			for i := range 11 {
				if line == notification(i)+"\n" {
					mine++
				}
				if line == notification(100+i)+"\n" {
					others++
				}
			}
		}
		assert.LessOrEqual(t, mine, 1)
		assert.Equal(t, 10, others)
	})
}

func TestSilenceFreesASendThatWaits(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		g := newGate()
		o := stdio.NewOutbox(g, 10, time.Hour)
		require.NoError(t, o.Put("a long line"))
		r := o.Reply(true)
		sent := make(chan error)
		go func() { sent <- r.Send([]byte(notification(1))) }()
		synctest.Wait()
		require.Equal(t, 1, o.Blocked())
		r.Silence()
		require.NoError(t, <-sent)
		g.let <- 100
		require.True(t, o.Finish(time.Hour))
		assert.Equal(t, "a long line\n", g.text())
	})
}

// Otherwise thousands that are cancelled at once wake one another again and again.
func TestSilenceWakesNobodyElse(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		o := stdio.NewOutbox(newGate(), 1000, time.Hour)
		require.NoError(t, o.Put(strings.Repeat("x", 999)))
		var sends sync.WaitGroup
		replies := make([]*stdio.Reply, 20)
		before := make([]<-chan struct{}, len(replies))
		for i := range replies {
			replies[i] = o.Reply(true)
			sends.Go(func() { _ = replies[i].Send([]byte("y")) })
		}
		synctest.Wait()
		for i, r := range replies {
			before[i] = r.Waits()
			require.NotNil(t, before[i])
		}
		for i, r := range replies[:10] {
			r.Silence()
			synctest.Wait()
			assert.Equal(t, len(replies)-1-i, o.Blocked(), "its own send is freed")
			assert.Nil(t, r.Waits())
		}
		for i, r := range replies[10:] {
			assert.Equal(t, before[10+i], r.Waits())
		}
		o.Fail(errors.New("the end"))
		sends.Wait()
		assert.Zero(t, o.Blocked())
	})
}
