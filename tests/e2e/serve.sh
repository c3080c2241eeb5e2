#!/bin/bash
# tests/e2e/serve.sh [path/to/noh] - the server's command line, as a user meets it: flags, settings, users, signals,
# exit codes. The last line: "N passed, N failed". What a client can ask for is tested elsewhere.
set -u
cd "$(dirname "$0")/../.." || exit 1
noh=$(realpath "${1:-out/plain/noh}")
tmp=$(mktemp -d) || exit 1
pid=
cleanup() { [ "$pid" ] && kill -9 "$pid" 2>/dev/null; rm -rf "$tmp"; }
trap cleanup EXIT
cd "$tmp" || exit 1
unset ${!NOH_*} ${!ACTOR_*} NOTIFY_SOCKET JOURNAL_STREAM
export NOH_HTTP_PORT=0
passed=0 failed=0
: > out; : > err

ok() { passed=$((passed + 1)); }
fail() {
	failed=$((failed + 1))
	printf 'FAIL  %s\n' "$1"
	sed 's/^/      /' out err
}
holds() {   # what, command...
	local what=$1
	shift
	if "$@" > /dev/null 2>&1; then ok; else fail "$what"; fi
}
# Run noh; expect an exit code, and a pattern in what it says (stdout and stderr).
expect() {   # code, pattern, words...
	local code=$1 pattern=$2 rc
	shift 2
	timeout 20 "$noh" "$@" > out 2> err < /dev/null
	rc=$?
	if [ $rc -ne "$code" ]; then
		fail "noh $*: exit $rc, not $code"
	elif ! cat out err | grep -qE -- "$pattern"; then
		fail "noh $*: does not say \"$pattern\""
	elif [ "$code" -eq 2 ] && [ "$(wc -l < err)" -gt 1 ]; then
		fail "noh $*: more than one sentence"
	else
		ok
	fi
}
wait_for() {   # pattern, files...
	local i pattern=$1
	shift
	for ((i = 0; i < 200; i++)); do
		cat "$@" | grep -qE -- "$pattern" && return 0
		sleep 0.05
	done
	return 1
}
# A server on a Unix socket of its own: no port that somebody else may have.
start() {   # words...
	: > out; : > err
	"$noh" serve --resp-port 0 --unix "$tmp/s" "$@" > out 2> err < /dev/null &
	pid=$!
	wait_for 'ready in' out err || { fail "noh serve $*: not ready"; return 1; }
}
ended() {   # code, what
	wait "$pid" 2> /dev/null
	local rc=$?
	pid=
	if [ $rc -eq "$1" ]; then ok; else fail "$2: exit $rc, not $1"; fi
}

# ── words ──
expect 0 '^  serve ' 
expect 0 '^  serve ' --help
expect 2 'did you mean noh serve\?' sevre
expect 0 '^usage: noh serve' serve --help
expect 0 '^usage: noh serve' help serve
expect 0 '^  --resp-port N .*7411' serve --help
expect 0 '^usage: noh user' user --help
expect 0 '^usage: noh config' config --help
expect 2 'there is no option --memry; did you mean --memory\?' serve --memry 5GiB
expect 2 'one word too many: "now"' serve now
expect 2 '--memory: "200" lacks a unit' serve --memory 200
expect 2 '--workers needs a value' serve --workers
expect 2 'none of disk, memory, none' serve --durability tape
expect 2 '0.0.0.0 may be reached from elsewhere, and there are no users' serve --bind 0.0.0.0
expect 2 'without a TCP port a Unix socket is needed' serve --resp-port 0
expect 2 'cannot open the configuration file nowhere.conf' serve --config nowhere.conf
expect 1 'is not empty and not a data directory' serve --data / --resp-port 0 --unix s
holds "nothing was made by what failed" test ! -e noh-data

