#!/bin/bash
# Records a run of longtool in a terminal and makes docs/images/longtool.svg of it. Needs `script`
# of util-linux.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
(cd "$root/examples/longtool" && go build -o "$dir/longtool" .)
cd "$dir"
TERM=xterm-256color script --quiet --flush --return --log-out output --log-timing timing \
	--command "stty cols 100 rows 40; ./longtool" </dev/null >/dev/null
mkdir -p "$root/docs/images"
node "$root/docs/.vitepress/recording.mjs" output timing >"$root/docs/images/longtool.svg"
