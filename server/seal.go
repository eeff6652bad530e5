package server

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/heedmcp/heed/internal/jsonrpc"
)

// A requestState travels through the client and comes back: what it holds must
// be unreadable and unchangeable there, and of no use to anybody else or for
// anything else. It is therefore sealed with AES-256-GCM together with whom it was
// given to, for which request, and until when.
//
// Specification: basic/patterns/mrtr (2026-07-28), server requirements.

// sealed is the content of a requestState.
type sealed struct {
	Operation string `json:"o,omitempty"` // the parked operation that waits for the retry
	Round     int    `json:"r,omitempty"` // and how often it has parked
	State     string `json:"s,omitempty"` // or what the handler wants back
	Principal string `json:"p,omitempty"` // who was asked
	Request   []byte `json:"d"`           // digest of the method and its parameters
	// Expires is in Unix seconds: what is sealed may come back to another process. An operation
	// lives in this one, and its own timer ends it, whatever becomes of the system's clock.
	Expires int64 `json:"x,omitempty"`
}

// sealer seals and opens requestStates.
type sealer struct {
	ciphers []cipher.AEAD // the first one seals, all of them open
}

// keySize is the length of a key, in bytes.
const keySize = 32

var sealContext = []byte("heed requestState 1")

var errState = errors.New("params.requestState is not valid for this request, or no longer")

func newSealer(keys [][]byte) (*sealer, error) {
	if len(keys) == 0 {
		key := make([]byte, keySize)
		rand.Read(key)
		keys = [][]byte{key}
	}
	s := &sealer{}
	for _, key := range keys {
		if len(key) != keySize {
			return nil, fmt.Errorf("a state key has %d bytes, not %d", len(key), keySize)
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, err
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, err
		}
		s.ciphers = append(s.ciphers, aead)
	}
	return s, nil
}

func (s *sealer) seal(v sealed) (string, error) {
	plain, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(s.ciphers[0].Seal(nil, nil, plain, sealContext)), nil
}

// open returns what was sealed, for the same principal and request only.
func (s *sealer) open(text, principal string, request []byte, now time.Time) (*sealed, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) != base64.RawURLEncoding.DecodedLen(len(text)) { // line breaks are skipped
		return nil, errState
	}
	for _, c := range s.ciphers {
		plain, err := c.Open(nil, nil, raw, sealContext)
		if err != nil {
			continue
		}
		var v sealed
		if json.Unmarshal(plain, &v) != nil || v.Principal != principal ||
			string(v.Request) != string(request) || v.Operation == "" && now.Unix() >= v.Expires {
			return nil, errState
		}
		return &v, nil
	}
	return nil, errState
}

// requestDigest is what a retry must have in common with its first round: the
// method and all parameters but those of the retry itself. It does not depend
// on the order or spelling in which a client writes them.
func requestDigest(method string, params []byte) []byte {
	h := sha256.New()
	h.Write([]byte(method))
	rest := map[string]json.RawMessage{}
	for name, value := range jsonrpc.Members(params) {
		switch name {
		case "_meta", "inputResponses", "requestState":
		default:
			rest[name] = canonical(value)
		}
	}
	b, err := json.Marshal(rest) // sorts the names
	if err == nil {
		h.Write([]byte{0})
		h.Write(b)
	}
	return h.Sum(nil)
}

func canonical(raw []byte) []byte {
	switch {
	case len(raw) > 0 && raw[0] == '{':
		members := map[string]json.RawMessage{}
		for name, value := range jsonrpc.Members(raw) {
			members[name] = canonical(value)
		}
		if b, err := json.Marshal(members); err == nil {
			return b
		}
	case len(raw) > 0 && raw[0] == '[':
		var elements []json.RawMessage
		if json.Unmarshal(raw, &elements) == nil {
			for i := range elements {
				elements[i] = canonical(elements[i])
			}
			if b, err := json.Marshal(elements); err == nil {
				return b
			}
		}
	case len(raw) > 0 && raw[0] == '"':
		if text, ok := jsonrpc.Unquote(raw); ok {
			return jsonrpc.AppendString(nil, text)
		}
	}
	return raw
}
