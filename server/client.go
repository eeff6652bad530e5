package server

import (
	"encoding/json"
	"sync"

	"github.com/heedmcp/heed/servercontext"
)

const (
	maxClients      = 64      // introductions remembered
	maxIntroduction = 4 << 10 // and how long one may be, in bytes
)

// clients remembers how clients introduced themselves: thousands of sessions are
// opened by a few programs, and each need not keep a copy of what they all said, or
// the message that said it. The zero value is empty.
type clients struct {
	mu    sync.Mutex // guards the field below; no lock is taken while it is held
	known map[string]*servercontext.Client
}

// describe decodes a client's description. What it returns may be shared with other
// sessions; nobody changes it.
func (k *clients) describe(info, capabilities json.RawMessage) (*servercontext.Client, error) {
	n := len(info)
	said := make([]byte, 0, n+1+len(capabilities)) // a copy: info and capabilities are parts of the whole message
	said = append(said, info...)
	said = append(said, 0) // in no JSON text
	said = append(said, capabilities...)
	info, capabilities = said[:n:n], said[n+1:]
	if len(said) > maxIntroduction {
		return servercontext.NewClient(info, capabilities)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if c := k.known[string(said)]; c != nil {
		return c, nil
	}
	c, err := servercontext.NewClient(info, capabilities)
	if err != nil {
		return nil, err
	}
	if len(k.known) >= maxClients {
		clear(k.known) // rather than keeping order: the ones in use come back
	}
	put(&k.known, string(said), c)
	return c, nil
}
