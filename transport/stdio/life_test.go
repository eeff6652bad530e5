package stdio_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/bubble"
	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/transport/stdio"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	grace    = time.Second     // the defaults, which these tests
	deadline = 3 * time.Second // are about
)

// life serves in a bubble, with a handshake done.
func life(t *testing.T, o *stdio.Options, test func(t *testing.T, c *served)) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) {
		c := serve(t, newFixture(nil), o)
		c.initialize()
		test(t, c)
	})
}

// took fails the test unless d has passed since begun, in the bubble's time.
func took(t *testing.T, begun time.Time, d time.Duration) {
	t.Helper()
	assert.Equal(t, d, time.Since(begun))
}

// notLater is took for what may be sooner.
func notLater(t *testing.T, begun time.Time, d time.Duration) {
	t.Helper()
	assert.LessOrEqual(t, time.Since(begun), d)
}

func TestCase37_EndOfInputWhileIdle(t *testing.T) {
	life(t, nil, func(t *testing.T, c *served) {
		c.echo(1)
		begun := time.Now()
		c.end()
		took(t, begun, 0)
		assert.Empty(t, c.rest())
	})
}

func TestCase37_EndOfInputCancelsInSilence(t *testing.T) {
	life(t, nil, func(t *testing.T, c *served) {
		c.call(1, "wait", "")
		c.call(2, "value", "")
		synctest.Wait()
		begun := time.Now()
		c.end()
		took(t, begun, 0)
		for range 2 {
			d := <-c.done
			assert.Equal(t, cancellation.Disconnect, d.Origin)
			assert.False(t, d.Answered)
		}
		assert.Empty(t, c.rest())
	})
}

func TestCase37_EndOfInputWithAHandlerThatIgnoresIt(t *testing.T) {
	life(t, nil, func(t *testing.T, c *served) {
		c.call(1, "ignore", "")
		synctest.Wait()
		begun := time.Now()
		require.NoError(t, c.w.Close())
		err := c.result()
		assert.ErrorIs(t, err, server.ErrHandlersLeft)
		assert.ErrorContains(t, err, "ignore")
		notLater(t, begun, deadline)
		assert.Greater(t, time.Since(begun), deadline/2)
		assert.Empty(t, c.rest())
	})
}

func TestLastLineNeedsNoEnd(t *testing.T) {
	life(t, nil, func(t *testing.T, c *served) {
		c.write(strings.ReplaceAll(`{"jsonrpc":"2.0","id":1,"method":"nonsense"}`, "\n", ""))
		require.NoError(t, c.w.Close())
		assert.Equal(t, -32601, c.answer(1).Error.Code)
		require.NoError(t, c.result())
	})
}

func TestWhatWasAnsweredIsWrittenAfterTheEndOfInput(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(nil)
		c, unread := serveUnread(t, f, nil)
		c.line(initializeLine, "2025-11-25")
		for i := range 10 {
			c.call(i, "size", `"n":100000`)
		}
		for range 10 {
			<-f.done
		}
		require.NoError(t, c.w.Close())
		time.Sleep(deadline - time.Second) // slow, but in time
		go c.read(unread)
		assert.Len(t, c.rest(), 11)
		require.NoError(t, c.result())
	})
}

func TestCase39_EndOfContextAfterGrace(t *testing.T) {
	life(t, nil, func(t *testing.T, c *served) {
		c.call(1, "wait", "")
		c.call(2, "value", "")
		synctest.Wait()
		begun := time.Now()
		c.stop()
		synctest.Wait()
		assert.EqualValues(t, 2, c.running.Load(), "they have grace")
		c.call(3, "echo", `"text":"x"`)
		m := c.answer(3)
		require.NotNil(t, m.Error, "no more requests are taken")
		assert.Equal(t, -32603, m.Error.Code)
		answers := map[string]message{}
		for range 2 {
			m := c.next()
			answers[string(m.ID)] = m
		}
		took(t, begun, grace)
		assert.True(t, answers["1"].Result.IsError)
		assert.Contains(t, answers["1"].text(), "shutdown")
		assert.Equal(t, "done", answers["2"].text())
		require.NoError(t, c.result())
		took(t, begun, grace)
		assert.Empty(t, c.rest())
	})
}

