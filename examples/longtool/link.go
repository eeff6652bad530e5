package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"

	"github.com/heedmcp/heed/cancellation"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A link is a client's connection to the server, whatever the transport: the
// official Go SDK's client, unchanged, with a tap on its wire.
type link struct {
	session  *mcp.ClientSession
	tap      *tap
	progress chan progress
	logged   func() string // what the server printed for people
	end      func() error  // ends what the session's end leaves; may be nil
}

// A progress is one report of a running call.
type progress struct {
	token       string
	done, total float64
	phase       string
}

// A reach is a way to reach the server.
type reach struct {
	name   string // for people
	serve  string // how the server is started
	origin cancellation.Origin
	// how says what arrives at the server when Stop is pressed.
	how  string
	open func(ctx context.Context, where string) (*link, error)
}

var (
	overStdio = reach{"stdio", "serve -stdio", cancellation.Peer, "the notification", openStdio}
	overHTTP  = reach{"HTTP", "serve -http 127.0.0.1:0", cancellation.Disconnect, "the closed response", openHTTP}
)

// openStdio starts this program as a server on the database and connects to
// its stdin and stdout.
func openStdio(ctx context.Context, where string) (*link, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	command := exec.Command(self, "serve", "-stdio", "-db", where)
	var log serverLog
	command.Stderr = &log
	return connectStdio(ctx, command, log.String)
}

func connectStdio(ctx context.Context, command *exec.Cmd, logged func() string) (*link, error) {
	tap := newTap(methodCancelled)
	return connect(ctx, &tapped{&mcp.CommandTransport{Command: command}, tap}, tap, logged)
}

// openHTTP starts this program as a server on the database and connects to it
// through a relay that listens in.
func openHTTP(ctx context.Context, where string) (*link, error) {
	p, endpoint, err := startServer(ctx, where)
	if err != nil {
		return nil, err
	}
	tap := newTap(closed)
	relay, err := newRelay(ctx, endpoint.Host, tap)
	if err != nil {
		return nil, errors.Join(err, p.stop())
	}
	endpoint.Host = relay.address()
	connections := &http.Transport{}
	end := func() error {
		connections.CloseIdleConnections()
		err := p.stop()
		relay.close()
		return err
	}
	l, err := connect(ctx, &mcp.StreamableClientTransport{
		Endpoint: endpoint.String(), HTTPClient: &http.Client{Transport: connections},
	}, tap, p.log.String)
	if err != nil {
		return nil, errors.Join(err, end())
	}
	l.end = end
	return l, nil
}

func connect(ctx context.Context, transport mcp.Transport, tap *tap, logged func() string) (*link, error) {
	l := &link{tap: tap, progress: make(chan progress, 64), logged: logged}
	client := mcp.NewClient(&mcp.Implementation{Name: "longtool-story", Version: "1.0.0"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, n *mcp.ProgressNotificationClientRequest) {
			token, _ := n.Params.ProgressToken.(string)
			select {
			case l.progress <- progress{token, n.Params.Progress, n.Params.Total, n.Params.Message}:
			default: // nobody watches; the next report says more
			}
		},
	})
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	session, err := client.Connect(ctx, transport, nil)
	if err != nil {
		return nil, l.broken(fmt.Errorf("cannot connect to the server: %w", err))
	}
	l.session = session
	return l, nil
}

func toolCall(name string, arguments map[string]any) *mcp.CallToolParams {
	return &mcp.CallToolParams{Name: name, Arguments: arguments}
}

// call calls a tool and decodes its result.
func (l *link) call(ctx context.Context, params *mcp.CallToolParams, into any) error {
	result, err := l.session.CallTool(ctx, params)
	if err != nil {
		return err
	}
	if result.IsError {
		if len(result.Content) > 0 {
			if text, ok := result.Content[0].(*mcp.TextContent); ok {
				return fmt.Errorf("%s failed: %s", params.Name, text.Text)
			}
		}
		return fmt.Errorf("%s failed", params.Name)
	}
	structured, err := json.Marshal(result.StructuredContent)
	if err != nil {
		return err
	}
	return json.Unmarshal(structured, into)
}

// broken adds what the server printed to an error that it may explain.
func (l *link) broken(err error) error {
	if logged := strings.TrimSpace(l.logged()); logged != "" {
		return errors.Join(err, errors.New("the server said: "+logged))
	}
	return err
}

func (l *link) close() error {
	err := l.session.Close()
	if l.end != nil {
		err = errors.Join(err, l.end())
	}
	return err
}
