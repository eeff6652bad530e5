package conformance_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sync"
)

// ledger knows what was asked, and judges what comes back.
type ledger struct {
	schemas map[string]*wireSchema

	mu     sync.Mutex                      // guards the fields below
	asked  map[string]map[expectation]bool // by id
	ids    map[string]bool                 // as they were written, of all that may still run
	states []string
	tasks  map[string]bool // by id, true for those that newTasks has returned
	faults []string
	counts struct{ sent, results, errors, others int } // of messages
}

// expectation is what an answer is to.
type expectation struct{ version, method string }

func newLedger(schemas map[string]*wireSchema) *ledger {
	return &ledger{schemas: schemas, asked: map[string]map[expectation]bool{}, ids: map[string]bool{}, tasks: map[string]bool{}}
}

var idToken = regexp.MustCompile(`"id"\s*:\s*("(?:[^"\\]|\\.)*"|[-+0-9.eE]+)`)

// sent notes a message before it goes out. version is the session's, "" before there is one.
func (l *ledger) sent(raw []byte, version string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts.sent++
	for _, match := range idToken.FindAllSubmatch(raw, -1) {
		l.ids[string(match[1])] = true
	}
	var batch []json.RawMessage
	if json.Unmarshal(raw, &batch) != nil {
		batch = []json.RawMessage{raw}
	}
	for _, one := range batch {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Version string                     `json:"protocolVersion"`
				Meta    map[string]json.RawMessage `json:"_meta"`
			}
		}
		_ = json.Unmarshal(one, &m) // what can be read of it is noted
		e := expectation{version: version, method: m.Method}
		if raw, ok := m.Params.Meta["io.modelcontextprotocol/protocolVersion"]; ok && string(raw) == `"`+newest+`"` {
			e.version = newest
		}
		id := canonical(m.ID)
		if l.asked[id] == nil {
			l.asked[id] = map[expectation]bool{}
		}
		l.asked[id][e] = true
	}
}

// canonical is an id in one spelling.
func canonical(id json.RawMessage) string {
	var text string
	if json.Unmarshal(id, &text) == nil {
		raw, _ := json.Marshal(text)
		return string(raw)
	}
	return string(bytes.TrimSpace(id))
}

// received is what the server wrote.
type received struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Error  json.RawMessage `json:"error"`
	Result *struct {
		ResultType   string          `json:"resultType"`
		RequestState string          `json:"requestState"`
		TaskID       string          `json:"taskId"`
		Structured   json.RawMessage `json:"structuredContent"`
	} `json:"result"`
}

// got judges a message, or a batch, that the server wrote, and returns its messages. version is
// the session's.
func (l *ledger) got(raw []byte, version string) []received {
	l.mu.Lock()
	defer l.mu.Unlock()
	if bytes.ContainsAny(raw, "\r\n") || !json.Valid(raw) {
		l.fault("what is no message: %.500q", raw)
		return nil
	}
	var parts []json.RawMessage
	if raw[0] != '[' {
		parts = []json.RawMessage{raw}
	} else if err := json.Unmarshal(raw, &parts); err != nil || len(parts) == 0 {
		l.fault("an empty batch")
	} else if version == "" || !l.schemas[version].hasBatches { // whatever its members speak
		l.fault("a batch, and there are no batches in %q: %.500s", version, raw)
	}
	var all []received
	for _, part := range parts {
		var m received
		if err := json.Unmarshal(part, &m); err != nil {
			l.fault("%v: %.500q", err, part)
			continue
		}
		switch {
		case m.Result != nil:
			l.counts.results++
		case m.Error != nil:
			l.counts.errors++
		default:
			l.counts.others++
		}
		l.judge(part, &m, version)
		all = append(all, m)
		if r := m.Result; r != nil {
			if r.RequestState != "" && len(l.states) < 200 {
				l.states = append(l.states, r.RequestState)
			}
			if r.TaskID != "" {
				if _, known := l.tasks[r.TaskID]; !known {
					l.tasks[r.TaskID] = false
				}
			}
			if r.ResultType != "input_required" {
				delete(l.ids, string(m.ID))
			}
		}
	}
	return all
}

func (l *ledger) judge(part []byte, m *received, version string) {
	candidates := map[expectation]bool{}
	switch {
	case m.Method != "":
		candidates[expectation{version, ""}], candidates[expectation{newest, ""}] = true, true
	case len(m.ID) > 0 && string(m.ID) != "null" && len(l.asked[canonical(m.ID)]) > 0:
		candidates = l.asked[canonical(m.ID)]
	default: // to what could not be read
		if m.Result != nil {
			l.fault("a result for nobody: %.500s", part)
		}
		for _, v := range fuzzVersions {
			candidates[expectation{v, ""}] = true
		}
	}
	var errs []error
	for e := range candidates {
		versions := []string{e.version}
		if e.version == "" {
			versions = fuzzVersions // initialize, or before it
		}
		for _, v := range versions {
			err := l.schemas[v].check(part, e.method)
			if err == nil {
				return
			}
			errs = append(errs, fmt.Errorf("as %s of %s: %w", e.method, v, err))
		}
	}
	l.fault("invalid: %.1000s\n%v", part, errs[:min(len(errs), 3)])
}

func (l *ledger) fault(format string, args ...any) {
	if len(l.faults) < 20 {
		l.faults = append(l.faults, fmt.Sprintf(format, args...))
	}
}

// found returns what was wrong so far.
func (l *ledger) found() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.faults)
}

// teach gives the fuzzer what the server has given out.
func (l *ledger) teach(f *fuzzer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f.states = slices.Clone(l.states)
	f.tasks = f.tasks[:0]
	for id := range l.tasks {
		f.tasks = append(f.tasks, id)
	}
	slices.Sort(f.tasks)
}

// newTasks returns the ids of tasks that it has not returned before.
func (l *ledger) newTasks() (ids []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, stopped := range l.tasks {
		if !stopped {
			l.tasks[id] = true
			ids = append(ids, id)
		}
	}
	return ids
}

// open returns the ids, as they were written, of requests that may not have ended.
func (l *ledger) open() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	ids := slices.Clone(fuzzIDs)
	for id := range l.ids {
		ids = append(ids, id)
	}
	return ids
}

// enough tells whether there were messages of each kind. Until then a test has tried next to nothing,
// however long that takes.
func (l *ledger) enough() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return min(l.counts.sent, l.counts.results, l.counts.errors, l.counts.others) > 0
}

// summary is what there was.
func (l *ledger) summary() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return fmt.Sprintf("messages: %+v", l.counts)
}
