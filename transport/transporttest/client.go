package transporttest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/heedmcp/heed/transport/transporttest/wire"
)

// Revisions that rules speak.
const (
	newestHandshake  = "2025-11-25"
	newestStateless  = "2026-07-28"
	revisionOfBatch  = "2025-03-26"
	everyCapability  = `{"sampling":{},"elicitation":{"form":{},"url":{}},"roots":{}}`
	acceptBoth       = "application/json, text/event-stream"
	acceptJSON       = "application/json"
	acceptStream     = "text/event-stream"
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	metaClient       = "io.modelcontextprotocol/clientInfo"
	metaLevel        = "io.modelcontextprotocol/logLevel"
)

// client is one client of the server: a stream, a session, or requests that stand for
// themselves. Fields are set while it is opened.
type client struct {
	p            *probe
	life         Life
	stream       *wire.Stream
	http         *wire.HTTP
	other        http.Header // of another principal; nil: there is none
	version      string
	session      string // the Mcp-Session-Id
	listening    string // the stream by GET; "": there is none
	capabilities string // as JSON
	welcome      wire.Message

	lastID int64 // of a request
}

// open connects a client and shakes hands where that is done.
func (p *probe) open() *client { return p.openWith(p.version(), everyCapability) }

func (p *probe) version() string {
	if p.setting.handshake() {
		return newestHandshake
	}
	return newestStateless
}

func (p *probe) openWith(version, capabilities string) *client {
	c := p.connect(version, capabilities)
	c.shakeHands()
	return c
}

// connect is open without the handshake.
func (p *probe) connect(version, capabilities string) *client {
	if p.setting.stream() {
		return p.dial(version, capabilities)
	}
	open := p.target.Open
	if p.target.Restart != nil && p.verdict.Rule.ownServer() {
		open = p.target.Restart
	}
	if open == nil {
		p.errorf("%v", errNoTransport)
	}
	endpoint, err := open(p.ctx)
	if err != nil {
		p.errorf("the server cannot be reached: %v", err)
	}
	if endpoint.Close != nil {
		p.onClean(endpoint.Close)
	}
	return p.another(endpoint, version, capabilities)
}

func (p *probe) dial(version, capabilities string) *client {
	if p.target.Dial == nil {
		p.errorf("%v", errNoTransport)
	}
	connection, err := p.target.Dial(p.ctx)
	if err != nil {
		p.errorf("the server cannot be reached: %v", err)
	}
	c := &client{p: p, life: connection.Life, version: version, capabilities: capabilities}
	c.stream = wire.NewStream(p.log, connection.R, connection.W)
	closed := make(chan struct{})
	p.onClean(func() {
		close(closed)
		if connection.Close != nil {
			connection.Close()
		}
	})
	// What blocks, such as a write to a server that does not read, ends with the time.
	go func() {
		select {
		case <-closed:
		case <-p.ctx.Done():
			_ = connection.W.Close()
		}
	}()
	return c
}

// another is one more client of an endpoint.
func (p *probe) another(endpoint *Endpoint, version, capabilities string) *client {
	transport := endpoint.Transport
	if transport == nil {
		own := wire.NewTransport()
		p.onClean(own.CloseIdleConnections)
		transport = own
	}
	c := &client{p: p, life: endpoint.Life, version: version, capabilities: capabilities}
	c.http = &wire.HTTP{Log: p.log, URL: endpoint.URL, Transport: transport, Header: endpoint.Header}
	c.other = endpoint.Other
	return c
}

// sibling is a client of its own of the same HTTP endpoint.
func (c *client) sibling() *client {
	d := c.twin()
	d.shakeHands()
	return d
}

// twin is connected as c is, has no session, and gives its requests other ids.
func (c *client) twin() *client {
	return &client{
		p: c.p, life: c.life, stream: c.stream, http: c.http, other: c.other,
		version: c.version, capabilities: c.capabilities, lastID: c.lastID + 1000,
	}
}

// initializeParams are what initialize says.
func (c *client) initializeParams() string {
	return fmt.Sprintf(`{"protocolVersion":%q,"capabilities":%s,"clientInfo":%s}`, c.version, c.capabilities, clientInfo)
}

const clientInfo = `{"name":"heedcheck","version":"1.0.0"}`

// shakeHands opens the session of a handshake era.
func (c *client) shakeHands() {
	if !c.p.setting.handshake() {
		if c.stream != nil {
			c.fenceWithin(c.p.limits.Start, "first of all") // a server that starts is not what is judged
		}
		return
	}
	r := c.send(option{id: `"initialize"`, method: "initialize", raw: c.initializeParams(), control: true})
	e, ok := r.answered(c.p.limits.Start)
	if !ok {
		c.p.errorf("initialize %s", r.unanswered(c.p.limits.Start))
	}
	if e.Message.Error != nil {
		c.p.errorf("initialize is answered with an error: %.300s", e.Message.Raw)
	}
	c.greeted(r, e.Message)
}