func TestCase39_EndOfContextWithAHandlerThatIgnoresIt(t *testing.T) {
	life(t, nil, func(t *testing.T, c *served) {
		c.call(1, "ignore", "")
		synctest.Wait()
		begun := time.Now()
		c.stop()
		m := c.answer(1)
		assert.True(t, m.Result.IsError, "the answer is owed")
		assert.ErrorIs(t, c.result(), server.ErrHandlersLeft)
		notLater(t, begun, grace+deadline)
		assert.Empty(t, c.rest())
	})
}

func TestHandlersThatEndInTheirGraceAreAnswered(t *testing.T) {
	life(t, nil, func(t *testing.T, c *served) {
		c.call(1, "ignore", "")
		synctest.Wait()
		begun := time.Now()
		c.stop()
		time.Sleep(grace / 2)
		c.release <- struct{}{}
		assert.Equal(t, "late", c.answer(1).text())
		require.NoError(t, c.result())
		took(t, begun, grace/2)
	})
}

func TestCancelsAreTakenWhileItEnds(t *testing.T) {
	life(t, nil, func(t *testing.T, c *served) {
		c.call(1, "wait", "")
		synctest.Wait()
		begun := time.Now()
		c.stop()
		synctest.Wait()
		c.cancel(1)
		require.NoError(t, c.result())
		took(t, begun, 0)
		assert.Equal(t, cancellation.Peer, (<-c.done).Origin)
		assert.Empty(t, c.rest())
	})
}

func TestEndOfInputWhileItEndsCancelsAtOnce(t *testing.T) {
	life(t, nil, func(t *testing.T, c *served) {
		c.call(1, "wait", "")
		c.call(2, "ignore", "")
		synctest.Wait()
		c.stop()
		time.Sleep(grace / 2)
		begun := time.Now()
		require.NoError(t, c.w.Close())
		assert.Equal(t, cancellation.Disconnect, (<-c.done).Origin)
		took(t, begun, 0)
		assert.ErrorIs(t, c.result(), server.ErrHandlersLeft)
		notLater(t, begun, deadline)
		assert.Empty(t, c.rest())
	})
}

func TestSignalsDrainAndASecondOneEndsAtOnce(t *testing.T) {
	life(t, nil, func(t *testing.T, c *served) {
		c.call(1, "ignore", "")
		synctest.Wait()
		begun := time.Now()
		c.signals <- os.Interrupt
		time.Sleep(grace / 2)
		assert.Empty(t, c.returned)
		c.signals <- syscall.SIGTERM
		assert.ErrorIs(t, c.result(), server.ErrHandlersLeft)
		took(t, begun, grace/2)
		all := c.rest()
		require.Len(t, all, 1)
		assert.True(t, all[0].Result.IsError, "the answer is owed all the same")
		assert.Contains(t, all[0].text(), "interrupt")
	})
}

func TestFirstSignalAfterTheEndOfInputIsNoSecond(t *testing.T) {
	life(t, nil, func(t *testing.T, c *served) {
		c.call(1, "ignore", "")
		synctest.Wait()
		require.NoError(t, c.w.Close())
		c.signals <- syscall.SIGTERM
		time.Sleep(deadline / 3)
		assert.Empty(t, c.returned, "handlers still clean up")
		c.release <- struct{}{}
		require.NoError(t, c.result())
	})
}

func TestNegativeTimesWaitForNothing(t *testing.T) {
	life(t, &stdio.Options{Grace: -1, Deadline: -1}, func(t *testing.T, c *served) {
		c.call(1, "ignore", "")
		synctest.Wait()
		begun := time.Now()
		c.stop()
		assert.ErrorIs(t, c.result(), server.ErrHandlersLeft)
		notLater(t, begun, 200*time.Millisecond) // what was interrupted may take that long
	})
}

