package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/heedmcp/heed/examples/internal/host"
	"github.com/stretchr/testify/assert"
)

func TestMain(m *testing.M) { host.Main(m, main) }

// site has pages: /N is N bytes long, /missing is not there, /slow is never answered.
type site struct {
	url           string
	opened, ended chan struct{} // one for each slow request
	slow          atomic.Int64
}

func newSite(t *testing.T) *site {
	s := &site{opened: make(chan struct{}, 100), ended: make(chan struct{}, 100)}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var n int
		switch _, err := fmt.Sscanf(r.URL.Path, "/%d", &n); {
		case err == nil:
			fmt.Fprint(w, strings.Repeat("x", n))
		case strings.HasPrefix(r.URL.Path, "/slow"):
			s.slow.Add(1)
			s.opened <- struct{}{}
			<-r.Context().Done()
			s.ended <- struct{}{}
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(web.Close)
	s.url = web.URL
	return s
}

func (s *site) pages(paths ...string) map[string]any {
	var urls []string
	for _, path := range paths {
		urls = append(urls, s.url+path)
	}
	return map[string]any{"urls": urls}
}

func slow(n int) []string {
	var paths []string
	for i := range n {
		paths = append(paths, fmt.Sprintf("/slow%d", i))
	}
	return paths
}

func TestPagesAreMeasured(t *testing.T) {
	s := newSite(t)
	session := host.Start(t, host.Program(t), host.Options{})
	assert.JSONEq(t, fmt.Sprintf(`{"bytes":{"%[1]s/0":0,"%[1]s/7":7,"%[1]s/3000":3000}}`, s.url),
		session.Text("measure", s.pages("/0", "/7", "/3000")))
}

// A cancel ends what runs, and what waited for its turn is never begun.
func TestCancelStopsAll(t *testing.T) {
	s := newSite(t)
	session := host.Start(t, host.Program(t), host.Options{})
	call := session.Begin("measure", s.pages(append([]string{"/5"}, slow(20)...)...))
	assert.Equal(t, 1.0, call.Report().Progress)
	for range atOnce {
		host.Soon(t, s.opened, "as many requests as may run at once")
	}
	call.Stop()
	for range atOnce {
		host.Soon(t, s.ended, "a request has ended")
	}
	// The session ends with the program, which waits for its handlers.
	assert.NoError(t, session.Close())
	assert.EqualValues(t, atOnce, s.slow.Load(), "requests were begun after the cancel")
}

// The first failure stops the others, too.
func TestFailureStopsAll(t *testing.T) {
	s := newSite(t)
	session := host.Start(t, host.Program(t), host.Options{})
	said := session.Failure("measure", s.pages(append(slow(atOnce-1), "/missing", "/slow", "/slow")...))
	assert.Equal(t, s.url+"/missing: 404 Not Found", said)
	for range s.slow.Load() {
		host.Soon(t, s.ended, "a request has ended")
	}
}
