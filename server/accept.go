package server

import (
	"errors"
	"strings"

	"github.com/heedmcp/heed/cancellation"
	"github.com/heedmcp/heed/internal/jsonrpc"
	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Receive takes one message, or a batch where the session's revision has them,
// as it was read. Transports call it in the order of reading, from one goroutine
// where messages have an order; it never waits for a handler.
//
// What msg is answered goes to reply. start is called for every accepted
// request and must see to it that its Run is called, on this goroutine or another;
// nil starts a goroutine for each.
//
// msg must not be changed afterwards: requests keep parts of it.
func (ss *Session) Receive(msg []byte, reply Reply, x *Extra, start func(*Call)) {
	if jsonrpc.IsBatch(msg) {
		ss.receiveBatch(msg, reply, x, start)
		return
	}
	var m jsonrpc.Message
	ss.Accept(&m, jsonrpc.Scan(msg, ss.server.limits, &m), reply, x, start)
}

// Accept is Receive for transports that have scanned the message themselves;
// fault is what Scan returned.
func (ss *Session) Accept(m *jsonrpc.Message, fault *jsonrpc.Error, reply Reply, x *Extra, start func(*Call)) {
	if x == nil {
		x = noExtra
	}
	switch {
	case fault != nil:
		ss.faulty(m, fault, reply)
	case m.Kind == jsonrpc.KindRequest:
		ss.acceptRequest(m, reply, x, start)
	case m.Kind == jsonrpc.KindNotification:
		ss.acceptNotification(m, x)
	default:
		ss.acceptResponse(m)
	}
}

// faulty answers what is no acceptable message, unless it is certain that
// nobody waits for an answer.
func (ss *Session) faulty(m *jsonrpc.Message, fault *jsonrpc.Error, reply Reply) {
	if m.Kind == jsonrpc.KindNotification || m.Kind == jsonrpc.KindResponse || m.Kind == jsonrpc.KindErrorResponse {
		ss.server.options.Logger.Debug("ignored a malformed message", "session", ss.ID(), "method", bounded(m.Method), "error", fault.Message)
		return
	}
	refuse(reply, m.ID, fault.Code, fault.Message, nil)
}

func (ss *Session) acceptRequest(m *jsonrpc.Message, reply Reply, x *Extra, start func(*Call)) {
	s := ss.server
	if strings.HasPrefix(m.Method, "notifications/") {
		refuse(reply, m.ID, jsonrpc.CodeMethodNotFound, "notifications have no id and are not answered", nil)
		return
	}
	reg := s.current()
	rev, err := ss.revisionOf(m, x)
	if err == nil && s.draining.Load() {
		err = errDraining
	}
	var md *method
	if err == nil {
		md, err = s.lookup(reg, rev, m.Method)
	}
	if err != nil {
		refuseError(reply, m.ID, err)
		return
	}
	c := newCall(ss, m, md, rev, reg, reply, x)
	if md.name == methodInitialize {
		ss.initialize(c)
		return
	}
	admission, overtaken := ss.admit(c)
	switch admission {
	case refusedDuplicate:
		refuse(reply, m.ID, jsonrpc.CodeInvalidRequest, "a request with this id is in flight", nil)
		return
	case refusedClosed:
		refuseError(reply, m.ID, errSessionEnded)
		return
	case refusedDraining:
		refuseError(reply, m.ID, errDraining)
		return
	case refusedFull:
		refuse(reply, m.ID, jsonrpc.CodeInternalError, "too many requests in flight", nil)
		return
	}
	if overtaken != nil {
		c.cancel(cancellation.Peer, overtaken.reason)
	}
	if start == nil {
		go c.Run()
		return
	}
	start(c)
}

// lookup finds the method, as far as the revision has it and the server
// advertises it.
func (s *Server) lookup(reg *registry, rev *revision, name string) (*method, error) {
	md := reg.methods[name]
	if md == nil || md.notification || !md.in(rev) || !md.available(reg) {
		return nil, &sdkrpc.Error{Code: sdkrpc.CodeMethodNotFound, Message: "method not found: " + bounded(name)}
	}
	return md, nil
}

func (ss *Session) acceptNotification(m *jsonrpc.Message, x *Extra) {
	switch m.Method {
	case "notifications/cancelled":
		ss.acceptCancelled(m)
		return
	case "notifications/initialized":
		ss.mu.Lock()
		if ss.phase == phaseInitialized {
			ss.phase = phaseReady
		}
		ss.mu.Unlock()
	}
	reg := ss.server.current()
	md := reg.methods[m.Method]
	if md == nil || !md.notification {
		return
	}
	rev, err := ss.revisionOf(m, x)
	if err != nil {
		ss.server.options.Logger.Debug("ignored a notification", "session", ss.ID(), "method", bounded(m.Method), "error", err)
		return
	}
	c := newCall(ss, m, md, rev, reg, ss.outlet(rev), x)
	ss.deliver(c)
}

// acceptCancelled applies a notifications/cancelled. Whatever is wrong with it
// is ignored: a notification has no answer.
//
// Specification: basic/utilities/cancellation (2025-11-25), basic/patterns/cancellation (2026-07-28).
func (ss *Session) acceptCancelled(m *jsonrpc.Message) {
	raw, _ := m.Param("requestId")
	id, ok := jsonrpc.ParseID(raw)
	if !ok {
		ss.server.options.Logger.Debug("ignored a cancel without a usable requestId", "session", ss.ID())
		return
	}
	rawReason, _ := m.Param("reason")
	reason, _ := jsonrpc.Unquote(rawReason)
	ss.cancelByPeer(id, reason)
}

// refuseError answers a request that was not accepted with a protocol error.
func refuseError(reply Reply, id jsonrpc.ID, err error) {
	var e *sdkrpc.Error
	if !errors.As(err, &e) {
		e = &sdkrpc.Error{Code: sdkrpc.CodeInternalError, Message: err.Error()}
	}
	refuse(reply, id, int(e.Code), e.Message, e.Data)
}

// maxQuoted bounds text of a peer that is repeated in an error or a log, in bytes.
const maxQuoted = 200

func bounded(s string) string {
	if len(s) <= maxQuoted {
		return s
	}
	return strings.ToValidUTF8(s[:maxQuoted], "") + "…"
}
