package conformance_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// chromium returns the browser, which Debian's package and others call by different names.
func chromium(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("CHROMIUM"); path != "" {
		return path
	}
	for _, name := range []string{"chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return need(t, "chromium", "apt install chromium")
}

// page serves the site's files as any file server does: a URL without an extension is that of a page.
func page(dir string) http.Handler {
	files := http.FileServer(http.Dir(dir))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name := filepath.Join(dir, filepath.FromSlash(r.URL.Path)); filepath.Ext(name) == "" && !strings.HasSuffix(r.URL.Path, "/") {
			if _, err := os.Stat(name + ".html"); err == nil {
				http.ServeFile(w, r, name+".html")
				return
			}
		}
		files.ServeHTTP(w, r)
	})
}

// The documentation site is built from docs/ and walked through in a browser: navigation, search,
// links, layout at three widths, and no request to anywhere else. With SITE_SHOTS set, screenshots
// are left in that folder.
func TestSite(t *testing.T) {
	browser := chromium(t)
	require.FileExists(t, "../docs/node_modules/.package-lock.json", "the site's generator is not installed: run `make test`, or `npm ci` in docs/")
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), node(t), "node_modules/vitepress/bin/vitepress.js", "build", ".", "--outDir", dir)
	build.Dir = "../docs"
	build.Env = append(os.Environ(), "NO_COLOR=1", "SITE_BASE=/")
	output, err := build.CombinedOutput()
	require.NoError(t, err, "%s", output)

	web := httptest.NewServer(page(dir))
	defer web.Close()
	shots := t.TempDir()
	if kept := os.Getenv("SITE_SHOTS"); kept != "" {
		shots = kept
	}
	walk(t, 7, node(t), "clients/site.mjs", "--chromium="+browser, "--url="+web.URL+"/", "--shots="+shots)
	taken, err := filepath.Glob(filepath.Join(shots, "*.png"))
	require.NoError(t, err)
	assert.GreaterOrEqual(t, len(taken), 9)
}

// walk runs a script in the browser and judges each of its verdicts in a test of its own.
func walk(t *testing.T, least int, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	verdicts, stderr, err := runClient(ctx, args)
	require.NoError(t, err, stderr)
	for _, verdict := range verdicts {
		t.Run(verdict.Check, func(t *testing.T) { assert.True(t, verdict.OK, verdict.Error) })
	}
	assert.GreaterOrEqual(t, len(verdicts), least, "it has not come to its end")
}
