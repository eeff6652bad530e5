package conformance_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// The ledger sees what a server must not write.
func TestFuzzLedgerSeesFaults(t *testing.T) {
	for name, c := range map[string]struct{ version, message, fault string }{
		"no JSON":                 {newest, `{"jsonrpc":`, "no message"},
		"a part of a line":        {newest, "{}\n{}", "no message"},
		"a result for nobody":     {newest, `{"jsonrpc":"2.0","id":5,"result":{"resultType":"complete"}}`, "for nobody"},
		"no caching hints":        {newest, `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","tools":[]}}`, "ttlMs"},
		"of the wrong era":        {newestHandshake, `{"jsonrpc":"2.0","id":2,"result":{"tools":7}}`, "tools"},
		"a batch after batches":   {newestHandshake, `[{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}]`, "no batches"},
		"an error without a text": {newest, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601}}`, "message"},
		"progress without a sum":  {newest, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1}}`, "progress"},
	} {
		l := newLedger(loadWireSchemas(t))
		l.sent([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`), c.version)
		l.sent([]byte(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`), c.version)
		l.got([]byte(c.message), c.version)
		if assert.Len(t, l.found(), 1, name) {
			assert.Contains(t, l.found()[0], c.fault, name)
		}
	}
	l := newLedger(loadWireSchemas(t))
	l.sent([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`), newestHandshake)
	l.sent([]byte(`[{"jsonrpc":"2.0","id":"a","method":"ping"}]`), "2025-03-26")
	l.got([]byte(`{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","tools":[],"ttlMs":0,"cacheScope":"private"}}`), newestHandshake)
	l.got([]byte(`[{"jsonrpc":"2.0","id":"\u0061","result":{}}]`), "2025-03-26")
	l.got([]byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no JSON"}}`), newestHandshake)
	assert.Empty(t, l.found())
}
