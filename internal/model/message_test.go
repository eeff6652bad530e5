package model_test

import (
	"encoding/json"
	"fmt"

	"github.com/heedmcp/heed/internal/model"
)

// message is anything that the server writes.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Tag       int             `json:"progressToken"`
		RequestID json.RawMessage `json:"requestId"`
		Messages  []struct {
			Content struct {
				Text string `json:"text"`
			} `json:"content"`
		} `json:"messages"`
	} `json:"params"`
	Result *struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
		IsError bool                       `json:"isError"`
		Inputs  map[string]json.RawMessage `json:"inputRequests"`
		State   string                     `json:"requestState"`
	} `json:"result"`
	Error *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Data    struct {
			Origin string `json:"origin"`
		} `json:"data"`
	} `json:"error"`
}

// receive notes what a client has read; on is the request whose stream brought it, over HTTP.
func (w *world) receive(p *peer, on *request, raw []byte) {
	for _, raw := range w.fault.fromServer(p, raw) {
		w.receiveOne(p, on, raw)
	}
}

func (w *world) receiveOne(p *peer, on *request, raw []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.logLocked("%d %s < %s", p.index, p.kind, raw)
	var m message
	if err := json.Unmarshal(raw, &m); err != nil {
		w.failLocked("no message: %q", raw)
		return
	}
	switch {
	case m.Method == "notifications/progress":
		r := w.requests[m.Params.Tag-1]
		w.rightStreamLocked(p, on, r, raw)
		r.reports++
	case m.Method == "notifications/cancelled":
		for _, q := range w.questions {
			if q.peer == p && q.id == string(m.Params.RequestID) {
				w.rightStreamLocked(p, on, q.of, raw)
				q.open = false
				q.of.retracts++
				return
			}
		}
		w.failLocked("a cancel of nothing that was asked: %s", raw)
	case m.Method != "":
		tag := 0
		if len(m.Params.Messages) == 1 {
			_, _ = fmt.Sscanf(m.Params.Messages[0].Content.Text, "tag:%d", &tag)
		}
		k := w.workers[tag]
		if k == nil || k.of == nil {
			w.failLocked("a question of nobody: %s", raw)
			return
		}
		w.rightStreamLocked(p, on, k.of, raw)
		k.of.questions++
		w.questions = append(w.questions, &question{peer: p, id: string(m.ID), of: k.of, open: true})
	case string(m.ID) == `"init"`:
	default:
		w.answeredLocked(p, on, &m, raw)
	}
}

func (w *world) rightStreamLocked(p *peer, on, r *request, raw []byte) {
	if p != r.peer || on != nil && on != r {
		w.failLocked("a message of tag %d went elsewhere: %s", r.tag, raw)
	}
}

func (w *world) answeredLocked(p *peer, on *request, m *message, raw []byte) {
	r := on
	if r == nil {
		r = p.holder[string(m.ID)]
	}
	if r == nil || r.peer != p || r.id != string(m.ID) {
		w.failLocked("an answer to nobody: %s", raw)
		return
	}
	a := answer{raw: string(raw)}
	switch {
	case m.Result == nil && m.Error == nil:
		w.failLocked("an answer that is none: %s", raw)
	case m.Error != nil && m.Error.Data.Origin != "":
		a.fate = model.Cancelled
	case m.Error != nil && m.Error.Code == -32603: // a panic
		a.fate = model.Failure
	case m.Error != nil:
		a.refused = true
		if on == nil && m.Error.Code == -32600 { // of a duplicate; the id's holder is left alone
			for _, other := range w.requests {
				if other.peer == p && other.id == r.id && other.refused && len(other.answers) == 0 {
					r = other
					break
				}
			}
		}
	case m.Result.State != "":
		a.fate, r.state, r.inputs = model.Asked, m.Result.State, nil
		for name := range m.Result.Inputs {
			r.inputs = append(r.inputs, name)
		}
	default:
		a.fate = w.fateLocked(r, m)
	}
	r.answers = append(r.answers, a)
}

// fateLocked tells what a result says, which must be about r's own work.
func (w *world) fateLocked(r *request, m *message) model.Fate {
	text, tag := "", 0
	if len(m.Result.Content) > 0 {
		text = m.Result.Content[0].Text
	}
	if _, err := fmt.Sscanf(text, "tag:%d", &tag); err != nil {
		if !m.Result.IsError {
			w.failLocked("a result of nobody: %q", text)
		}
		return model.Cancelled
	}
	if tag != r.workTag {
		w.failLocked("tag %d got the answer of tag %d", r.workTag, tag)
	}
	if m.Result.IsError {
		return model.Failure
	}
	return model.Value
}