# ── settings ──
printf '[net]\nbimd = ::1\n[box]\nmemory = 1GiB\nworkers = many\n' > bad.conf
printf '# fine\n[net]\nmax_args = 100\n[log]\nlevel = info\n' > good.conf
expect 2 'bad.conf:2: there is no key bimd in \[net\]; did you mean bind\?' config check bad.conf
expect 2 'bad.conf:5: "many" is not a whole number' config check bad.conf
expect 0 'good.conf: 2 settings, all well' config check good.conf
expect 0 'no configuration file: all well, 0 users' config check
expect 0 'good.conf: all well' config check --config good.conf
expect 2 'bad.conf:2: there is no key bimd' config check --config bad.conf
NOH_NET_MAX_ARGS=1 expect 2 'NOH_NET_MAX_ARGS: "1" is not within' config check --config good.conf
expect 2 '0.0.0.0 may be reached from elsewhere' config check --bind 0.0.0.0
expect 2 'either one FILE' config check good.conf bad.conf
expect 2 'there is no option --confg; did you mean --config' config check --confg good.conf
expect 2 'cannot open' config check nowhere.conf
expect 0 '^max_args = 100 +# good.conf:3$' config show --config good.conf
expect 0 '^max_args = 300 +# --max-args$' config show --config good.conf --max-args 300
NOH_NET_MAX_ARGS=200 expect 0 '^max_args = 200 +# NOH_NET_MAX_ARGS$' config show --config good.conf
NOH_CONFIG=good.conf expect 0 '^max_args = 100 +# good.conf:3$' config show
ACTOR_DEFAULT_IDLE_TIMEOUT_SECONDS=60 expect 0 '^idle_timeout = 60s +# ACTOR_DEFAULT' config show
ACTOR_NODE_ID=n7 expect 0 '^id = n7 +# ACTOR_NODE_ID$' config show                                     # CF-01
expect 0 '^max_actors = 0 +# default$' config show                                                     # CF-02
ACTOR_MAX_PER_NODE=1000 expect 0 '^max_actors = 1000 +# ACTOR_MAX_PER_NODE$' config show                 # CF-02
expect 0 '^idle_timeout = 300s +# default$' config show                                                # CF-03
expect 0 '^mailbox_capacity = 4096 +# default$' config show                                          # CF-04
ACTOR_DEFAULT_MAILBOX_CAPACITY=100 expect 0 '^mailbox_capacity = 100 +# ACTOR_DEFAULT' config show       # CF-04
expect 0 '^claim_ttl = 90s +# default$' config show                                                    # CF-05
ACTOR_CLAIM_TTL_SECONDS=120 expect 0 '^claim_ttl = 120s +# ACTOR_CLAIM_TTL_SECONDS$' config show         # CF-05
expect 0 '^claim_refresh = 30s +# default$' config show                                                # CF-06
ACTOR_CLAIM_REFRESH_INTERVAL_SECONDS=10 expect 0 '^claim_refresh = 10s +# ACTOR_CLAIM' config show       # CF-06
ACTOR_MODE=local expect 0 '^mode = local +# ACTOR_MODE$' config show                                    # CF-07
ACTOR_MODE=control-plane expect 2 'only local works' config show                                        # CF-07
ACTOR_NODE_MODE=local expect 0 '^mode = local +# ACTOR_NODE_MODE$' config show                           # CF-08
expect 0 '^name = actor-nodes +# default$' config show                                                 # CF-10
expect 0 '^pool_type = actor-node +# default$' config show                                             # CF-10
expect 0 '^min_instances = 10 +# default$' config show                                                 # CF-11
expect 0 '^max_instances = 150 +# default$' config show                                                # CF-12
expect 0 '^scale_up_threshold = 0.8 +# default$' config show                                           # CF-13
expect 0 '^scale_down_threshold = 0.2 +# default$' config show                                         # CF-14
expect 0 '^actors_per_node = 1000 +# default$' config show                                             # CF-15
expect 0 '^partitions = 0 +# default$' config show                                                     # CF-18
NOH_HTTP_PORT= expect 0 '^port = 5012 +# default$' config show                                                       # CF-19
ACTOR_NODE_MODE=worker expect 2 'only local works' serve
ACTOR_PLACEMENT_ENDPOINT=http://x expect 0 'ACTOR_PLACEMENT_ENDPOINT is accepted, but has no effect' config show
NOH_USERS_ADMIN_TOKEN=canary-canary-canary-canary-canary expect 0 'admin_token = \(secret\)' config show
holds "a secret is not shown" test -z "$(NOH_USERS_ADMIN_TOKEN=canary-canary-canary-canary-canary "$noh" config show --json | grep canary)"
"$noh" config show --unix 'a "b\ c' > shown.conf
expect 0 'all well' config check shown.conf
expect 0 '^unix = "a \\"b\\\\ c" +# shown.conf' config show --config shown.conf
if command -v python3 > /dev/null; then
	"$noh" config show --json > out
	holds "config show --json is JSON" python3 -m json.tool out
