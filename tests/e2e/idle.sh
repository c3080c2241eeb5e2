#!/bin/bash
# tests/e2e/idle.sh [path/to/noh] [connections] - what an idle connection costs: at most 4 KiB of anonymous memory each,
# and no CPU (P10), on both io backends. The last line: "N passed, N failed".
set -u
cd "$(dirname "$0")/../.." || exit 1
noh=${1:-out/plain/noh}
count=${2:-10000}
. tests/e2e/server.sh
program=$(dirname "$noh")/tests/e2e/idle
mkdir -p "$(dirname "$program")"
[ "$program" -nt tests/e2e/idle.c ] || ${CC:-cc} -std=gnu11 -Wall -Wextra -O1 tests/e2e/idle.c -o "$program" || { echo "0 passed, 1 failed"; exit 1; }
ticks() { awk '{ print $14 + $15 }' "/proc/$pid/stat"; }

for io in uring epoll; do
	if ! start_server --io $io --durability none; then
		[ $io = uring ] && grep -q 'io_uring' "$tmp/log" && { failed=0; skip "io_uring is not to be had here"; continue; }
		finish
	fi
	bytes=$("$program" "$port" "$count" "$pid")
	case $? in
	0) if [ "$bytes" -le 4096 ]; then ok; else fail "$count idle connections on $io take $bytes bytes each"; fi ;;
	77) skip "${bytes#SKIP  }" ;;
	*) fail "idle connections on $io" "$bytes" ;;
	esac
	printf '  %s: %s bytes for each of %s idle connections\n' $io "$bytes" "$count"
	sleep 0.5
	before=$(ticks)
	sleep 2
	used=$(($(ticks) - before))
	if [ $used -le 2 ]; then ok; else fail "an idle server on $io took $used ticks (10 ms) in 2 s"; fi
	stop_server
done
finish
