package server

import (
	"encoding/json"
	"fmt"

	"github.com/heedmcp/heed/internal/jsonrpc"
	"github.com/heedmcp/heed/servercontext"
	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// revisionOf tells which revision a message speaks: the one its _meta names, or
// else the one the handshake settled on.
//
// Specification: basic/versioning (2026-07-28).
func (ss *Session) revisionOf(m *jsonrpc.Message, x *Extra) (*revision, error) {
	meta, _ := m.Param("_meta")
	if ss.server.servesStateless() && (x.Stateless || speaksStateless(meta) || (m.Method == methodDiscover && ss.beforeHandshake())) {
		if ss.o.NoStateless {
			return nil, &sdkrpc.Error{Code: sdkrpc.CodeInvalidRequest, Message: "this session was opened with a handshake"}
		}
		return ss.server.statelessRevision(m, meta)
	}
	ss.mu.Lock()
	rev := ss.rev
	ss.mu.Unlock()
	switch {
	case x.Stateless:
		version, _ := jsonrpc.Get(meta, mcp.MetaKeyProtocolVersion)
		asked, _ := jsonrpc.Unquote(version)
		return nil, ss.server.unsupported(asked)
	case rev != nil:
		if m.Method == methodInitialize {
			return nil, errInitialized
		}
		return rev, nil
	case m.Method == methodInitialize, m.Method == methodPing:
		return ss.handshakeRevision(m)
	}
	return nil, &sdkrpc.Error{Code: sdkrpc.CodeInvalidRequest, Message: "the session is not initialized"}
}

func (ss *Session) beforeHandshake() bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.phase == phaseNew
}

// handshakeRevision is the revision for initialize itself, and for a ping before it.
func (ss *Session) handshakeRevision(m *jsonrpc.Message) (*revision, error) {
	raw, _ := m.Param("protocolVersion")
	asked, _ := jsonrpc.Unquote(raw)
	rev := negotiate(ss.server.revisions, asked)
	if rev == nil {
		// Only revisions without a handshake are served: the peer should learn which.
		return nil, ss.server.unsupported(asked)
	}
	return rev, nil
}

// speaksStateless tells whether _meta has what only the stateless era puts there.
func speaksStateless(meta []byte) bool {
	if len(meta) == 0 || meta[0] != '{' {
		return false
	}
	for key := range jsonrpc.Members(meta) {
		if key == mcp.MetaKeyProtocolVersion || key == mcp.MetaKeyClientCapabilities {
			return true
		}
	}
	return false
}

// statelessRevision checks the _meta that each request of the stateless era
// must carry.
//
// Specification: basic/index (2026-07-28), request metadata.
func (s *Server) statelessRevision(m *jsonrpc.Message, meta []byte) (*revision, error) {
	if len(meta) == 0 || meta[0] != '{' {
		return nil, invalidParams("params._meta is required and must be an object")
	}
	var version, capabilities, info, level []byte
	for key, value := range jsonrpc.Members(meta) {
		var at *[]byte
		switch key {
		case mcp.MetaKeyProtocolVersion:
			at = &version
		case mcp.MetaKeyClientCapabilities:
			at = &capabilities
		case mcp.MetaKeyClientInfo:
			at = &info
		case mcp.MetaKeyLogLevel:
			at = &level
		default:
			continue
		}
		if *at != nil {
			// Whoever else reads the message may go by the other one.
			return nil, invalidParams("params._meta has %q twice", key)
		}
		*at = value
	}
	asked, ok := jsonrpc.Unquote(version)
	if !ok {
		return nil, invalidParams("params._meta[%q] is required and must be a string", mcp.MetaKeyProtocolVersion)
	}
	rev := find(s.revisions, asked)
	if rev == nil || !rev.stateless {
		return nil, s.unsupported(asked)
	}
	if m.Kind == jsonrpc.KindNotification {
		return rev, nil
	}
	if len(capabilities) == 0 || capabilities[0] != '{' {
		return nil, invalidParams("params._meta[%q] is required and must be an object", mcp.MetaKeyClientCapabilities)
	}
	if len(info) > 0 && info[0] != '{' {
		return nil, invalidParams("params._meta[%q] must be an object", mcp.MetaKeyClientInfo)
	}
	if len(level) > 0 {
		text, _ := jsonrpc.Unquote(level)
		if servercontext.Severity(mcp.LoggingLevel(text)) == 0 {
			return nil, invalidParams("params._meta[%q] is not a log level", mcp.MetaKeyLogLevel)
		}
	}
	return rev, nil
}

// unsupported is the error for a revision that is not served.
//
// Specification: basic/versioning (2026-07-28), UnsupportedProtocolVersion.
func (s *Server) unsupported(asked string) error {
	data, err := json.Marshal(mcp.UnsupportedProtocolVersionData{Supported: s.versions(), Requested: bounded(asked)})
	if err != nil {
		return err
	}
	return &sdkrpc.Error{Code: mcp.CodeUnsupportedProtocolVersion, Message: "unsupported protocol version", Data: data}
}

// versions are the revisions that are served, newest first.
func (s *Server) versions() []string {
	versions := make([]string, len(s.revisions))
	for i, r := range s.revisions {
		versions[i] = r.version
	}
	return versions
}

// servesStateless tells whether any revision without a handshake is served. A
// server that has none answers as one that has never heard of them.
func (s *Server) servesStateless() bool { return s.revisions[0].stateless }

func invalidParams(format string, args ...any) error {
	return &sdkrpc.Error{Code: sdkrpc.CodeInvalidParams, Message: fmt.Sprintf(format, args...)}
}
