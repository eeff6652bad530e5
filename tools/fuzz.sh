#!/bin/bash
# Runs every fuzz target of the module in this folder for FUZZTIME each. They
# are found with `go test -list`, so none can be forgotten.
set -euo pipefail

# "FuzzName" lines come before the "ok package" line of their package.
targets=$(go test -list '^Fuzz' ./... |
	awk '/^Fuzz/ {names[++n] = $1} $1 == "ok" {for (i = 1; i <= n; i++) print $2, names[i]; n = 0}')
if [ -z "$targets" ]; then
	echo "no fuzz targets"
	exit 0
fi
while read -r package target; do
	echo "== fuzz $target ($package)"
	go test -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-20s}" "$package" </dev/null
done <<<"$targets"
