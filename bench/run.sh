#!/bin/bash
# Measures servers side by side. usage: bench/run.sh [NAME=DIR|NAME=BINARY ...]
#   DIR:    a Go main package with its own go.mod, following CONTRACT.md (DIR/echo optional, for binary size)
#   BINARY: an executable following CONTRACT.md (NAME-echo next to it is used for size, if there)
# environment: ROUNDS=5  SCALE=1  ONLY=regexp-of-tasks  PROBES=regexp-of-probes ('-' = none)
#              GROWTH=regexp-of-growths ('-' = none, the default)  GROWTH_ROUNDS=3  BIGGEST=100000
#              GOGC as the servers shall have it
#              SERVERS=floor,heed,gosdk,mcpgo,ts   OUT=directory (default: a new temporary one)   NOBUILD=1
# results: $OUT/results.md, $OUT/results.json
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=${BENCH_WORK:-${TMPDIR:-/tmp}/heed-bench}
out=${OUT:-$(mktemp -d)}
servers=${SERVERS:-floor,heed,gosdk,mcpgo,ts}
export GOFLAGS=-buildvcs=false GOWORK=off
mkdir -p "$work/bin" "$out"
build() { # name dir
	(cd "$2" && go build -ldflags="-s -w" -o "$work/bin/$1" . &&
		if [ -d echo ]; then go build -ldflags="-s -w" -o "$work/bin/$1-echo" ./echo; fi)
}
if [ -z "${NOBUILD:-}" ]; then
	(cd "$here/harness" && go build -o "$work/bin/mcpbench" .)
	for s in floor heed gosdk mcpgo; do
		case ",$servers," in *,"$s",*) build "$s" "$here/servers/$s" ;; esac
	done
	(cd "$here" && git describe --always --dirty --exclude '*' 2>/dev/null || echo unknown) >"$work/bin/heed.commit"
	case ",$servers," in *,ts,*)
		(cd "$here/servers/ts" && npm ci --silent --no-audit --no-fund)
		printf '#!/bin/sh\nexec node %s/servers/ts/server.mjs "$@"\n' "$here" >"$work/bin/ts"
		chmod +x "$work/bin/ts"
		(cd "$here/servers/ts" && node -p '"Node " + process.versions.node + ", " + Object.entries(require("./package.json").dependencies).map(d => d.join(" ")).join(", ")') >"$work/bin/ts.version"
		;;
	esac
fi
extra=
for a in "$@"; do
	name=${a%%=*} path=${a#*=}
	if [ -d "$path" ]; then
		build "$name" "$path"
		path=$work/bin/$name
	fi
	extra="$extra${extra:+,}$name=$path"
done
exec "$work/bin/mcpbench" -bin "$work/bin" -servers "$servers" -extra "$extra" -rounds "${ROUNDS:-5}" \
	-scale "${SCALE:-1}" -only "${ONLY:-}" -probes "${PROBES:--}" \
	-growth "${GROWTH:--}" -growth-rounds "${GROWTH_ROUNDS:-3}" -biggest "${BIGGEST:-100000}" -o "$out"
