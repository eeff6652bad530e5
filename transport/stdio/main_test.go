package stdio_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/heedmcp/heed/transport/stdio"
	"go.uber.org/goleak"
)

// The test binary is also the server of the tests that need a process.
func TestMain(m *testing.M) {
	if os.Getenv(serverMode) != "" {
		os.Exit(serveProcess())
	}
	goleak.VerifyTestMain(m)
}

// serverMode, an environment variable, makes the test binary a server and says
// what kind: options of serveProcess, separated by spaces.
const serverMode = "HEED_STDIO_TEST_SERVER"

// serveProcess is main of a server.
func serveProcess() int {
	o := &stdio.Options{}
	report := io.Writer(os.Stderr)
	for option := range strings.FieldsSeq(os.Getenv(serverMode)) {
		switch option {
		case "patient":
			o.Grace = time.Hour
		case "hasty":
			o.Grace, o.Deadline = time.Millisecond, time.Second
		case "bare": // no server: a program that ends with its input
			if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
				return 1
			}
			return 0
		case "mute":
			report = io.Discard
		case "collects":
			go func() {
				for {
					runtime.GC()
				}
			}()
		case "says":
			defer fmt.Println("STRAY after")
		}
	}
	if err := stdio.Serve(context.Background(), newFixture(nil).Server, o); err != nil {
		fmt.Fprintln(report, err)
		return 1
	}
	return 0
}
