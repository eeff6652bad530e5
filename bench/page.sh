#!/bin/bash
# Measures everything and writes docs/performance.md, docs/performance.json and the charts
# docs/images/growth-*.svg. OUT is where raw results go; ROUNDS, GROWTH_ROUNDS, SCALE and BIGGEST
# are those of run.sh. A page that is published has five rounds at least.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
docs=${DOCS:-$here/../docs}
export BENCH_WORK=${BENCH_WORK:-${TMPDIR:-/tmp}/heed-bench} ROUNDS=${ROUNDS:-5} GROWTH_ROUNDS=${GROWTH_ROUNDS:-2} SCALE=${SCALE:-0.75}
out=${OUT:-$here/out}
mkdir -p "$docs" "$out"
export SERVERS=${SERVERS:-floor,heed,gosdk,mcpgo} # the TypeScript SDK takes minutes a round: run.sh measures it
OUT=$out GROWTH=${GROWTH:-.} "$here/run.sh"
OUT=$out/gogc800 GOGC=800 NOBUILD=1 SERVERS=heed,gosdk \
	ONLY='^(pipe64|pipe16k|http_(legacy|modern)_(json|sse)|core100)$' "$here/run.sh"
"$BENCH_WORK/bin/mcpbench" -render "$out/results.json" -other "$out/gogc800/results.json" -misses "$here/misses.md" \
	-page "$docs/performance.md" -data "$docs/performance.json" -images "$docs/images"
(cd "$here/.." && go test -count=1 -run '^TestEveryQuotedTableIsItsSource$' ./internal/doctest -update >/dev/null) # README.md shows some rows
echo "written: $docs/performance.md, performance.json and images/growth-*.svg"
