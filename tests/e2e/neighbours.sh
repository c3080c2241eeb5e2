#!/bin/bash
# tests/e2e/neighbours.sh [path/to/noh] [pairs] - what bad neighbours cost: clients that never read, that send a byte a
# second, that announce 4 GiB. The p99 of others' INCR at a fixed rate, with and without them, in turns: the median of
# the ratios is at most 1.25 (P11). Wants an idle machine: each pair is followed by a second measurement without them, and where
# those two differ by more than 1.25 themselves (in the median) a ratio that is not larger by as much is no verdict, neither way. The last line: "N passed, N failed".
set -u
cd "$(dirname "$0")/../.." || exit 1
noh=${1:-out/plain/noh}
pairs=${2:-7}
. tests/e2e/server.sh
bad=()
tidy_all() { [ ${#bad[@]} -gt 0 ] && bad_end; tidy; }
trap tidy_all EXIT

# Each goes on for ever: cut off, it comes again. While others are measured none of them starts a process: six `sleep`s
# a second keep the cores from the server and from those others for more than 10 ms, so that one request in a hundred
# waits for them, and p99 is theirs even if nobody is connected.
mkfifo "$tmp/silence" && exec 4<> "$tmp/silence" || exit 1
a_second() { read -r -t 1 _ <&4; }
connect() { { exec 3<> "/dev/tcp/127.0.0.1/$port"; } 2>/dev/null || { sleep 0.2; false; }; }
never_reads() {
	local line
	trap '' PIPE
	line=$(printf 'ECHO %050000d\r\nPING\r\n' 1)
	while :; do connect && while printf '%s\r\n' "$line" >&3; do :; done 2>/dev/null; done
}
a_byte_a_second() {
	trap '' PIPE
	while :; do
		connect && printf '*2\r\n$4\r\nECHO\r\n$100000\r\n' >&3 && while printf 'x' >&3; do a_second; done 2>/dev/null
	done
}
announces() {
	trap '' PIPE
	while :; do
		connect && printf '*2\r\n$4\r\nECHO\r\n$4294967295\r\n' >&3 && read -r -t 1 _ <&3
		connect && printf '*65536\r\n$1048576\r\nabc' >&3 && a_second
	done 2>/dev/null
}
ticks() { local p; for p; do awk '{ print $14 + $15 }' "/proc/$p/stat"; done 2>/dev/null | tr '\n' ' '; }   # of CPU, so far
bad_begin() {
	local i before=
	for i in 1 2 3; do never_reads & bad+=($!); done
	for i in 1 2 3 4 5; do a_byte_a_second & bad+=($!); done
	announces & bad+=($!)
	for i in $(seq 60); do                   # until those that never read are paused: filling up costs CPU
		[ "$before" = "$(ticks "${bad[@]:0:3}")" ] && break
		before=$(ticks "${bad[@]:0:3}")
		sleep 1
	done
}
bad_end() { kill -KILL "${bad[@]}" 2>/dev/null; wait "${bad[@]}" 2>/dev/null; bad=(); }   # TERM would wait for their writes
p99() {
	"$noh" bench load --port "$port" --mix incr --rate 5k --connections 20 --keys 10k --seconds 3 --warmup 0.5 --json 2>"$tmp/err" |
		sed -n 's/.*"latency_us":{[^}]*"p99":\([0-9.]*\).*/\1/p'
}
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { print a / b }'; }
median() { sort -n "$1" | sed -n "$(((pairs + 1) / 2))p"; }
at_most() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a <= b) }'; }
for io in uring epoll; do
	if ! start_server --io $io --durability none; then          # the disk has its own opinion of p99
		[ $io = uring ] && grep -q 'io_uring' "$tmp/log" && { failed=0; skip "io_uring is not to be had here"; continue; }
		finish
	fi
	: > "$tmp/ratios" > "$tmp/spread"
	for n in $(seq "$pairs"); do
		alone=$(p99)
		bad_begin
		beside=$(p99)
		bad_end
		again=$(p99)
		[ "$alone" ] && [ "$beside" ] && [ "$again" ] || { fail "p99 on $io: it could not be measured" "$(cat "$tmp/err")"; finish; }
		ratio "$beside" "$alone" >> "$tmp/ratios"
		ratio "$alone" "$again" | awk '{ print ($1 < 1 ? 1 / $1 : $1) }' >> "$tmp/spread"
		printf '  %s, pair %d: p99 %s us alone, %s us beside bad neighbours, %s us alone again\n' $io "$n" "$alone" "$beside" "$again"
	done
	median=$(median "$tmp/ratios") spread=$(median "$tmp/spread")
	printf '  %s: the median ratio is %s; two measurements alone differ by %s\n' $io "$median" "$spread"
	if ! at_most "$spread" 1.25 && at_most "$(awk -v m="$median" -v s="$spread" 'BEGIN { print m / s }')" 1.25; then
		skip "p99 beside bad neighbours on $io: this machine is too busy for a verdict ($median times, and $spread without any)"
	elif at_most "$median" 1.25; then
		ok
	else
		fail "p99 beside bad neighbours on $io: $median times" "$(cat "$tmp/ratios" "$tmp/err")"
	fi
	stop_server
done
finish
