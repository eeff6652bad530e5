#!/bin/bash
# staticcheck, with one exception that its settings cannot express: sampling,
# roots and logging are deprecated from revision 2026-07-28 on (SEP-2577), and
# serving them to clients of earlier revisions is part of what this project
# does. Every other use of something deprecated is still reported.
#
#   tools/staticcheck.sh [package...]    in the folder of the module
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
status=0
findings=$(GOWORK=off go tool -modfile="$root/tools/go.mod" staticcheck "${@:-./...}") || status=$?
rest=$(grep -v 'SEP-2577.*(SA1019)$' <<<"$findings" || true)
if [ -n "$rest" ]; then
	echo "$rest"
	exit 1
fi
# Findings make it 1; whatever else went wrong has said so on stderr.
if [ "$status" -gt 1 ] || { [ "$status" -ne 0 ] && [ -z "$findings" ]; }; then exit "$status"; fi
