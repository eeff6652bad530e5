#!/bin/bash
# Tries the servers of bench/servers with heedcheck and writes docs/comparison.md from what comes out.
# environment: PAGE=file to write, BENCH_WORK=where to build, PARALLEL=how many rules at a time
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
page=${PAGE:-$here/../docs/comparison.md}
work=${BENCH_WORK:-${TMPDIR:-/tmp}/heed-bench}/compare
export GOFLAGS=-buildvcs=false
mkdir -p "$work"
for s in heed gosdk mcpgo; do (cd "$here/servers/$s" && GOWORK=off go build -o "$work/$s" .); done
(cd "$here/servers/ts" && npm ci --silent --no-audit --no-fund)
printf '#!/bin/sh\nexec node %s/servers/ts/server.mjs "$@"\n' "$here" >"$work/ts"
chmod +x "$work/ts"
(cd "$here/.." && go build -o "$work/heedcheck" ./cmd/heedcheck)

version() { (cd "$here/servers/$1" && GOWORK=off go list -m -f '{{.Version}}' "$2"); }
gosdk=$(version gosdk github.com/modelcontextprotocol/go-sdk)
mcpgo=$(version mcpgo github.com/mark3labs/mcp-go)
ts=$(cd "$here/servers/ts" && node -p 'JSON.parse(require("fs").readFileSync("node_modules/@modelcontextprotocol/sdk/package.json")).version')
body=$(cd "$work" && ./heedcheck compare -config "$here/compare.json" -parallel "${PARALLEL:-4}" -format page)

cat >"$page" <<END
---
title: Comparison
order: 90
---

# Comparison

Does a call stop when its client asks it to? This page is the outcome of one run of \`heedcheck\`, which tries
that from outside: it speaks JSON-RPC itself and knows of no SDK. Each server has the same four tools, is built as
its SDK's documentation shows, and keeps that SDK's defaults; the sources are in \`bench/servers\`. No line below is written
by hand. It is reproduced by

\`\`\`sh
make compare
\`\`\`

and one cell of it, with everything that went over the wire, by

\`\`\`sh
cd bench/servers/gosdk && GOWORK=off go build -o /var/tmp/gosdk . && cd -
go run ./cmd/heedcheck -v -run '^answer-suppressed-result\$' -tool wait -args '{"ms":2000}' -- /var/tmp/gosdk
\`\`\`

| server | SDK | version |
|---|---|---|
| Heed | this repository | as of this page |
| Go SDK | \`github.com/modelcontextprotocol/go-sdk\` | $gosdk |
| mcp-go | \`github.com/mark3labs/mcp-go\` | $mcpgo |
| TypeScript SDK | \`@modelcontextprotocol/sdk\`, on stdio only | $ts |

Made on $(LC_ALL=C date -u +%Y-%m-%d) with $(go env GOVERSION) and Node $(node --version), on $(go env GOOS)/$(go env GOARCH).

How to read a cell:

- **yes**: the rule is kept in every setting in which it could be judged. A setting is a transport, an era and, over HTTP,
  whether the client accepts event streams.
- **no**: it is broken in each of them; **no in 1 of 3**: in some.
- **not judged**: it cannot be seen from outside, or the server lacks what it takes. It is never counted as kept.
- **not tried**: the run could not find it out, for a reason that may not be the server's.
- **–**: it does not apply to the transports and eras that the server serves.

The official Go SDK needs one HTTP handler for each era; its column is both. Rules of the level QoI are not in the
specification; users feel them all the same. Many rules look behind the wire, and are judged only for servers with fixtures
that tell what their handlers saw: \`go run ./cmd/heedcheck -- go run ./examples/everything stdio\` judges them for Heed.

$body
END
echo "written: $page"
