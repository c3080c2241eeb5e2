#!/bin/bash
# tests/e2e/readme.sh [prefix where noh is installed] - the blocks of README.md, as a reader copies them.
#
# Every ```console block is a session: lines with "$ " are run, and what they print must be what follows. The
# ```c block is saved as counter.c. Only the ports are others: free ones instead of 7411 and 5012. Without a prefix,
# noh is installed into a temporary one. The last line: "N passed, N failed".
set -u
cd "$(dirname "$0")/../.." || exit 1
tmp=$(mktemp -d) || exit 1
pid=
cleanup() { [ "$pid" ] && kill -9 "$pid" 2>/dev/null; rm -rf "$tmp"; }
trap cleanup EXIT
prefix=${1:-}
if [ -z "$prefix" ]; then
	prefix=$tmp/prefix
	make -s install PREFIX="$prefix" > "$tmp/install" 2>&1 || { cat "$tmp/install"; exit 1; }
fi
command -v redis-cli > /dev/null || { echo "redis-cli is not installed"; exit 77; }
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib PATH=$prefix/bin:$PATH
export FAKETTY=1                         # redis-cli: answers as on a terminal
unset ${!NOH_*} ${!ACTOR_*}
passed=0 failed=0

sed -n '/^```console$/,/^```$/p' README.md | grep -v '^```' > "$tmp/session"
sed -n '/^```c$/,/^```$/p' README.md | sed '1d;$d' > "$tmp/counter.c"
cd "$tmp" || exit 1

# A port that nobody has: the server itself says whether that is so.
for ((try = 0; try < 20; try++)); do
	port=$((20000 + RANDOM % 12000))
	: > out
	http=$((port + 12000))
	noh serve --data data --resp-port $port --http-port $http > out 2> err < /dev/null &
	pid=$!
	for ((i = 0; i < 200; i++)); do
		grep -q 'ready in' out && break 2
		kill -0 $pid 2>/dev/null || break
		sleep 0.05
	done
	kill -9 $pid 2>/dev/null
	wait $pid 2>/dev/null
	pid=
done
[ "$pid" ] || { echo "FAIL  noh serve did not start"; cat out err; echo "0 passed, 1 failed"; exit 1; }

compare() {
	[ -n "$command" ] || return
	command=${command//7411/$port}
	timeout 60 bash -c "${command//5012/$http}" > got 2>&1 < /dev/null
	sed -i -e :a -e '/^\n*$/{$d;N;ba' -e '}' got    # redis-cli ends some answers with an empty line
	if diff expected got > difference; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		printf 'FAIL  README.md: %s\n' "$command"
		sed 's/^/      /' difference
	fi
}
command=
while IFS= read -r line; do
	if [ "${line:0:2}" = '$ ' ]; then
		compare
		command=${line:2}
		: > expected
	else
		printf '%s\n' "$line" >> expected
	fi
done < session
compare

kill -TERM $pid
wait $pid
rc=$?
pid=
if [ $rc -eq 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAIL  noh serve: exit $rc"; cat err; fi
if [ $passed -lt 10 ]; then failed=$((failed + 1)); echo "FAIL  README.md has lost its blocks"; fi
printf '%d passed, %d failed\n' $passed $failed
[ $failed -eq 0 ]
