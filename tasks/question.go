package tasks

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/heedmcp/heed/server"
)

// question is a question to the client that waits for its answer.
type question struct {
	answer chan json.RawMessage // holds the one answer; capacity 1
}

// ask puts questions to the client, by the keys that the handler would like, and waits
// for all answers. It makes the call a task, if it is none yet, since only a task
// can wait.
func (t *task) ask(ctx context.Context, asked map[string]server.InputRequest) (map[string]json.RawMessage, error) {
	if err := t.begin(); err != nil {
		if cancelled := t.work.Requested(); cancelled != nil {
			return nil, cancelled
		}
		return nil, fmt.Errorf("the client cannot be asked: %w", err)
	}
	keys := map[string]string{} // used → wanted
	err := t.change(func(r *Record) error {
		if r.Stop != nil {
			return errUnchanged
		}
		for _, wanted := range slices.Sorted(maps.Keys(asked)) {
			key := unusedKey(r, wanted)
			r.Keys = append(r.Keys, key)
			put(&r.Questions, key, asked[wanted])
			t.open[key] = &question{answer: make(chan json.RawMessage, 1)}
			keys[key] = wanted
		}
		return nil
	})
	if err != nil {
		if cancelled := t.work.Requested(); cancelled != nil {
			return nil, cancelled
		}
		return nil, err
	}
	defer t.withdraw(keys)
	_ = t.save()
	return t.await(ctx, keys)
}

// await waits for the answers to the questions with these keys.
func (t *task) await(ctx context.Context, keys map[string]string) (map[string]json.RawMessage, error) {
	answers := map[string]json.RawMessage{}
	for key, wanted := range keys {
		t.mu.Lock()
		q := t.open[key]
		t.mu.Unlock()
		select {
		case answers[wanted] = <-q.answer:
			continue
		case <-t.work.Token().Done():
		case <-ctx.Done():
		}
		if cancelled := t.work.Requested(); cancelled != nil {
			return nil, cancelled
		}
		if err := t.work.Token().Err(); err != nil {
			return nil, err
		}
		return nil, context.Cause(ctx)
	}
	return answers, nil
}

// withdraw forgets questions, answered or not.
func (t *task) withdraw(keys map[string]string) {
	open := false
	err := t.change(func(r *Record) error {
		for key := range keys {
			delete(t.open, key)
			if _, ok := r.Questions[key]; ok {
				delete(r.Questions, key)
				open = true
			}
		}
		if !open {
			return errUnchanged
		}
		return nil
	})
	if err == nil {
		_ = t.save()
	}
}

// answer gives answers to the questions they belong to. What answers nothing, or is
// no object, is ignored. It reports false when the task is another process's by now.
func (t *task) answer(responses map[string]json.RawMessage) bool {
	err := t.change(func(r *Record) error {
		matched := false
		for key, raw := range responses {
			q := t.open[key]
			if _, waits := r.Questions[key]; q == nil || !waits || len(raw) == 0 || raw[0] != '{' {
				continue
			}
			q.answer <- raw
			delete(r.Questions, key)
			matched = true
		}
		if !matched {
			return errUnchanged
		}
		return nil
	})
	if err == nil {
		_ = t.save()
	}
	return !t.lost.Load()
}

// rounds answers what the handler has returned as input requests, and remembers what
// its next round is called with.
func (t *task) rounds(ctx context.Context, state string, asked map[string]server.InputRequest) (map[string]json.RawMessage, error) {
	responses := map[string]json.RawMessage{}
	if len(asked) > 0 {
		var err error
		if responses, err = t.ask(ctx, asked); err != nil {
			return nil, err
		}
	}
	err := t.change(func(r *Record) error {
		r.State, r.Responses = state, responses
		return nil
	})
	if err == nil {
		err = t.save()
	}
	if err != nil {
		t.manager.log().Warn("a round of input could not be stored", "task", t.snapshot().ID, "error", err)
	}
	return responses, nil
}

func put[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = value
}