// failing is a stream whose next Read or Write fails with what it is told.
type failing struct {
	io.Reader
	io.Writer
	read, write chan error
}

func (f *failing) Read([]byte) (int, error) { return 0, <-f.read }
func (f *failing) Write([]byte) (int, error) {
	return 0, <-f.write
}
func (f *failing) Close() error { f.read <- io.EOF; return nil }

func TestFailuresOfTheStream(t *testing.T) {
	broken := errors.New("broken")
	for _, x := range []struct {
		name        string
		read, write error
		want        error // nil: no error
	}{
		{"end of input", io.EOF, nil, nil},
		{"reset", &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, nil, nil},
		{"closed by the program", net.ErrClosed, nil, nil},
		{"input fails", broken, nil, broken},
		{"output fails", nil, syscall.EPIPE, syscall.EPIPE},
	} {
		t.Run(x.name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				f := newFixture(nil)
				defer close(f.release)
				in, end := io.Pipe()
				stream := &failing{read: make(chan error, 2), write: make(chan error, 1)}
				returned := make(chan error, 1)
				go func() {
					r := io.MultiReader(in, stream)
					returned <- stdio.ServeStream(t.Context(), f.Server, struct {
						io.Reader
						io.Closer
					}{r, stream}, stream, nil)
				}()
				c := newClient(t, end)
				c.line(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait","arguments":{},` +
					`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`)
				synctest.Wait()
				require.EqualValues(t, 1, f.running.Load())
				if x.write != nil {
					c.line(`what is this`)
					stream.write <- x.write
				}
				end.Close()
				if x.read != nil {
					stream.read <- x.read
				}
				err := <-returned
				if x.want == nil {
					assert.NoError(t, err)
				} else {
					assert.ErrorIs(t, err, x.want)
				}
				assert.Equal(t, cancellation.Disconnect, (<-f.done).Origin)
			})
		})
	}
}

func TestOutputThatFailsAfterTheEndOfInputIsNoError(t *testing.T) {
	life(t, nil, func(t *testing.T, c *served) {
		c.call(1, "ignore", "")
		synctest.Wait()
		require.NoError(t, c.w.Close())
		synctest.Wait()
		c.release <- struct{}{}
		require.NoError(t, c.result())
	})
}

func TestConnectionsAreTheCallersAfterwards(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(nil)
		ours, theirs := net.Pipe()
		ctx, stop := context.WithCancel(t.Context())
		returned := make(chan error, 1)
		go func() { returned <- stdio.ServeStream(ctx, f.Server, ours, ours, nil) }()
		c := newClient(t, theirs)
		go c.read(theirs)
		c.initialize()
		c.echo(1)
		stop()
		require.NoError(t, <-returned)

		go io.WriteString(ours, "bye\n") // neither closed nor past a deadline
		line, err := c.take()
		require.NoError(t, err)
		assert.Equal(t, "bye\n", line)
		go io.WriteString(theirs, "ok")
		b := make([]byte, 2)
		_, err = io.ReadFull(ours, b)
		require.NoError(t, err)
		ours.Close()
	})
}

func TestManyStreamsOneServer(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFixture(nil)
		clients := make([]*served, 10)
		for i := range clients {
			clients[i] = serve(t, &fixture{Server: f.Server, release: make(chan struct{})}, nil)
			clients[i].initialize()
			clients[i].call(1, "wait", "")
		}
		synctest.Wait()
		clients[0].cancel(1)
		synctest.Wait()
		assert.EqualValues(t, 9, f.running.Load(), "ids are the stream's own")
		for _, c := range clients {
			c.quiet()
			c.end()
		}
		assert.Zero(t, f.Stats().Sessions)
	})
}
