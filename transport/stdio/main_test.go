package stdio_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// The test binary is also the server of the tests that need a process.
func TestMain(m *testing.M) {
	if os.Getenv(serverMode) != "" {
		os.Exit(serveProcess())
	}
	goleak.VerifyTestMain(m)
}
