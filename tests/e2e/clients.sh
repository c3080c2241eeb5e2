#!/bin/bash
# tests/e2e/clients.sh [path/to/noh] - a real server and the clients people have: redis-cli, redis-benchmark, hiredis,
# node-redis, ioredis, unmodified, on both io backends. What is not installed is skipped with a line. The last line:
# "N passed, N failed".
set -u
cd "$(dirname "$0")/../.." || exit 1
noh=${1:-out/plain/noh}
out=$(dirname "$noh")
. tests/e2e/server.sh

cli() { redis-cli -p "$port" "$@"; }
has() { command -v "$1" >/dev/null; }

redis_cli() {
	local reply
	is "one-shot" 1 redis-cli -p "$port" INCR cli:a
	is "one-shot, through the Unix socket" 2 redis-cli -s "$sock" INCR cli:a
	is "MSET" OK redis-cli -p "$port" MSET cli:a 5 cli:b 6
	is "MGET" $'5\n6' redis-cli -p "$port" MGET cli:a cli:b cli:none
	like "an error is an error" '^ERR value is not an integer' redis-cli -p "$port" SET cli:a text
	like "an unknown command" "^ERR unknown command 'nosuch'" redis-cli -p "$port" nosuch
	is "RESP3" '3) "proto"' sh -c "redis-cli --no-raw -3 -p $port HELLO 3 | grep -o '3) \"proto\"\\|3# \"proto\"' | sed 's/#/)/'"
	is "INV.RESTOCK" 10 redis-cli -p "$port" INV.RESTOCK cli:sku 10
	is "INV.RESERVE" $'1\n8' redis-cli -p "$port" INV.RESERVE cli:sku 2 IDEM o1
	is "INV.RESERVE, the same again" $'1\n8' redis-cli -p "$port" INV.RESERVE cli:sku 2 IDEM o1
	is "INV.COMMIT" 2 redis-cli -p "$port" INV.COMMIT cli:sku 1
	like "INV.GET as a map of RESP3" '"sold" => \(integer\) 2' redis-cli --no-raw -3 -p "$port" INV.GET cli:sku
	is "INV.RESERVEALL" $'2\n7' redis-cli -p "$port" INV.RESERVEALL cli:sku 1
	is "ACTOR.ACTIVATE" OK redis-cli -p "$port" ACTOR.ACTIVATE counter:cli:a
	like "ACTOR.STATUS" 'is_active' redis-cli -p "$port" ACTOR.STATUS counter:cli:a
	like "INFO names the backend" "io_backend:$1" redis-cli -p "$port" INFO
	like "COMMAND DOCS feeds its help" 'Add 1' redis-cli -p "$port" COMMAND DOCS incr
	is "inline, and half a connection" $'+PONG\r\n:1\r' bash -c "exec 3<> /dev/tcp/127.0.0.1/$port; printf 'PING\r\nINCR cli:nc\r\nQUIT\r\n' >&3; head -n 2 <&3"
	is "SCAN, all of it" $'cli:scan:1\ncli:scan:2\ncli:scan:3' sh -c "redis-cli -p $port MSET cli:scan:1 1 cli:scan:2 2 cli:scan:3 3 >/dev/null; redis-cli -p $port --scan --pattern 'cli:scan:*' | sort"
	reply=$(for i in $(seq 5000); do printf 'INCR cli:pipe\r\n'; done | timeout 30 redis-cli -p "$port" --pipe 2>&1)
	if grep -q 'errors: 0, replies: 5000' <<< "$reply"; then ok; else fail "pipe mode" "$reply"; fi
	is "pipe mode, counted" 5000 redis-cli -p "$port" GET cli:pipe
}
# Its own SET and MSET write "xxx", which no counter takes: those with a number instead.
redis_bench() {
	local said what
	for what in '-t ping,incr,get' 'SET key:__rand_int__ 7' 'MSET key:__rand_int__ 1 key:__rand_int__ 2 key:__rand_int__ 3' \
		'INCRBY key:__rand_int__ 5 IDEM i:__rand_int__'; do
		said=$(timeout 60 redis-benchmark -p "$port" -P 16 -n 20000 -r 1000 -c 20 -q $what 2>&1)
		if [ $? -eq 0 ] && ! grep -qiE 'error|unable|closed' <<< "$said" && grep -q 'requests per second' <<< "$said"; then
			ok
		else
			fail "redis-benchmark $what" "$said"
		fi
	done
}
hiredis() {
	local program=$out/tests/e2e/hiredis
	printf '#include <hiredis/hiredis.h>\n' | ${CC:-cc} -E -x c - >/dev/null 2>&1 || { skip "hiredis: libhiredis-dev is not installed"; return; }
	mkdir -p "$(dirname "$program")"
	[ "$program" -nt tests/e2e/hiredis.c ] ||
		${CC:-cc} -std=gnu11 -Wall -Wextra -O1 tests/e2e/hiredis.c -o "$program" -lhiredis > "$tmp/cc" 2>&1 ||
		{ fail "tests/e2e/hiredis.c does not build" "$(cat "$tmp/cc")"; return; }
	is "hiredis" fine "$program" "$port"
}
# Installed once into out/, from the lock file; no registry, no test.
node_ready() {
	local dir=out/node
	has node && has npm || { skip "node-redis, ioredis: node and npm are not installed"; return 1; }
	mkdir -p $dir
	if ! cmp -s tests/e2e/node/package-lock.json $dir/package-lock.json || [ ! -d $dir/node_modules/ioredis ]; then
		cp tests/e2e/node/package.json tests/e2e/node/package-lock.json $dir/
		timeout 120 npm ci --prefix $dir --no-audit --no-fund --ignore-scripts > "$tmp/npm" 2>&1 ||
			{ rm -rf $dir; skip "node-redis, ioredis: $(tail -n 1 "$tmp/npm")"; return 1; }
	fi
	cp tests/e2e/node/clients.js $dir/
}
node_clients() {
	is "node-redis, ioredis" fine node out/node/clients.js "$port"
}
# They reconnect by themselves while the server is restarted, and count on.
node_restart() {   # how to end it, options of the server
	local end=$1 said
	shift
	coproc clients { node out/node/clients.js "$port" restart 2>&1; }
	local job=$clients_PID
	exec 4<&"${clients[0]}" 5>&"${clients[1]}"   # ours: they stay when it ends
	read -r -t 30 said <&4
	[ "$said" = ready ] || fail "clients do not come to the restart" "$said"
	$end
	start_server "$@"
	echo go >&5
	read -r -t 30 said <&4
	exec 4<&- 5>&-
	wait "$job" 2>/dev/null
	if [ "$said" = fine ]; then ok; else fail "clients after $end" "$said"; fi
}

has redis-cli || { skip "redis-tools is not installed"; finish; }
node_ready && node=yes || node=
for io in uring epoll; do
	rm -rf "$tmp/data"
	[ $io = uring ] && name=io_uring || name=epoll
	if ! start_server --io $io; then
		[ $io = uring ] && grep -q 'io_uring' "$tmp/log" && { failed=$((failed - 1)); skip "io_uring is not to be had here"; continue; }
		finish
	fi
	redis_cli $name
	redis_bench
	hiredis
	if [ "$node" ]; then
		node_clients
		node_restart stop_server --io $io
		node_restart kill_server --io $io
	fi
	stop_server
done
finish
