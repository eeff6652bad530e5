package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A link is a client's connection to the server, whatever the transport: the
// official Go SDK's client, unchanged, with a tap on its wire.
type link struct {
	transport string // for people
	session   *mcp.ClientSession
	tap       *tap
	progress  chan progress
	logged    func() string // what the server printed for people
}

// A progress is one report of a running call.
type progress struct {
	token       string
	done, total float64
	phase       string
}

// overStdio starts this program as a server on the database and connects to
// its stdin and stdout.
func overStdio(ctx context.Context, where string) (*link, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	command := exec.Command(self, "serve", "-stdio", "-db", where)
	var log lockedBuffer
	command.Stderr = &log
	return connect(ctx, "stdio", &mcp.CommandTransport{Command: command}, log.String)
}

func connect(ctx context.Context, name string, transport mcp.Transport, logged func() string) (*link, error) {
	l := &link{transport: name, tap: newTap(transport), progress: make(chan progress, 64), logged: logged}
	client := mcp.NewClient(&mcp.Implementation{Name: "longtool-story", Version: "1.0.0"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, n *mcp.ProgressNotificationClientRequest) {
			token, _ := n.Params.ProgressToken.(string)
			select {
			case l.progress <- progress{token, n.Params.Progress, n.Params.Total, n.Params.Message}:
			default: // nobody watches; the next report says more
			}
		},
	})
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	session, err := client.Connect(ctx, l.tap, nil)
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

func (l *link) close() error { return l.session.Close() }

// A lockedBuffer takes what a subprocess prints.
type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}
