#!/bin/bash
# tests/e2e/orders.sh [quick|full] [path/to/noh] - a flash sale while the server is killed (kill -9) three times and
# started again on what it left: exactly as many are sold as there were, each order at most once (P5, P6, P7).
# full: 10,000 units, 200 connections, both io backends. The last line: "N passed, N failed".
set -u
cd "$(dirname "$0")/../.." || exit 1
mode=${1:-quick}
noh=${2:-out/plain/noh}
case $mode in quick) units=1000 connections=50 ;; full) units=10000 connections=200 ;;
*) echo "usage: tests/e2e/orders.sh [quick|full] [noh]" >&2; exit 2 ;; esac
. tests/e2e/server.sh
program=$(dirname "$noh")/tests/e2e/orders
mkdir -p "$(dirname "$program")"
[ "$program" -nt tests/e2e/orders.c ] ||
	${CC:-cc} -std=gnu11 -Wall -Wextra -O1 tests/e2e/orders.c -o "$program" -pthread || { echo "0 passed, 1 failed"; exit 1; }

for io in uring epoll; do
	rm -rf "$tmp/data"
	if ! start_server --io $io; then
		[ $io = uring ] && grep -q 'io_uring' "$tmp/log" && { failed=0; skip "io_uring is not to be had here"; continue; }
		finish
	fi
	coproc sale { timeout 330 "$program" "$port" $units $connections 2>&1; }
	exec 4<&"${sale[0]}"                     # ours: it stays readable after the end of the sale
	job=$sale_PID kills=0 said='' last=''
	while read -r -t 330 last <&4; do
		said+=$last$'\n'
		case $last in "at "*) kill_server; kills=$((kills + 1)); start_server --io $io || break ;; esac
	done
	exec 4<&-
	wait "$job" 2>/dev/null
	if [ $kills -eq 3 ] && grep -qx fine <<< "$said"; then ok; else fail "flash sale on $io, $kills kills" "$said"; fi
	stop_server
	if "$noh" verify "$tmp/data" > "$tmp/verify" 2>&1; then ok; else fail "verify after it" "$(cat "$tmp/verify")"; fi
done
finish