fi

# ── serving, and its end ──
start --data d
holds "the banner says where" grep -q "  data        d (new)" out
holds "the banner says what to try" grep -qE "redis-cli -s .*/s INCR hits" out
timeout 20 "$noh" serve --data d --resp-port 0 --unix "$tmp/s2" > out2 2>&1 < /dev/null
rc=$?
holds "a directory in use is temporary: exit $rc" test $rc -eq 75
holds "and says whose it is" grep -q "in use by process $pid" out2
expect 75 "in use by process $pid" compact d
kill -TERM $pid
ended 0 "SIGTERM"
holds "it says that it stops" grep -q 'SIGTERM: stopping, at most 30s' err
start --data d --config good.conf --stop-deadline 2s
holds "what is stored is counted" grep -qE "  data        d \([0-9]+ actors? stored\)" out
printf '[net]\nmax_args = 101\n[log]\nlevel = error\n' > good.conf
kill -HUP $pid
holds "a reload tells what changed" wait_for 'log.level: "info" -> "error"' err
holds "and where" wait_for 'net.max_args: "100" -> "101" .good.conf:2.$' err
printf '[net]\nmax_args = 101\nio = epoll\n[log]\nlevel = error\n' > good.conf
kill -HUP $pid
holds "and what needs a restart" wait_for 'net.io: "auto" -> "epoll".*: needs a restart' err
printf '[net]\nmax_arg = 101\n' > good.conf
kill -HUP $pid
holds "a broken file changes nothing" wait_for 'the settings have errors, so they stay as they were' err
kill -INT $pid
ended 0 "SIGINT"
start --durability none --data never
kill -TERM $pid
ended 0 "SIGTERM, volatile"
holds "a volatile box has no directory" test ! -e never
start --data d --log-format json
if command -v python3 > /dev/null; then
	holds "a log in JSON is JSON" sh -c 'head -n 1 err | python3 -m json.tool'
fi
kill -9 "$pid"
ended 137 "kill -9"

# ── users ──
expect 2 'the name of the user is missing' user add --data d
expect 2 'is no name for a user' user add 'a b' --data d
expect 2 '--role is user, developer or admin' user add alice --role king --data d
expect 2 'did you mean noh user list' user lst
expect 0 'no users' user list --data d
expect 0 '^  token  [0-9a-f]{64}$' user add alice --role admin --data d
token=$(sed -n 's/^  token  //p' out)
expect 1 'there is a user alice already' user add alice --data d
expect 0 '^alice +admin ' user list --data d
holds "the file has the hash" grep -q "^alice admin $(printf '%s' "$token" | sha256sum | cut -d' ' -f1) " d/users
holds "and not the token" test -z "$(grep -r "$token" d)"
holds "the file is its owner's alone" test "$(stat -c %a d/users)" = 600
expect 3 'there is no user bob' user revoke bob --data d
expect 0 '^  token' user add first --data fresh
expect 0 'actors +0' inspect fresh
start --data fresh
expect 0 '^  token' user add second --data fresh --role developer
cp out user.out
holds "a running server sees a new user" wait_for 'users: 2 now' err
expect_auth() {   # code of redis-cli's answer, user, token
	redis-cli -s "$tmp/s" --user "$2" --pass "$3" --no-auth-warning PING 2>&1 | grep -q "$1"
}
if command -v redis-cli > /dev/null; then
	holds "without a token nobody gets in" sh -c "redis-cli -s $tmp/s PING | grep -q NOAUTH"
	holds "with a token one does" expect_auth PONG second "$(sed -n 's/^  token  //p' user.out)"
	holds "with a wrong one one does not" expect_auth WRONGPASS second "$token"
fi
: > err
"$noh" user revoke first --data fresh > /dev/null && "$noh" user revoke second --data fresh > /dev/null
holds "the last one revoked locks the door" wait_for 'nobody may use the server until one is added' err
if command -v redis-cli > /dev/null; then
	holds "and it is locked" sh -c "redis-cli -s $tmp/s PING | grep -q NOAUTH"
