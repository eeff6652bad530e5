package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Message is a JSON-RPC message whose values are as they were written. The zero
// value is no message.
type Message struct {
	Raw    json.RawMessage
	ID     json.RawMessage // nil: absent
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  *Error
	Batch  []Message // of a batch, whose other fields but Raw are empty
}

// Error is the error of a response.
type Error struct {
	Code    json.Number     `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

// Parse takes a message apart. It returns an error when text is none; which members
// go with which is not looked at beyond that.
func Parse(text []byte) (Message, error) {
	text = bytes.TrimSpace(text)
	if len(text) > 0 && text[0] == '[' {
		return parseBatch(text)
	}
	var members map[string]json.RawMessage // a struct would match names in any case
	if err := json.Unmarshal(text, &members); err != nil {
		return Message{}, fmt.Errorf("not a JSON object: %w", err)
	}
	if string(members["jsonrpc"]) != `"2.0"` {
		return Message{}, errors.New(`not a JSON-RPC message: no "jsonrpc":"2.0"`)
	}
	m := Message{Raw: text, ID: members["id"], Params: members["params"], Result: members["result"]}
	if raw, ok := members["method"]; ok {
		if err := json.Unmarshal(raw, &m.Method); err != nil || m.Method == "" {
			return Message{}, errors.New("not a JSON-RPC message: the method is no text")
		}
	}
	if raw, ok := members["error"]; ok {
		if err := json.Unmarshal(raw, &m.Error); err != nil || m.Error == nil {
			return Message{}, errors.New("not a JSON-RPC message: the error is none")
		}
	}
	if m.Method == "" && m.Result == nil && m.Error == nil {
		return Message{}, errors.New("not a JSON-RPC message: neither a method nor a result nor an error")
	}
	return m, nil
}

func parseBatch(text []byte) (Message, error) {
	var raws []json.RawMessage
	if err := json.Unmarshal(text, &raws); err != nil {
		return Message{}, fmt.Errorf("not a batch: %w", err)
	}
	m := Message{Raw: text}
	for _, raw := range raws {
		one, err := Parse(raw)
		if err != nil {
			return Message{}, err
		}
		m.Batch = append(m.Batch, one)
	}
	return m, nil
}

// IsRequest tells whether an answer is owed.
func (m Message) IsRequest() bool { return m.Method != "" && m.ID != nil }

// IsNotification tells whether none is.
func (m Message) IsNotification() bool { return m.Method != "" && m.ID == nil }

// IsResponse tells whether m is a result or an error.
func (m Message) IsResponse() bool { return m.Method == "" && (m.Result != nil || m.Error != nil) }

// IsAnswerTo tells whether m is the response with that id, which is JSON text.
func (m Message) IsAnswerTo(id string) bool { return m.IsResponse() && SameID(string(m.ID), id) }

// SameID tells whether two ids, as JSON texts, are the same: numbers by their
// text, strings by their value.
func SameID(a, b string) bool {
	if a == b {
		return true
	}
	var s, t string
	if len(a) == 0 || len(b) == 0 || a[0] != '"' || b[0] != '"' {
		return false
	}
	return json.Unmarshal([]byte(a), &s) == nil && json.Unmarshal([]byte(b), &t) == nil && s == t
}

// Param returns a member of the params, nil without one.
func (m Message) Param(name string) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(m.Params, &members) != nil {
		return nil
	}
	return members[name]
}

// Each returns the messages of a batch, or the message itself.
func (m Message) Each() []Message {
	if m.Batch != nil {
		return m.Batch
	}
	return []Message{m}
}
