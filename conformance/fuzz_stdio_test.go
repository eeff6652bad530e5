package conformance_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// How long the fuzzer runs on each transport, unless FUZZ_MESSAGES says so, and what it waits for.
const (
	fuzzTime     = 4 * time.Second
	fuzzLife     = 12 * time.Second // of one server on stdio
	fuzzPatience = surely           // for an answer, an end, and for what was left to be gone
	fuzzSlack    = 12               // goroutines that may come and go
)

// fuzzFor is how long to go on.
func fuzzFor(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("FUZZ_MESSAGES")
	if text == "" {
		return fuzzTime
	}
	d, err := time.ParseDuration(text)
	require.NoError(t, err, "FUZZ_MESSAGES")
	return d
}

// fuzzSeed is where to begin: FUZZ_SEED repeats what a former run has sent.
func fuzzSeed(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("FUZZ_SEED"); text != "" {
		_, err := fmt.Sscan(text, &seed)
		require.NoError(t, err, "FUZZ_SEED")
	}
	t.Logf("FUZZ_SEED=%d", seed)
	return seed
}

// Whatever is written to its stdin: the server answers the next good line, what it writes
// is what the schemas allow, nothing is left of it at the end, and it ends well.
func TestFuzzStdio(t *testing.T) {
	t.Parallel()
	schemas, seed := loadWireSchemas(t), fuzzSeed(t)
	everything(t) // is built before the clock runs
	end := time.Now().Add(fuzzFor(t))
	for lives := uint64(0); (lives == 0 || time.Now().Before(end)) && !t.Failed(); lives++ {
		p := startFuzzed(t, newLedger(schemas), newFuzzer(seed+lives))
		until := time.Now().Add(fuzzLife)
		if end.Before(until) {
			until = end
		}
		for (time.Now().Before(until) || lives == 0 && !p.ledger.enough()) && p.burst() && len(p.ledger.found()) == 0 {
		}
		p.finish()
		if lives == 0 {
			t.Log(p.ledger.summary())
		}
	}
}

// fuzzed is a server on stdio that is fuzzed.
type fuzzed struct {
	t       *testing.T
	f       *fuzzer
	ledger  *ledger
	command *exec.Cmd
	stderr  bytes.Buffer // read when the process has ended

	writing sync.Mutex // serializes writes to stdin
	stdin   io.WriteCloser

	mu       sync.Mutex
	version  string // of the session; "" before there is one
	probes   map[string]chan received
	recently [][]byte // what was sent last, for reports

	read     chan struct{} // closed when stdout has ended
	probed   int
	baseline fuzzStats
}

type fuzzStats struct {
	Goroutines int `json:"goroutines"`
	InFlight   int `json:"in_flight"`
	Lingering  int `json:"lingering"`
	Parked     int `json:"parked"`
	Sessions   int `json:"sessions"`
}

func startFuzzed(t *testing.T, l *ledger, f *fuzzer) *fuzzed {
	t.Helper()
	p := &fuzzed{t: t, f: f, ledger: l, probes: map[string]chan received{}, read: make(chan struct{})}
	p.command = exec.Command(everything(t), "stdio")
	p.command.Stderr = &p.stderr
	var err error
	p.stdin, err = p.command.StdinPipe()
	require.NoError(t, err)
	stdout, err := p.command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.command.Start())
	go p.reads(stdout, newFuzzer(f.Uint64()))
	p.baseline = p.stats()
	if !f.odds(4) {
		version := pick(f, fuzzVersions[:4]...)
		p.write(encodeLine(M{"jsonrpc": "2.0", "id": "first", "method": "initialize", "params": M{"protocolVersion": version, "capabilities": f.capabilities(), "clientInfo": M{"name": "fuzzer", "version": "1"}}}))
		p.write(encodeLine(M{"jsonrpc": "2.0", "method": "notifications/initialized"}))
	}
	return p
}

func encodeLine(m M) []byte {
	raw, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return raw
}

// write sends one line.
func (p *fuzzed) write(raw []byte) {
	p.mu.Lock()
	p.ledger.sent(raw, p.version)
	p.recently = append(p.recently, raw)
	p.recently = p.recently[max(0, len(p.recently)-120):]
	p.mu.Unlock()
	p.writing.Lock()
	defer p.writing.Unlock()
	_, _ = p.stdin.Write(append(bytes.Clone(raw), '\n')) // a probe notices when nobody reads
}

// reads judges what the server writes, and answers what it asks.
func (p *fuzzed) reads(stdout io.Reader, f *fuzzer) {
	defer close(p.read)
	lines := bufio.NewReader(stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			if len(line) > 0 {
				p.ledger.got(line, "") // a part of a line is no message
			}
			return
		}
		line = bytes.TrimSuffix(line, []byte("\n"))
		p.settle(line)
		p.mu.Lock()
		version := p.version
		p.mu.Unlock()
		for _, m := range p.ledger.got(line, version) {
			p.mu.Lock()
			probe := p.probes[string(m.ID)]
			p.mu.Unlock()
			switch {
			case m.Method == "" && probe != nil:
				probe <- m
			case m.Method != "" && m.ID != nil:
				if answer := f.answer(m); answer != nil {
					go p.write(answer)
				}
			}
		}
	}
}

