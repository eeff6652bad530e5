#!/bin/bash
# Runs a command in every module of the repository, except in the linters' own:
# in the workspace where go.work lists the module, by itself where it does not.
# A failure in one module does not keep the others from being looked at.
#
#   tools/each.sh COMMAND [ARGUMENT...]
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
cd "$root"
workspace=$(go list -m -f '{{.Dir}}')
status=0
while read -r file; do
	module=$(dirname "$file")
	dir=$(cd "$module" && pwd -P)
	setting=GOWORK=off
	if grep -qxF "$dir" <<<"$workspace"; then setting=GOWORK=; fi
	echo "== $* ($module)"
	(cd "$dir" && env "$setting" "$@" </dev/null) || status=1
done < <(find . -name node_modules -prune -o -path ./tools -prune -o -name go.mod -print | sort)
exit "$status"
