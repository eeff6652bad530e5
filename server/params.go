package server

import (
	"unsafe"

	"github.com/heedmcp/heed/internal/jsonrpc"
	"github.com/heedmcp/heed/servercontext"
)

// callParams are the members of params that the server itself looks at, raw.
type callParams struct {
	all, meta, name, arguments []byte
}

// paramsOf are the params that a handler of c is to serve: those that were sent,
// unless middleware has passed on others (servercontext.Request.WithParams).
func (c *Call) paramsOf(req *servercontext.Request) callParams {
	all := req.Params()
	if len(all) == len(c.params.all) && unsafe.SliceData([]byte(all)) == unsafe.SliceData(c.params.all) {
		return c.params
	}
	return parseParams(all, c.method.nameParam)
}

// parseParams finds the members; nameParam is "" for methods without a name.
func parseParams(all []byte, nameParam string) callParams {
	p := callParams{all: all}
	p.meta, _ = jsonrpc.Get(all, "_meta")
	if nameParam != "" {
		p.name, _ = jsonrpc.Get(all, nameParam)
		p.arguments, _ = jsonrpc.Get(all, "arguments")
	}
	return p
}
