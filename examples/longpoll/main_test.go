package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/heedmcp/heed/examples/internal/host"
	"github.com/stretchr/testify/assert"
)

func TestMain(m *testing.M) { host.Main(m, main) }

// service is the API of builds: "quick" is done after two changes, others never are.
func service(t *testing.T) (base string, held, left chan struct{}) {
	held, left = make(chan struct{}, 1), make(chan struct{}, 1)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/builds/missing":
			http.NotFound(w, r)
		case r.FormValue("after") == "0":
			fmt.Fprint(w, `{"revision":1,"percent":40,"stage":"compile"}`)
		case r.URL.Path == "/builds/quick":
			fmt.Fprint(w, `{"revision":2,"percent":100,"done":true}`)
		default:
			held <- struct{}{}
			<-r.Context().Done()
			left <- struct{}{}
		}
	}))
	t.Cleanup(web.Close)
	return web.URL, held, left
}

// A cancel ends the request that the tool waits in: the API sees its client go.
func TestWaitStops(t *testing.T) {
	base, held, left := service(t)
	session := host.Start(t, host.Program(t, "-api", base), host.Options{})
	assert.Equal(t, "build quick is done", session.Text("wait_for_build", map[string]any{"build": "quick"}))

	call := session.Begin("wait_for_build", map[string]any{"build": "slow"})
	report := call.Report()
	assert.EqualValues(t, 40, report.Progress)
	assert.Equal(t, "compile", report.Message)
	host.Soon(t, held, "the API holds a request")
	call.Stop()
	host.Soon(t, left, "the API sees its client go")
	assert.Equal(t, "build quick is done", session.Text("wait_for_build", map[string]any{"build": "quick"}))
}

func TestWaitSaysWhatTheServiceAnswers(t *testing.T) {
	base, _, _ := service(t)
	session := host.Start(t, host.Program(t, "-api", base), host.Options{})
	assert.Equal(t, "the build service answers 404 Not Found", session.Failure("wait_for_build", map[string]any{"build": "missing"}))
}