// settle learns the session's version from the answer to initialize.
func (p *fuzzed) settle(line []byte) {
	var m struct {
		Result struct {
			Version string `json:"protocolVersion"`
		}
	}
	if json.Unmarshal(line, &m) == nil && m.Result.Version != "" {
		p.mu.Lock()
		p.version = m.Result.Version
		p.mu.Unlock()
	}
}

// answer answers what the server has asked, rightly or not; nil: not at all.
func (f *fuzzer) answer(m received) []byte {
	switch f.IntN(6) {
	case 0:
		return nil
	case 1:
		return encodeLine(M{"jsonrpc": "2.0", "id": m.ID, "error": M{"code": -1, "message": f.text()}})
	case 2:
		return f.mutate(encodeLine(M{"jsonrpc": "2.0", "id": m.ID, "result": f.response()}))
	}
	result := any(M{})
	switch m.Method {
	case "sampling/createMessage":
		result = M{"role": "assistant", "model": "m", "content": M{"type": "text", "text": "Paris"}}
	case "elicitation/create":
		result = M{"action": "accept", "content": M{"name": "n"}}
	case "roots/list":
		result = M{"roots": []M{{"uri": "file:///x"}}}
	}
	return encodeLine(M{"jsonrpc": "2.0", "id": m.ID, "result": result})
}

// burst sends messages, and then one that must be answered. It is false when it was not.
func (p *fuzzed) burst() bool {
	p.ledger.teach(p.f)
	for range 1 + p.f.IntN(60) {
		p.mu.Lock()
		handshake := p.version != ""
		p.mu.Unlock()
		p.write(bytes.ReplaceAll(p.f.next(!handshake || p.f.odds(2)), []byte("\n"), nil))
	}
	return p.probe("echo", M{"text": "still here"}) != nil
}

// probe calls a tool that answers at once. It fails the test, and returns nil, if that does not.
func (p *fuzzed) probe(tool string, arguments M) *received {
	p.probed++
	id := fmt.Sprintf(`"probe %d"`, p.probed)
	answer := make(chan received, 4)
	p.mu.Lock()
	p.probes[id] = answer
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.probes, id)
		p.mu.Unlock()
	}()
	p.write(encodeLine(M{"jsonrpc": "2.0", "id": json.RawMessage(id), "method": "tools/call", "params": M{"name": tool, "arguments": arguments,
		"_meta": M{"io.modelcontextprotocol/protocolVersion": newest, "io.modelcontextprotocol/clientCapabilities": M{}}}}))
	late := time.NewTimer(fuzzPatience)
	defer late.Stop()
	select {
	case m := <-answer:
		if m.Result == nil {
			p.t.Errorf("%s was not answered with a result: %s", tool, m.Error)
			return nil
		}
		return &m
	case <-p.read:
		p.t.Errorf("the server is gone")
	case <-late.C:
		p.t.Errorf("the server hangs")
	}
	return nil
}

// stats are what the server says of itself.
func (p *fuzzed) stats() (s fuzzStats) {
	if m := p.probe("cancel_stats", M{}); m != nil {
		assert.NoError(p.t, json.Unmarshal(m.Result.Structured, &s))
	}
	return s
}

// finish stops what still runs, looks for what is left of it, and ends the server.
func (p *fuzzed) finish() {
	meta := M{"io.modelcontextprotocol/protocolVersion": newest, "io.modelcontextprotocol/clientCapabilities": M{"extensions": M{"io.modelcontextprotocol/tasks": M{}}}}
	for _, id := range p.ledger.open() {
		p.write([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`))
	}
	var left fuzzStats
	awaitNothing(p.t, func() bool {
		for _, id := range p.ledger.newTasks() {
			p.write(encodeLine(M{"jsonrpc": "2.0", "id": "stop " + id, "method": "tasks/cancel", "params": M{"taskId": id, "_meta": meta}}))
		}
		left = p.stats()
		return p.t.Failed() || left.InFlight+left.Lingering == 0 && left.Goroutines <= p.baseline.Goroutines+2*left.Parked+fuzzSlack
	}, func() string { return fmt.Sprintf("left: %+v, at first: %+v", left, p.baseline) })
	if p.t.Failed() {
		_ = p.command.Process.Signal(syscall.SIGQUIT) // for its stacks
	}

	require.NoError(p.t, p.stdin.Close())
	ended := make(chan error, 1)
	go func() {
		<-p.read
		ended <- p.command.Wait()
	}()
	late := time.NewTimer(fuzzPatience)
	defer late.Stop()
	select {
	case err := <-ended:
		assert.NoError(p.t, err, "the server's end")
	case <-late.C:
		p.t.Errorf("the server does not end")
		_ = p.command.Process.Kill()
		<-ended
	}
	for _, fault := range p.ledger.found() {
		p.t.Errorf("the server wrote %s", fault)
	}
	if p.t.Failed() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.t.Logf("the last that was sent:\n%.20000s", bytes.Join(p.recently, []byte("\n")))
		log := p.stderr.Bytes()
		p.t.Logf("stderr:\n%s", log[max(0, len(log)-100000):])
	}
}

// awaitNothing waits until nothing is left.
func awaitNothing(t *testing.T, gone func() bool, left func() string) {
	t.Helper()
	late := time.NewTimer(fuzzPatience)
	defer late.Stop()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for !gone() {
		select {
		case <-again.C:
		case <-late.C:
			t.Error(left())
			return
		}
	}
}
