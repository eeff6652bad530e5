package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"mime"
	"net"
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// A relay passes HTTP/1.1 connections on to a server, byte by byte, with a tap
// on the messages in them. When a client closes its connection, the relay tells
// the server so and goes on reading: it hears what the server still writes to a
// client that has gone, which no client can.
type relay struct {
	listener net.Listener
	server   string // address
	tap      *tap
	running  sync.WaitGroup
}

func newRelay(ctx context.Context, server string, tap *tap) (*relay, error) {
	listener, err := listen(ctx, "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &relay{listener: listener, server: server, tap: tap}
	tap.pulse = newPulse()
	r.running.Go(r.accept)
	return r, nil
}

func (r *relay) address() string { return r.listener.Addr().String() }

// close takes no more connections, and returns when the server has closed
// those that were taken.
func (r *relay) close() {
	_ = r.listener.Close()
	r.running.Wait()
	r.tap.pulse.close()
}

func (r *relay) accept() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.running.Go(func() {
			defer client.Close()
			server, err := net.Dial("tcp", r.server)
			if err != nil {
				return // the client sees a closed connection, as it would without the relay
			}
			defer server.Close()
			x := &exchange{tap: r.tap}
			up := make(chan struct{})
			go func() {
				defer close(up)
				x.up(server, client)
				if half, ok := server.(*net.TCPConn); ok {
					_ = half.CloseWrite()
				}
			}()
			x.down(client, server)
			_ = client.Close()
			<-up
		})
	}
}

// An exchange is what happens on one connection: a request, its response, the next.
type exchange struct {
	tap *tap

	mu   sync.Mutex
	open *line // the request whose response is not complete; nil between two
	gone bool  // the client closed the connection before the response was complete
}

// up carries requests to the server until the client has closed the connection.
func (x *exchange) up(server io.Writer, client io.Reader) {
	c := &carrier{from: client, to: server}
	in := bufio.NewReader(c)
	for {
		message, err := readRequest(in)
		if err != nil {
			break
		}
		x.begin(message)
	}
	c.passOn()
	x.clientClosed()
}

func readRequest(in *bufio.Reader) (jsonrpc.Message, error) {
	request, err := http.ReadRequest(in)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	message, _ := jsonrpc.DecodeMessage(body) // nil if it is none
	return message, nil
}

// down carries responses to the client, and goes on reading them when there is
// no client any more, until the server has closed the connection.
func (x *exchange) down(client io.Writer, server io.Reader) {
	c := &carrier{from: server, to: client}
	in := bufio.NewReader(c)
	for {
		response, err := http.ReadResponse(in, nil)
		if err != nil {
			break
		}
		if err := x.read(response); err != nil {
			break
		}
		x.complete(response.StatusCode)
	}
	x.complete(0)
	c.passOn()
}

// read notes the messages of one response.
func (x *exchange) read(response *http.Response) error {
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if kind != "text/event-stream" {
		body, err := io.ReadAll(response.Body)
		x.note(body)
		return err
	}
	var data []byte // of the event that is being read
	lines := bufio.NewReader(response.Body)
	for {
		text, err := lines.ReadBytes('\n')
		text = bytes.TrimRight(text, "\r\n")
		if value, ok := bytes.CutPrefix(text, []byte("data:")); ok {
			data = append(append(data, value...), '\n')
		} else if len(text) == 0 {
			x.note(data)
			data = nil
		}
		switch err {
		case nil:
		case io.EOF:
			return nil
		default:
			return err
		}
	}
}

// note notes a message from the server.
func (x *exchange) note(text []byte) {
	if message, err := jsonrpc.DecodeMessage(text); err == nil {
		x.tap.note(message, false)
	}
}

func (x *exchange) begin(message jsonrpc.Message) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.open = &line{}
	if message != nil {
		*x.open = x.tap.note(message, true)
	}
}

// clientClosed notes that the client does not wait for the response it asked for.
func (x *exchange) clientClosed() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.open != nil && x.open.id != "" && x.open.method != methodCancelled {
		x.gone = true
		x.tap.add(line{sent: true, method: closed, id: x.open.id})
	}
}

// complete ends the open response; status 0 says that the server closed the
// connection.
func (x *exchange) complete(status int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.open == nil:
	case x.gone:
		x.tap.add(line{method: closed, id: x.open.id})
	case x.open.method == methodCancelled:
		x.tap.add(line{method: methodCancelled, id: x.open.id, status: status})
	}
	x.open = nil
}

// A carrier reads for somebody who listens in, and passes on what was read as
// soon as more is wanted: by then every message in it is noted, and whatever its
// receiver does about it comes after.
type carrier struct {
	from io.Reader
	to   io.Writer
	held []byte
	deaf bool // the receiver has gone; the rest is only listened to
}

func (c *carrier) Read(p []byte) (int, error) {
	c.passOn()
	n, err := c.from.Read(p)
	c.held = append(c.held, p[:n]...)
	return n, err
}

func (c *carrier) passOn() {
	if len(c.held) > 0 && !c.deaf {
		_, err := c.to.Write(c.held)
		c.deaf = err != nil
	}
	c.held = c.held[:0]
}
