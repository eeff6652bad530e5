package host

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// asProgram is set for the process that is the program.
const asProgram = "HEED_EXAMPLE_AS_PROGRAM"

// Main is an example's TestMain: it runs the tests, or the program that they have started.
func Main(m *testing.M, program func()) {
	if os.Getenv(asProgram) != "" {
		program()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// Program is a command that runs the example with these arguments.
func Program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	command := exec.Command(self, args...)
	// Without the second one a program that was built to find races takes a second longer to end.
	command.Env = append(os.Environ(), asProgram+"=1", "GORACE=atexit_sleep_ms=0")
	return command
}

// Listen starts a program that says on stderr where it listens, as the last word of its first
// line, and returns that word and what follows. The program is interrupted when the test ends, and
// must then exit well.
func Listen(t *testing.T, command *exec.Cmd) (address string, said *Log) {
	t.Helper()
	stderr, err := command.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	lines := bufio.NewReader(stderr)
	line, err := lines.ReadString('\n')
	said = new(Log)
	var rest sync.WaitGroup
	rest.Go(func() { _, _ = io.Copy(said, lines) })
	t.Cleanup(func() {
		_ = command.Process.Signal(os.Interrupt)
		rest.Wait()
		require.NoError(t, command.Wait(), "%s%s", line, said)
	})
	require.NoError(t, err)
	words := strings.Fields(line)
	require.NotEmpty(t, words)
	return words[len(words)-1], said
}

// Log is what a program has written to its stderr so far.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Patience is how long a test waits for what happens at once; a busy machine is no fault.
const Patience = time.Minute
