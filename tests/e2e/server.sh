# tests/e2e/server.sh - to be sourced: a real `noh serve` on a data directory of its own, and how a check is counted.
#
# Needs $noh. Gives $tmp (gone at the end), $port, $sock, $pid. A server is ended by its pid, and none is left.
tmp=$(mktemp -d) || exit 1
pid='' port='' sock=$tmp/sock passed=0 failed=0 skipped=0
tidy() { [ "$pid" ] && kill -KILL "$pid" 2>/dev/null && wait "$pid" 2>/dev/null; rm -rf "$tmp"; }
trap tidy EXIT
export NOH_HTTP_PORT=${NOH_HTTP_PORT:-0}   # 5012 may be somebody else's; tests of HTTP take a port of their own
trap 'exit 130' INT TERM

ok() { passed=$((passed + 1)); }
fail() {   # what, detail...
	failed=$((failed + 1))
	printf 'FAIL  %s\n' "$1"
	shift
	[ $# -gt 0 ] && printf '%s\n' "$@" | head -n 40 | sed 's/^/      /'
	[ -s "$tmp/log" ] && tail -n 5 "$tmp/log" | sed 's/^/      server: /'
}
skip() { skipped=$((skipped + 1)); printf 'SKIP  %s\n' "$1"; }
# The command must succeed and say exactly this.
is() {   # what it shows, wanted, command...
	local what=$1 want=$2 got rc
	shift 2
	got=$(timeout 30 "$@" 2>&1)
	rc=$?
	if [ $rc -eq 0 ] && [ "$got" = "$want" ]; then ok; else fail "$what (exit $rc)" "expected: $want" "got: $got"; fi
}
like() {   # what it shows, pattern, command...
	local what=$1 pattern=$2 got
	shift 2
	got=$(timeout 60 "$@" 2>&1)
	if grep -qE -- "$pattern" <<< "$got"; then ok; else fail "$what" "expected: $pattern" "got: $got"; fi
}
comes() {   # what it shows, pattern, file: what is written there, within twenty seconds
	local i
	for i in $(seq 400); do
		grep -qE -- "$2" "$3" && { ok; return; }
		sleep 0.05
	done
	fail "$1" "expected: $2" "$(tail -n 20 "$3")"
}
# Runs noh; expects an exit code, and a pattern in what it says (stdout and stderr).
expect() {   # code, pattern, words...
	local code=$1 pattern=$2 got rc
	shift 2
	got=$(timeout 60 "$noh" "$@" 2>&1 < /dev/null)
	rc=$?
	if [ $rc -ne "$code" ]; then
		fail "noh $*: exit $rc, not $code" "$got"
	elif ! grep -qE -- "$pattern" <<< "$got"; then
		fail "noh $*: does not say \"$pattern\"" "$got"
	else
		ok
	fi
}
free_port() {   # one that nobody listens on; below those the kernel gives to clients
	local p
	while :; do
		p=$((20000 + RANDOM % 10000))
		(exec 3<> "/dev/tcp/127.0.0.1/$p") 2>/dev/null || break
	done
	echo $p
}
answers() { (exec 3<> "/dev/tcp/127.0.0.1/$port" && printf 'PING\r\n' >&3 && read -r -t 5 line <&3 && [ "${line%$'\r'}" = +PONG ]) 2>/dev/null; }
# Starts it on $port (a new one if there is none) and waits for its first answer.
start_server() {   # options...
	local i
	[ "$port" ] || port=$(free_port)
	"$noh" serve --data "$tmp/data" --resp-port "$port" --unix "$sock" "$@" >> "$tmp/log" 2>&1 < /dev/null &
	pid=$!
	for i in $(seq 300); do
		answers && return
		kill -0 "$pid" 2>/dev/null || break
		sleep 0.05
	done
	fail "noh serve $* does not answer" "$(cat "$tmp/log")"
	return 1
}
# Asks it to stop; it must do so in time, and call it a success.
stop_server() {
	local rc i
	kill -TERM "$pid"
	for i in $(seq 300); do kill -0 "$pid" 2>/dev/null || break; sleep 0.05; done
	kill -0 "$pid" 2>/dev/null && { fail "noh serve does not stop"; kill -KILL "$pid"; }
	wait "$pid"
	rc=$?
	pid=
	[ $rc -eq 0 ] && ok || fail "noh serve ended with $rc"
}
# The kernel closes the sockets of a ring a moment after its process is gone: until then some who connect get nowhere.
kill_server() {
	local i
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null
	pid=
	for i in $(seq 100); do (exec 3<> "/dev/tcp/127.0.0.1/$port") 2>/dev/null || break; sleep 0.05; done
}
finish() {
	printf '%d passed, %d failed\n' $passed $failed
	[ $failed -eq 0 ]
	exit
}