fi
: > err
echo nonsense >> fresh/users
holds "a broken accounts file changes nothing" wait_for 'fresh/users:[0-9]+: a line is.*the users stay as they were' err
kill -TERM $pid
ended 0 "SIGTERM, with users"
expect 2 'fresh/users:[0-9]+: a line is' serve --data fresh --resp-port 0 --unix "$tmp/s"
chmod 666 d/users
expect 2 'chmod 600' serve --data d --resp-port 0 --unix "$tmp/s"

# ── the service manager ──
if command -v python3 > /dev/null; then
	cat > notify.py <<'END'
import os, signal, socket, subprocess, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind("notify"); s.settimeout(20)
p = subprocess.Popen([sys.argv[1], "serve", "--data", "n", "--resp-port", "0", "--unix", "s3"],
                     env=dict(os.environ, NOTIFY_SOCKET=os.path.abspath("notify")), stderr=subprocess.DEVNULL)
first = s.recv(100); p.send_signal(signal.SIGTERM); second = s.recv(100)
sys.exit(not (first == b"READY=1" and second == b"STOPPING=1" and p.wait(20) == 0))
END
	holds "READY=1 and STOPPING=1" python3 notify.py "$noh"
fi

# ── a second signal ends it at once: while a client that reads nothing holds up the stop ──
if command -v python3 > /dev/null; then
	cat > twice.py <<'END'
import signal, socket, subprocess, sys, time
p = subprocess.Popen([sys.argv[1], "serve", "--data", "d2", "--resp-port", "0", "--unix", "s4", "--stop-deadline", "60s",
                      "--stop-patience", "60s"],
                     stdout=subprocess.PIPE, stderr=subprocess.PIPE)
while b"ready in" not in p.stdout.readline(): pass
c = socket.socket(socket.AF_UNIX); c.connect("s4"); c.settimeout(1)
try:
    for i in range(4000): c.sendall(b"*2\r\n$4\r\nECHO\r\n$10000\r\n" + b"x" * 10000 + b"\r\n")
except socket.timeout: pass
p.send_signal(signal.SIGTERM)
while b"stopping" not in p.stderr.readline(): pass
time.sleep(0.5)
if p.poll() is not None: sys.exit("the first signal was enough: exit %d" % p.returncode)
p.send_signal(signal.SIGTERM)
sys.exit(p.wait(10) != 1)
END
	holds "a second SIGTERM ends it at once, exit 1" python3 twice.py "$noh"
	expect 0 'all is well' verify d2
fi

# ── a disk that fails: it says why and ends, and the next start has what was answered ──
if command -v redis-cli > /dev/null && command -v cc > /dev/null; then
	cat > sick.c <<'END'
#include <dlfcn.h>
#include <errno.h>
#include <unistd.h>
ssize_t pwrite(int fd, const void *buf, size_t len, off_t at)
{
	ssize_t (*real)(int, const void *, size_t, off_t) = dlsym(RTLD_NEXT, "pwrite");
	if (access("sick", F_OK) == 0)
		return errno = EIO, -1;
	return real(fd, buf, len, at);
}
END
	cc -D_GNU_SOURCE -shared -fPIC sick.c -o sick.so -ldl
	ASAN_OPTIONS=verify_asan_link_order=0 LD_PRELOAD=$PWD/sick.so start --data d3 --io epoll
	holds "it writes" sh -c "redis-cli -s $tmp/s INCRBY answered 7 | grep -qx 7"
	touch sick
	timeout 10 redis-cli -s "$tmp/s" INCRBY answered 1 > sick.out 2>&1
	holds "nothing is acknowledged that was not written" sh -c '! grep -qx 8 sick.out'
	ended 1 "a disk that fails"
	holds "it says why" grep -q 'the disk failed: .*Input/output error.*; ending' err
	rm sick
	start --data d3
	holds "what was answered is there" sh -c "redis-cli -s $tmp/s GET answered | grep -qE '^(7|8)$'"
	kill -TERM $pid
	ended 0 "after the disk"
	expect 0 '^counter .* fits$' check d3
fi

printf '%d passed, %d failed\n' $passed $failed
[ $failed -eq 0 ]
