package servercontext

import (
	"encoding/json"

	"github.com/heedmcp/heed/internal/jsonrpc"
)

// WithParams returns a request that is r in all but its params, for middleware that
// changes them: what it passes the result to sees, and the protocol's own methods serve,
// these. params must be a JSON object. What was decided before, such as limits, and where
// progress goes stays as r's own params said.
func (r *Request) WithParams(params json.RawMessage) *Request {
	o := *r.options()
	o.Params = params
	meta, _ := jsonrpc.Get(params, "_meta")
	o.Meta = meta
	return New(o)
}
