#!/bin/bash
# tests/e2e/flash_sale.sh [path/to/noh] - 10,000 units, 200 connections, the server killed (-9) three times in the middle
# and started again; clients retry with their idempotency keys. Exactly 10,000 are sold, each order at most once: noh
# bench load counts winners, compares reservations, and asks for the stock. The last line: "N passed, N failed".
set -u
cd "$(dirname "$0")/../.." || exit 1
noh=${1:-out/plain/noh}
units=${UNITS:-10000} kills=${KILLS:-3}
tmp=$(mktemp -d) || exit 1
server=0 passed=0 failed=0
export NOH_HTTP_PORT=0
trap '[ $server -ne 0 ] && kill -9 $server 2>/dev/null; rm -rf "$tmp"' EXIT
if ! "$noh" serve --help >/dev/null 2>&1; then
	echo "SKIP  this noh has no serve"
	echo "0 passed, 0 failed"
	exit 0
fi

serve() {
	"$noh" serve --data "$tmp/data" --resp-port 0 --unix "$tmp/socket" --durability disk --io "$1" >> "$tmp/server.log" 2>&1 &
	server=$!
}
wait_for_socket() {
	local i
	for ((i = 0; i < 1500; i++)); do
		[ -S "$tmp/socket" ] && "$noh" bench load --unix "$tmp/socket" --mix ping --requests 1 --connections 1 >/dev/null 2>&1 && return
		sleep 0.02
	done
	echo "the server does not answer"; tail -n 3 "$tmp/server.log"
	return 1
}
# The sale takes some seconds at this rate; the kills are spread over them.
sale() {   # io
	local rc load k
	rm -rf "$tmp/data" "$tmp/socket"
	serve "$1"
	wait_for_socket || return 1
	"$noh" bench load --unix "$tmp/socket" --mix flash-sale --units "$units" --requests $((2 * units)) --connections 200 \
		--rate $((units / 2)) --retry 60 --patience 60 > "$tmp/out" 2>&1 &
	load=$!
	for ((k = 0; k < kills; k++)); do
		sleep 0.7
		kill -0 $load 2>/dev/null || { echo "the sale was over before kill $((k + 1))"; return 1; }
		kill -9 $server
		wait $server 2>/dev/null
		rm -f "$tmp/socket"
		serve "$1"
	done
	wait $load
	rc=$?
	cat "$tmp/out"
	kill $server && wait $server 2>/dev/null
	server=0
	[ $rc -eq 0 ] && grep -q "$units reserved, $units committed, $units came too late" "$tmp/out" && grep -q reconnected "$tmp/out"
}
for io in auto epoll; do
	if sale $io > "$tmp/said" 2>&1; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAIL  flash sale, $kills kills, --io $io"
		sed 's/^/      /' "$tmp/said"
	fi
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
