#!/bin/bash
# bench/peers/net.sh [row...] [--quick] - install what is missing, then bench/peers/net.py with the same words.
set -u
cd "$(dirname "$0")/../.." || exit 1
missing=()
command -v python3 >/dev/null || missing+=(python3)
[ -n "${REDIS:-}" ] || command -v redis-server >/dev/null || missing+=(redis-server)
[ -n "${PGBIN:-}" ] || { ls /usr/lib/postgresql/*/bin/initdb && command -v pgbench; } >/dev/null 2>&1 || missing+=(postgresql)
if [ ${#missing[@]} -gt 0 ] && command -v apt-get >/dev/null; then
	as_root=()
	[ "$(id -u)" = 0 ] || as_root=(sudo -n)
	printf '  APT   %s\n' "${missing[*]}" >&2
	"${as_root[@]}" apt-get update -qq &&
		"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
			apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null ||
		printf '  SKIP  %s: could not be installed; rows without a peer show noh alone.\n' "${missing[*]}" >&2
fi
[ -n "${NOH:-}" ] || make --no-print-directory all >/dev/null || exit 1
exec python3 bench/peers/net.py "$@"
