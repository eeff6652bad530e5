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

// open returns what was sealed, for the same principal and request only. What is not sealed costs no more than
// a look at it: request, which digests the request, is called for the rest.
func (s *sealer) open(text, principal string, request func() []byte, now time.Time) (*sealed, error) {
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
			v.Operation == "" && now.Unix() >= v.Expires || string(v.Request) != string(request()) {
			return nil, errState
		}
		return &v, nil
	}
	return nil, errState
}

// digest is what a retry must have in common with its first round: the method and all parameters
// but those of the retry itself. It does not depend on the order or spelling in which a client writes them.
func (c *Call) digest() []byte {
	h := sha256.New()
	h.Write([]byte(c.method.name))
	h.Write([]byte{0})
	h.Write(jsonrpc.AppendCanonical(nil, c.params.all, "_meta", "inputResponses", "requestState"))
	return h.Sum(nil)
}
