#!/bin/bash
# Tries the servers of bench/servers with heedcheck and writes docs/comparison.md from what comes out.
# environment: PAGE=file to write, BENCH_WORK=where to build, PARALLEL=how many rules at a time
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
page=${PAGE:-$here/../docs/comparison.md}
work=${BENCH_WORK:-${TMPDIR:-/tmp}/heed-bench}/compare
export GOFLAGS=-buildvcs=false
mkdir -p "$work"
for s in gosdk mcpgo; do (cd "$here/servers/$s" && GOWORK=off go build -o "$work/$s" ./fixtures); done
(cd "$here/servers/ts" && npm ci --silent --no-audit --no-fund)
printf '#!/bin/sh\nexec node %s/servers/ts/fixtures.mjs "$@"\n' "$here" >"$work/ts"
chmod +x "$work/ts"
(cd "$here/.." && go build -o "$work/heed" ./examples/everything && go build -o "$work/heedcheck" ./cmd/heedcheck)

version() { (cd "$here/servers/$1" && GOWORK=off go list -m -f '{{.Version}}' "$2"); }
gosdk=$(version gosdk github.com/modelcontextprotocol/go-sdk)
mcpgo=$(version mcpgo github.com/mark3labs/mcp-go)
ts=$(cd "$here/servers/ts" && node -p 'JSON.parse(require("fs").readFileSync("node_modules/@modelcontextprotocol/sdk/package.json")).version')
reasons=$("$work/heedcheck" -list -run reason | awk '/^[a-z]/ {printf "%s`%s`", sep, $1; sep = ", "}')
body=$(cd "$work" && ./heedcheck compare -config "$here/compare.json" -parallel "${PARALLEL:-4}" -format page)

cat >"$page" <<END
---
title: Comparison
order: 90
---

# Comparison

Does a call stop when its client asks it to? \`heedcheck\` tries that from outside: it speaks JSON-RPC itself and knows of no
SDK. This page is written from one run of it:

\`\`\`sh
make compare
\`\`\`

## What is compared

| server | SDK | version |
|---|---|---|
| Heed | this repository | as of this page |
| Go SDK | \`github.com/modelcontextprotocol/go-sdk\` | $gosdk |
| Go SDK, propagating | the same with \`PropagateRequestCancellation\`, which is about HTTP in 2026-07-28 alone | $gosdk |
| mcp-go | \`github.com/mark3labs/mcp-go\` | $mcpgo |
| TypeScript SDK | \`@modelcontextprotocol/sdk\`, which has no revision 2026-07-28 | $ts |

Made on $(LC_ALL=C date -u +%Y-%m-%d) with $(go env GOVERSION) and Node $(node --version), on $(go env GOOS)/$(go env GOARCH).

- Each server has the same fixtures: tools, a prompt, a resource and more that wait, work, fail or ask the client, look at what
  their SDK gives them to see a cancel by, and write down what they saw.
- Their sources are \`examples/everything\` (Heed), \`bench/servers/gosdk/fixtures\`, \`bench/servers/mcpgo/fixtures\` and
  \`bench/servers/ts/fixtures.mjs\`.
- They are written as the SDK's documentation shows, and keep its defaults, but for two: mcp-go's server has \`WithRecovery\`, as its
  documentation has, and Heed's reports progress as often as it is told to.
- The official Go SDK needs one HTTP handler for each era; its column is both.
- At SIGTERM each server ends in the way that its SDK has for that: a context, a method, or the closing of its sessions.

## How to read it

- **yes**: the rule is kept in every setting in which it could be judged. A setting is a transport, an era and, over HTTP,
  whether the client accepts event streams.
- **no**: it is broken in each of them; **no in 1 of 3**: in some.
- **not judged**: it cannot be seen from outside, or the server lacks what it takes. It is never counted as kept.
- **not tried**: the run could not find it out, for a reason that may not be the server's.
- **–**: it does not apply to the transports and eras that the server serves.

Rules of the level QoI are not in the specification; users feel them all the same. Reasons that get lost break these rules and no
other: $reasons.

A single rule is tried with everything that goes over the wire by

\`\`\`sh
GOWORK=off go build -C bench/servers/gosdk -o ../../out/gosdk ./fixtures
go run ./cmd/heedcheck -v -run '^answer-suppressed-result\$' -- bench/out/gosdk
go run ./cmd/heedcheck -v -run '^disconnect-cancels\$' -era stateless \\
  -url 'http://{addr}/mcp' -- bench/out/gosdk -modern -http '{addr}'
\`\`\`

$body
END
(cd "$here/.." && go test -count=1 -run '^TestEveryQuotedTableIsItsSource$' ./internal/doctest -update >/dev/null) # README.md shows some rows
echo "written: $page"
