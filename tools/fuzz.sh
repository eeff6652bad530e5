#!/bin/bash
# Runs every fuzz target of the modules named (default: this one) for FUZZTIME
# each. Targets are found with `go test -list`, so none can be forgotten.
set -euo pipefail

for module in "${@:-.}"; do
	# "FuzzName" lines come before the "ok package" line of their package.
	targets=$(cd "$module" && go test -list '^Fuzz' ./... |
		awk '/^Fuzz/ {names[++n] = $1} $1 == "ok" {for (i = 1; i <= n; i++) print $2, names[i]; n = 0}')
	if [ -z "$targets" ]; then
		echo "== no fuzz targets ($module)"
		continue
	fi
	while read -r package target; do
		echo "== fuzz $target ($package)"
		(cd "$module" && go test -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-20s}" "$package" </dev/null)
	done <<<"$targets"
done
