#!/bin/bash
# Runs a command beside a PostgreSQL server of its own, on a free loopback port
# and with data that is thrown away; LONGTOOL_TEST_POSTGRES holds its URL. As
# root on Debian and its descendants, PostgreSQL is installed if it is missing.
#
#   examples/longtool/with-postgres.sh go test ./examples/longtool
set -euo pipefail

programs() {
	local found
	for found in $(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -rV) "$(dirname "$(command -v initdb || echo .)")"; do
		if [ -x "$found/initdb" ]; then echo "$found"; return; fi
	done
}

bin=$(programs)
if [ -z "$bin" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -qq </dev/null
	apt-get install -qq -y --no-install-recommends postgresql </dev/null >/dev/null
	bin=$(programs)
fi
if [ -z "$bin" ]; then echo "with-postgres: PostgreSQL is not installed" >&2; exit 1; fi

# The server refuses to run as root. It need not see the current folder.
as_owner() { (cd / && "$@"); }
dir=$(mktemp -d)
if [ "$(id -u)" = 0 ]; then
	chown postgres "$dir"
	as_owner() { (cd / && runuser -u postgres -- "$@"); }
fi

stop() {
	as_owner "$bin/pg_ctl" -D "$dir/data" -m immediate -s stop 2>/dev/null || true
	rm -rf "$dir"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

as_owner "$bin/initdb" -D "$dir/data" -U longtool --auth=trust --encoding=UTF8 --locale=C --no-sync >/dev/null
for attempt in 1 2 3 4 5; do # another program may have the port
	port=$((20000 + RANDOM % 12000))
	options="-p $port -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c max_connections=200"
	options+=" -c fsync=off -c synchronous_commit=off -c full_page_writes=off"
	if as_owner "$bin/pg_ctl" -D "$dir/data" -l "$dir/log" -o "$options" -w -s start; then break; fi
	if [ "$attempt" = 5 ]; then cat "$dir/log" >&2; exit 1; fi
done

export LONGTOOL_TEST_POSTGRES="postgres://longtool@127.0.0.1:$port/postgres?sslmode=disable"
"$@"
