package transporttest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"syscall"
	"time"

	"github.com/heedmcp/heed/transport/transporttest/wire"
)

// Target is a server under test, and how to reach it.
type Target struct {
	// Dial opens a stream to the server, in a state in which nothing was sent on it. Each
	// rule dials for itself. nil: there are no streams.
	Dial func(context.Context) (*Connection, error)

	// Open makes an HTTP endpoint ready. Each rule opens one for itself, which may
	// well be the same for all. nil: there is no HTTP.
	Open func(context.Context) (*Endpoint, error)

	// Restart makes an HTTP endpoint ready that a rule has for itself. nil: Open is
	// used, and what it returns must stand that.
	Restart func(context.Context) (*Endpoint, error)

	// Calls are tools to call in place of those of package fixture, by what they are
	// needed for: NeedSlow, NeedSampling and so on. Where there are neither, tools are
	// looked for by their names and schemas.
	Calls map[Need]Call

	// Limits bound the time that things may take. Zeros: defaults.
	Limits Limits
}

// Call is a tool and what to call it with.
type Call struct {
	Tool      string
	Arguments json.RawMessage // an object; nil: what its schema demands, as far as that can be guessed
}

// Limits bound the time that things may take.
type Limits struct {
	Start  time.Duration // for the first answer of a server that may still be starting. 0: fifteen seconds
	Prompt time.Duration // for what should come at once. 0: five seconds
	Quiet  time.Duration // how long to listen for what should not come. 0: 300 ms
	Exit   time.Duration // for the end of a service that is asked to end, over HTTP three times that. 0: six seconds
	Slow   time.Duration // how long a slow tool may take. 0: ten seconds
	Rule   time.Duration // for a rule as a whole. 0: one minute
}

func (l Limits) withDefaults() Limits {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&l.Start, 15 * time.Second}, {&l.Prompt, 5 * time.Second}, {&l.Quiet, 300 * time.Millisecond}, {&l.Exit, 6 * time.Second},
		{&l.Slow, 10 * time.Second}, {&l.Rule, time.Minute},
	} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	return l
}

// Life is how a service ends. All fields may be nil.
type Life struct {
	// Ended is closed when the service has ended. nil: that cannot be seen.
	Ended <-chan struct{}
	// Result says how it has ended, once Ended is closed: whether that was clean, and in words.
	Result func() (clean bool, text string)
	// Shutdown asks the service to end, as SIGTERM does. nil: that cannot be done.
	Shutdown func() error
	// Close ends it whatever that takes. It is called once, last of all.
	Close func()
	// Words is what the service has to say beyond what it answers: its standard error.
	Words func() string
}

// Connection is a stream of lines to a server.
type Connection struct {
	Life
	R io.Reader
	W io.WriteCloser
}

// Endpoint is where a server is served over HTTP.
type Endpoint struct {
	Life
	URL       string
	Transport http.RoundTripper // nil: one for HTTP/1.1 over TCP
	Header    http.Header       // of all requests, such as Authorization
	Other     http.Header       // the same of somebody else; nil: nobody else can be had
}

// Command returns a Target.Dial that starts a process for each connection and kills its
// process group at the end. env is added to the environment.
func Command(command, env []string) func(context.Context) (*Connection, error) {
	return func(context.Context) (*Connection, error) {
		p, err := wire.Start(command, env)
		if err != nil {
			return nil, err
		}
		return &Connection{R: p.Stdout, W: p.Stdin, Life: ProcessLife(p)}, nil
	}
}

// ProcessLife is the life of a service that is a process.
func ProcessLife(p *wire.Process) Life {
	return Life{
		Ended: p.Exited(),
		Result: func() (bool, string) {
			status, text := p.Status()
			return status == 0, text
		},
		Shutdown: func() error { return p.Signal(syscall.SIGTERM) },
		Close:    p.Kill,
		Words:    p.Stderr,
	}
}

var errNoTransport = errors.New("the target has no such transport")