// greeted takes in what initialize was answered with, and says that it has.
func (c *client) greeted(r *request, welcome wire.Message) {
	c.welcome = welcome
	var result struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	if err := json.Unmarshal(welcome.Result, &result); err != nil {
		c.p.errorf("initialize is answered with a result that is none: %v", err)
	}
	c.version = result.ProtocolVersion
	if r.x != nil {
		c.session = r.x.Header("Mcp-Session-Id")
		c.p.onClean(c.endSession)
	}
	c.notify("notifications/initialized", "", true)
}

// endSession tidies up behind a client of a server that goes on.
func (c *client) endSession() {
	if c.session == "" {
		return
	}
	x := c.http.DoControl(http.MethodDelete, c.headers("", ""), nil)
	if !c.p.closedWithin(c.p.limits.Prompt, x.Done()) {
		x.Drop()
	}
}

// headers are those of a request for a method, which may be about something by a
// name.
func (c *client) headers(method, name string) http.Header {
	h := http.Header{}
	if c.session != "" {
		h["Mcp-Session-Id"] = []string{c.session}
	}
	if method != "initialize" {
		h["MCP-Protocol-Version"] = []string{c.version}
	}
	if !c.p.setting.handshake() && method != "" {
		h["Mcp-Method"] = []string{method}
		if name != "" {
			h["Mcp-Name"] = []string{name}
		}
	}
	return h
}

// post sends a body that is one message, or a batch.
func (c *client) post(body []byte, method, name string, control bool) *wire.Exchange {
	h := c.headers(method, name)
	h["Content-Type"] = []string{"application/json"}
	h["Accept"] = []string{acceptBoth}
	if c.p.setting.json() {
		h["Accept"] = []string{acceptJSON}
	}
	if control {
		return c.http.DoControl(http.MethodPost, h, body)
	}
	return c.http.Do(http.MethodPost, h, body)
}

// notify sends a notification, with params as JSON text, "" for none. Over HTTP it waits until
// the POST is answered, and returns the exchange.
func (c *client) notify(method, params string, control bool) *wire.Exchange {
	text := fmt.Sprintf(`{"jsonrpc":"2.0","method":%q}`, method)
	if params != "" {
		text = fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params)
	}
	return c.deliver([]byte(text), method, control)
}

// deliver sends a message to which no answer is expected.
func (c *client) deliver(text []byte, method string, control bool) *wire.Exchange {
	if c.stream != nil {
		c.write(control, text)
		return nil
	}
	x := c.post(text, method, "", control)
	if !c.p.closedWithin(c.p.limits.Prompt, x.Done()) {
		x.Drop()
		c.p.failf("the POST of %s is not answered within %s", method, c.p.limits.Prompt)
	}
	return x
}

// write writes lines to the stream, all at once.
func (c *client) write(control bool, lines ...[]byte) {
	send := c.stream.Send
	if control {
		send = c.stream.SendControl
	}
	if err := send(lines...); err != nil {
		c.p.errorf("the server does not take what is sent to it: %v%s", err, c.lastWords())
	}
}

// cancelText is a cancel for an id, which is JSON text.
func cancelText(id, reason string) []byte {
	text, _ := json.Marshal(reason) // text always can be
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s,"reason":%s}}`, id, text)
}

// cancel sends a cancel for an id.
func (c *client) cancel(id, reason string) *wire.Exchange {
	return c.deliver(cancelText(id, reason), "notifications/cancelled", false)
}

// meta are the members that each request of the stateless era has.
func (c *client) meta() map[string]any {
	if c.p.setting.handshake() {
		return map[string]any{}
	}
	return map[string]any{
		metaVersion: c.version, metaCapabilities: json.RawMessage(c.capabilities), metaClient: json.RawMessage(clientInfo),
	}
}

// withMeta adds _meta to params.
func (c *client) withMeta(params map[string]any, more map[string]any) string {
	all := c.meta()
	maps.Copy(all, more)
	whole := map[string]any{}
	maps.Copy(whole, params)
	if len(all) > 0 {
		whole["_meta"] = all
	}
	text, err := json.Marshal(whole)
	if err != nil {
		c.p.errorf("params: %v", err)
	}
	return string(text)
}

// patience is how long to wait for the end of a server: a little when its output has
// ended, else not at all.
func (c *client) patience() time.Duration {
	if c.stream == nil {
		return 0
	}
	select {
	case <-c.stream.Ended():
		return c.p.limits.Prompt
	default:
		return 0
	}
}

// lastWords is what a server has to say that is gone, or nothing.
func (c *client) lastWords() string {
	var words string
	if c.life.Ended != nil && c.p.closes(c.patience(), c.life.Ended) {
		words = "; the server has ended"
		if c.life.Result != nil {
			_, text := c.life.Result()
			words += ": " + text
		}
	}
	if c.life.Words != nil && words != "" {
		if text := strings.Join(strings.Fields(c.life.Words()), " "); text != "" {
			words += fmt.Sprintf("; its last words: %.300q", text[max(0, len(text)-300):])
		}
	}
	return words
}
