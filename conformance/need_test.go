package conformance_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// need returns the path of a program that a test needs and the build does not bring along.
func need(t *testing.T, program, install string) string {
	t.Helper()
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/sbin", "/sbin") {
		if path, err := exec.LookPath(filepath.Join(dir, program)); err == nil {
			return path
		}
	}
	cannot(t, fmt.Sprintf("there is no %s on this machine; on Debian: %s", program, install))
	return ""
}

// cannot skips a test that this machine cannot run. On CI that is a failure: there nobody
// would notice.
func cannot(t *testing.T, why string) {
	t.Helper()
	require.Empty(t, os.Getenv("CI"), why)
	t.Skip(why)
}
