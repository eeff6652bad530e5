package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const program = `package main

import "time"

func main() {
	done := make(chan struct{})
	for begun := time.Now(); time.Since(begun) < 50*time.Millisecond; {
		begun = time.Now()
		go func() { done <- struct{}{} }()
		<-done
	}
	(&thing{}).empty()
	defer func() { recover(); println("line", where()) }()
	panic("on purpose")
}

type thing struct{}

func (*thing) empty() {}
`

const place = `package main

import "runtime"

func where() int { _, _, line, _ := runtime.Caller(1); return line }
`

func TestProgramIsTheSameButLate(t *testing.T) {
	root, out := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"go.mod": "module late\n\ngo 1.25\n", "main.go": program, "place.go": place} {
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	require.NoError(t, run(root, out))
	exe := filepath.Join(root, "late")
	build := exec.Command("go", "build", "-overlay", filepath.Join(out, "overlay.json"), "-o", exe, ".")
	build.Dir = root
	build.Env = append(os.Environ(), "GOWORK=off")
	text, err := build.CombinedOutput()
	require.NoError(t, err, "%s", text)

	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	late := exec.CommandContext(ctx, exe) // without delays it does not end
	late.Env = append(os.Environ(), "HEED_DELAY=1000000")
	text, err = late.CombinedOutput()
	require.NoError(t, err)
	assert.Equal(t, "line 13\n", string(text), "lines keep their numbers")
}
