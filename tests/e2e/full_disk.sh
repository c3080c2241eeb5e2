#!/bin/bash
# tests/e2e/full_disk.sh [path/to/noh] - the disk fills up under a server: reads go on, writes are READONLY with the
# place and the bytes that are needed, and when there is space again it goes on by itself; nothing that was answered is
# lost (P5, P11). Needs root for a small file system (tmpfs, seen by this script alone). Last line: "N passed, N failed".
set -u
cd "$(dirname "$0")/../.." || exit 1
if [ "${IN_NAMESPACE:-}" != yes ]; then
	[ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null || { echo "SKIP  a small file system needs root"; echo "0 passed, 0 failed"; exit 0; }
	command -v redis-benchmark >/dev/null || { echo "SKIP  redis-tools is not installed"; echo "0 passed, 0 failed"; exit 0; }
	IN_NAMESPACE=yes exec unshare -m "$0" "$@"
fi
noh=${1:-out/plain/noh}
. tests/e2e/server.sh
write() { redis-cli -p "$port" INCRBY full:sum 1 2>&1; }
fill() { dd if=/dev/zero of="$tmp/data/../ballast" bs=64k > /dev/null 2>&1; }
# Until a write is refused, or for too long. Every answer that is a number is kept for the end.
write_until_refused() {
	local i
	for i in $(seq 60); do
		last=$(write)
		case $last in *READONLY*) return 0 ;; esac
		[ "$last" -ge 0 ] 2>/dev/null || { fail "a write on a filling disk" "$last"; return 1; }
		sum=$last
		timeout 60 redis-benchmark -p "$port" -P 64 -n 100000 -r 100000 -c 4 -q INCRBY "full:__rand_int__" 1 > "$tmp/bench" 2>&1
		fill
	done
	fail "the disk does not fill up" "$(df "$tmp/disk")"
	return 1
}
for io in uring epoll; do
	mkdir -p "$tmp/disk" && mount -t tmpfs -o size=260m none "$tmp/disk" && mkdir "$tmp/disk/data" && ln -sfn "$tmp/disk/data" "$tmp/data" ||
		{ echo "SKIP  cannot mount a small file system"; echo "0 passed, 0 failed"; exit 0; }
	sum=0
	if ! start_server --io $io --journal 64MiB; then
		[ $io = uring ] && grep -q 'io_uring' "$tmp/log" && { failed=0; skip "io_uring is not to be had here"; umount "$tmp/disk"; continue; }
		finish
	fi
	fill                                     # before its very first write
	is "a first write into what was set aside" 1 redis-cli -p "$port" INCR full:sum
	sum=1
	if write_until_refused; then
		ok
		if grep -qE "READONLY .*$tmp/.*[0-9]" <<< "$last"; then ok; else fail "the error does not name the place and the bytes" "$last"; fi
		is "reads go on" "$sum" redis-cli -p "$port" GET full:sum
		is "so does all that writes nothing" PONG redis-cli -p "$port" PING
		like "INFO says so" 'read_only:1' redis-cli -p "$port" INFO
		if command -v curl >/dev/null; then
			is "/readyz says so" $'{"status":"not ready","reason":"read-only: no space left on disk"}\n503' \
				curl -sS --unix-socket "$tmp/data/http.sock" -w '%{http_code}' http://localhost/readyz
			is "/healthz is fine" '{"status":"ok"}' curl -sS --unix-socket "$tmp/data/http.sock" http://localhost/healthz
		fi
		for i in 1 2 3; do like "writes stay refused" READONLY redis-cli -p "$port" INCRBY full:sum 1; done
		is "and have changed nothing" "$sum" redis-cli -p "$port" GET full:sum
		like "several keys are refused in the same words" "READONLY .*$tmp/.*[0-9]+ bytes are needed" \
			redis-cli -p "$port" MSET full:sum 1 full:other 2
		if grep -q 'turn failed' "$tmp/log"; then fail "the log repeats what a full disk refuses"; else ok; fi
		rm "$tmp/disk/ballast"
		for i in $(seq 100); do last=$(write); case $last in *READONLY*) sleep 0.1 ;; *) break ;; esac; done
		command -v curl >/dev/null &&
			is "/readyz is fine again" '{"status":"ready"}' curl -sS --unix-socket "$tmp/data/http.sock" http://localhost/readyz
		if [ "$last" = $((sum + 1)) ]; then ok; else fail "it does not recover by itself" "$last" "wanted $((sum + 1))"; fi
		kill_server
		start_server --io $io
		is "nothing is lost by a crash then" $((sum + 1)) redis-cli -p "$port" GET full:sum
	fi
	stop_server
	umount "$tmp/disk"
	rm -f "$tmp/data"
done
finish
