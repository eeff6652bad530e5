// Command longpoll waits for somebody else: its tool asks an external API again and again
// until a build is done. The API answers when something has changed, so that most of the time
// is spent inside of a request; a cancel ends that request, and the API sees its client go.
//
//	go run ./examples/longpoll -api http://127.0.0.1:9000
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"

	"github.com/heedmcp/heed/server"
	"github.com/heedmcp/heed/servercontext"
	"github.com/heedmcp/heed/transport/stdio"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// build is what the API says about one.
type build struct {
	Revision int    `json:"revision"` // of this record: one more with each change
	Percent  int    `json:"percent"`
	Stage    string `json:"stage"`
	Done     bool   `json:"done"`
}

type buildAPI struct {
	base string
	web  *http.Client
}

// region poll
// poll returns the build's state once it is newer than after. The API holds the request for as
// long as nothing changes, so it must end with ctx.
func (a *buildAPI) poll(ctx context.Context, id string, after int) (b build, err error) {
	address := fmt.Sprintf("%s/builds/%s?after=%d", a.base, url.PathEscape(id), after)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return b, err
	}
	response, err := a.web.Do(request)
	if err != nil {
		return b, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return b, fmt.Errorf("the build service answers %s", response.Status)
	}
	err = json.NewDecoder(io.LimitReader(response.Body, 1<<20)).Decode(&b)
	return b, err
}

type waitIn struct {
	Build string `json:"build" jsonschema:"minLength=1" jsonschema_description:"the id of the build"`
}

func (a *buildAPI) wait(ctx context.Context, req *servercontext.Request, in waitIn) (string, error) {
	for after := 0; ; {
		b, err := a.poll(ctx, in.Build, after)
		if err != nil {
			return "", err // also when the call was cancelled: nobody is told then
		}
		if b.Done {
			return fmt.Sprintf("build %s is done", in.Build), nil
		}
		if err := req.Progress(ctx, float64(b.Percent), 100, b.Stage); err != nil {
			return "", err
		}
		after = b.Revision
	}
}

// endregion

func main() {
	base := flag.String("api", "http://127.0.0.1:9000", "where the build service is")
	flag.Parse()
	api := &buildAPI{base: *base, web: &http.Client{}} // no Timeout: the call's token is the limit
	s := server.New(&mcp.Implementation{Name: "longpoll", Version: "1.0.0"}, nil)
	server.MustAddTool(s, &mcp.Tool{Name: "wait_for_build", Description: "Waits until a build is done."}, api.wait)
	if err := stdio.Serve(context.Background(), s, nil); err != nil {
		log.Fatal(err)
	}
}
