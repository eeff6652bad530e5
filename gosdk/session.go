package gosdk

import (
	"context"
	"errors"
	"io"
	"reflect"
	"sync"

	"github.com/heedmcp/heed/internal/jsonrpc"
	"github.com/heedmcp/heed/servercontext"
	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Official code sends through a *mcp.ServerSession, which only the official
// runtime can make. So there is one idle server of that runtime in the process: it
// serves nobody, its sessions are connected to nothing, and a sending middleware takes
// every message of theirs before it would be written (route.go).

// runtime is that server. It never changes.
type runtime struct {
	server  *mcp.Server
	receive mcp.MethodHandler // its own handler of requests; see pong
}

var official = sync.OnceValue(func() *runtime {
	r := &runtime{server: mcp.NewServer(&mcp.Implementation{Name: "heed", Version: "1"}, nil)}
	r.server.AddSendingMiddleware(func(mcp.MethodHandler) mcp.MethodHandler { return r.route })
	r.server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		r.receive = next
		return next
	})
	return r
})

// prototype is the session of one client. Requests get copies of it.
type prototype struct {
	session *mcp.ServerSession // connected to nothing; never used but to be copied
	params  *mcp.InitializeParams
}

// virtualVersion is what InitializeParams says in the stateless era: the newest
// revision in which the official SDK lets a session call the client.
const virtualVersion = "2025-11-25"

// newPrototype makes a session with that id whose client has said params; nil:
// nothing yet.
func newPrototype(id string, params *mcp.InitializeParams) (*prototype, error) {
	state := &mcp.ServerSessionState{
		InitializeParams: params,
		LogLevel:         servercontext.LevelDebug, // all levels pass; the request decides
	}
	if params != nil {
		state.InitializedParams = &mcp.InitializedParams{}
		state.NegotiatedProtocolVersion = params.ProtocolVersion
	}
	ss, err := official().server.Connect(context.Background(), unconnected(id), &mcp.ServerSessionOptions{State: state})
	if err != nil {
		return nil, err
	}
	if err := ss.Wait(); err != nil { // its reading goroutine has ended
		return nil, err
	}
	return &prototype{session: ss, params: params}, nil
}

// copy returns a session of its own. The prototype's lock is free and its
// connection closed, so that its fields do not change while they are copied; they are
// copied by reflection since a plain copy of a lock looks like a mistake.
func (p *prototype) copy() *mcp.ServerSession {
	c := reflect.New(reflect.TypeFor[mcp.ServerSession]())
	c.Elem().Set(reflect.ValueOf(p.session).Elem())
	return c.Interface().(*mcp.ServerSession)
}

// unconnected is the transport and the connection of a session that is
// connected to nothing. Its value is the session's id.
type unconnected string

func (u unconnected) Connect(context.Context) (mcp.Connection, error) { return u, nil }
func (u unconnected) Read(context.Context) (sdkrpc.Message, error)    { return nil, io.EOF }
func (u unconnected) Write(context.Context, sdkrpc.Message) error     { return errUnrouted }
func (u unconnected) Close() error                                    { return nil }
func (u unconnected) SessionID() string                               { return string(u) }

var errUnrouted = errors.New("gosdk: a virtual session has no connection")

// prototypeKey is where a handshake-era session keeps its prototype.
type prototypeKey struct{}

// maxPrototypes bounds the prototypes of stateless-era clients that are kept, and
// maxPrototypeKey how long what such a client says about itself may be: the key
// holds it, and so does the prototype.
const (
	maxPrototypes   = 256
	maxPrototypeKey = 4 << 10
)

// prototypes finds the prototype for a request, or makes it.
var prototypes struct {
	mu        sync.Mutex            // guards the field below, and the making of prototypes
	stateless map[string]*prototype // by session id and the client's description as sent
}

func prototypeFor(req *servercontext.Request) (*prototype, error) {
	if req.Method() == "initialize" {
		return newPrototype(req.Session().ID(), nil)
	}
	params := &mcp.InitializeParams{
		Capabilities:    req.ClientCapabilities(),
		ClientInfo:      req.ClientInfo(),
		ProtocolVersion: req.ProtocolVersion(),
	}
	if req.Stateless() {
		params.ProtocolVersion = virtualVersion
		prototypes.mu.Lock()
		defer prototypes.mu.Unlock()
		return statelessPrototypeLocked(req, params)
	}
	if p := keptPrototype(req, params); p != nil {
		return p, nil
	}
	prototypes.mu.Lock()
	defer prototypes.mu.Unlock()
	if p := keptPrototype(req, params); p != nil {
		return p, nil
	}
	p, err := newPrototype(req.Session().ID(), params)
	if err == nil {
		req.Session().Store(prototypeKey{}, p)
	}
	return p, err
}

// keptPrototype returns the prototype of a handshake-era session, nil if it has none for what
// its client has said.
func keptPrototype(req *servercontext.Request, params *mcp.InitializeParams) *prototype {
	v, _ := req.Session().Load(prototypeKey{})
	// The description is decoded once per handshake.
	if p, ok := v.(*prototype); ok && p.params.Capabilities == params.Capabilities {
		return p
	}
	return nil
}

func statelessPrototypeLocked(req *servercontext.Request, params *mcp.InitializeParams) (*prototype, error) {
	meta, _ := jsonrpc.Get(req.Params(), "_meta")
	info, _ := jsonrpc.Get(meta, mcp.MetaKeyClientInfo)
	capabilities, _ := jsonrpc.Get(meta, mcp.MetaKeyClientCapabilities)
	if len(info)+len(capabilities) > maxPrototypeKey {
		return newPrototype(req.Session().ID(), params) // for this request alone
	}
	key := req.Session().ID() + "\x00" + string(info) + "\x00" + string(capabilities)
	if p := prototypes.stateless[key]; p != nil {
		return p, nil
	}
	p, err := newPrototype(req.Session().ID(), params)
	if err != nil {
		return nil, err
	}
	if prototypes.stateless == nil || len(prototypes.stateless) >= maxPrototypes {
		prototypes.stateless = map[string]*prototype{}
	}
	prototypes.stateless[key] = p
	return p, nil
}
