#!/bin/bash
# tests/e2e/limits.sh [path/to/noh] - limits of types and noh drain, by real clients: what is over a rate waits or is refused,
# limits change under those who wait, and a server that is drained finishes what it has, says how far it is, and ends.
set -u
cd "$(dirname "$0")/../.." || exit 1
noh=$(realpath "${1:-out/plain/noh}")
command -v redis-cli > /dev/null || { echo "limits: skipped, redis-cli is not installed"; exit 77; }
unset ${!NOH_*} ${!ACTOR_*}
. tests/e2e/server.sh
cd "$tmp" || exit 1
http=$(free_port)
export NOH_DATA_DIR=$tmp/data
# Small programs, so that is and like can run them.
mkdir bin && export PATH=$tmp/bin:$PATH
program() { printf '#!/bin/bash\n%s\n' "$2" > "bin/$1"; chmod +x "bin/$1"; }
program redis 'exec timeout 60 redis-cli -p "$PORT" "$@"'
program page 'exec curl -sS --max-time 10 "http://127.0.0.1:$HTTP$1"'
program post 'body=$(mktemp -p "$HOME_OF_TEST"); curl -sS --max-time 30 -H "Content-Type: application/json" -d "$2" -w "%{http_code} %header{retry-after} " -o "$body" "http://127.0.0.1:$HTTP$1"; cat "$body"'
port=$(free_port)
export PORT=$port HTTP=$http HOME_OF_TEST=$tmp
wait_for() {   # what, pattern, command...
	local what=$1 pattern=$2 i
	shift 2
	for i in $(seq 300); do "$@" 2>/dev/null | grep -qE -- "$pattern" && { ok; return; }; sleep 0.05; done
	fail "$what" "$("$@" 2>&1 | head -n 5)"
}
settings() {   # lines of [limits]
	printf '[limits]\n%s\n' "$*" > noh.conf
}
ends_with() {   # exit code, what it shows
	local rc i
	for i in $(seq 600); do kill -0 "$pid" 2>/dev/null || break; sleep 0.05; done
	kill -0 "$pid" 2>/dev/null && { fail "$2: it does not end"; kill_server; return; }
	wait "$pid"
	rc=$?
	pid=
	[ $rc -eq "$1" ] && ok || fail "$2: exit $rc, not $1"
}

# ── refused: three at once, then one in a hundred seconds ──
settings 'rate = "counter=0.01:3"
over = "counter=refuse"'
start_server --http-port "$http" --config noh.conf || finish
for i in 1 2 3; do is "a burst is let in" "$i" redis incr hits; done                                                # MB-11
like "what is over the rate is refused, and told when to try again" '^RATE all actors of type counter together take 0.01 messages a second, 3 at once: nothing was sent, try again in [0-9]+ ms' redis incr hits   # MB-11 CLI-06
like "over HTTP it is 429 with a time to wait" '^429 (9[0-9]|100) .*"code":"over_rate"' post /actor/invoke '{"actor_address":"counter:hits","message_type":"incr","message":{}}'   # MB-11
like "a step is refused as a whole" '^RATE ' redis mset a 1 b 2
is "other types have their own" 5 redis inv.restock shoes 5
like "who was refused is counted" '^noh_messages_dropped_total\{type="counter",reason="rate"\} 3$' page /metrics
like "INFO tells it, too" 'type_counter:.*refused_rate=3,' redis info types

# ── other limits, while it runs ──
settings 'actor_rate = "counter=0.01:2"'
like "a reload changes them" 'limits.actor_rate: "" -> "counter=0.01:2"' "$noh" config reload --config noh.conf     # MB-11
is "each has a bucket of its own, full" 4 redis incr hits
is "a token is left" 5 redis incr hits
is "another actor has its own" 1 redis incr other
redis incr hits > waits 2>&1 & client=$!
wait_for "who is over its rate rests, with its message" '^noh_actors_resting\{type="counter",reason="rate"\} 1$' page /metrics   # MB-11
is "another one's quota is its own" 1 redis incr another                                                          # CLI-06
like "its status says so" 'waiting +[01] \(it rests\)' "$noh" status counter:hits                                    # MB-11
[ ! -s waits ] && ok || fail "a message over the rate was answered" "$(cat waits)"
settings 'actor_rate = "counter=2000"'
like "a reload lets it go on" 'changed +limits.actor_rate' "$noh" config reload --config noh.conf
wait "$client"
is "the message that waited was handled" 6 cat waits
settings 'rate = "nobody=5"'
like "a type that there is not is an error, and nothing changes" 'there is no type "nobody"' "$noh" config reload --config noh.conf
settings 'rate = "counter=fast"'
like "a rate that is none is an error" 'has "fast" for counter, which is not RATE or RATE:BURST' "$noh" config check noh.conf
stop_server
settings 'rate = "nobody=5"'
"$noh" serve --resp-port 0 --unix "$sock" --config noh.conf > out 2>&1; rc=$?
[ $rc -eq 2 ] && grep -q 'noh.conf:2: limits.rate: there is no type "nobody"' out && ok || fail "a start with limits of nobody (exit $rc)" "$(cat out)"

# ── drained: a hundred messages wait, at twenty-five a second ──
start_server --http-port "$http" --limit-actor-rate counter=25:1 || finish
is "nobody drains it yet" $'draining\n0\nactors\n0\nmessages\n0\nleft_ms\n0' redis drain status
printf 'INCR slow\r\n%.0s' $(seq 100) | timeout 60 redis-cli -p "$port" --pipe > pipe 2>&1 & sender=$!
wait_for "a hundred wait" '^noh_messages_accepted_total\{type="counter"\} 100$' page /metrics
"$noh" drain --deadline 60s > drained 2> progress & drain=$!
wait_for "readyz says so" '"reason":"draining"' page /readyz                                                        # CLI-05
like "new work is refused with advice" '^STOPPING the server is draining before it ends; nothing was changed: ask another one' redis incr hits   # CLI-05
like "over HTTP it is 503" '^503 1 .*draining.*"code":"stopping"' post /actor/invoke '{"actor_address":"counter:hits","message_type":"incr","message":{}}'   # CLI-05
like "a step, too" '^STOPPING ' redis mset a 1 b 2
like "and what is published" '^STOPPING ' redis publish news hello
like "healthz is fine" '"status":"ok"' page /healthz
like "how far it is can be asked for" '^draining 1 actors 1 messages [1-9]' bash -c "redis-cli -p $port drain status | tr '\n' ' '"
like "over HTTP as well" '^200  .*"draining":true,"drained":false,"actors":1,"messages":[1-9]' post /admin/drain/status '{}'
wait "$drain"; rc=$?
[ $rc -eq 0 ] && ok || fail "noh drain: exit $rc" "$(cat drained progress)"                                        # CLI-05
like "it says that nothing is left" '^drained: nothing is left, and the server has ended$' cat drained              # CLI-05
like "and has shown how far it was" '^1 actors, [1-9][0-9]* messages left, [0-9]+ s to go$' cat progress            # CLI-05
ends_with 0 "a server that is drained"
like "its log says how far it was" 'draining: 1 actors and [0-9]+ messages left' cat log
like "and that it was drained" 'drained in' cat log
wait "$sender"
like "who had asked before was answered" 'errors: 0, replies: 100' cat pipe                                         # CLI-05

# ── not all of it in time; by RESP; by a signal ──
start_server --http-port "$http" --limit-actor-rate counter=0.01:1 || finish
is "all that waited was done" 100 redis get slow
redis incr slow > /dev/null 2>&1 &
wait_for "one waits" '^noh_actors_resting\{type="counter",reason="rate"\} 1$' page /metrics
"$noh" drain --deadline 300ms > drained 2>&1; rc=$?
[ $rc -eq 1 ] && grep -q '1 actors are still in memory and 1 messages not handled after 300 ms' drained && ok || fail "a drain that takes too long (exit $rc)" "$(cat drained)"   # CLI-05
ends_with 1 "a server with something left"
wait
start_server --http-port "$http" --log-level info || finish
is "DRAIN answers when it is over" OK redis drain deadline 20000
ends_with 0 "a server that was told DRAIN"
like "its log says who asked" 'default asked for "drain"' cat log
start_server --http-port "$http" --limit-actor-rate counter=0.01:1 --stop-deadline 500ms || finish
redis incr a > /dev/null 2>&1
redis incr a > /dev/null 2>&1 &
wait_for "one waits again" '^noh_actors_resting\{type="counter",reason="rate"\} 1$' page /metrics
is "NOWAIT answers at once" OK redis drain deadline 3600000 nowait
like "so does HTTP, with the deadline that counts" '^202 .*"draining":true,"drained":false,.*"left_ms":3[56][0-9]{5}\}' post /admin/drain '{"deadline_ms":3600000}'
wait_for "it drains" '"reason":"draining"' page /readyz
kill -TERM "$pid"
ends_with 1 "a drain that a signal cuts short is a stop with its own deadline"
wait
start_server --http-port "$http" --shutdown=false || finish
like "a server may be told not to end by command" 'does not end by command; send it SIGTERM' redis drain
like "nor by HTTP" '^403 .*"code":"not_allowed"' post /admin/drain '{}'
stop_server
"$noh" drain > drained 2>&1; rc=$?
[ $rc -eq 75 ] && ok || fail "noh drain without a server: exit $rc" "$(cat drained)"

# ── no more files for connections: who came meanwhile waits, and is served when there are some again ──
out_of_files() {   # how it talks to the kernel
	local fd served=0 fds=() line i
	noh=$tmp/bin/few_files start_server --io "$1" || finish
	is "more connections than files" OK redis config set maxclients 1000
	for i in $(seq 320); do exec {fd}<> "/dev/tcp/127.0.0.1/$port" && fds+=("$fd") && printf 'PING\r\n' >&"$fd"; done
	for fd in "${fds[@]}"; do read -r -t 2 line <&"$fd" || break; served=$((served + 1)); done
	[ $served -lt 200 ] && ok || fail "$1: $served are served with 200 files"
	for fd in "${fds[@]:0:160}"; do exec {fd}>&-; done
	[ $served -gt 160 ] || served=160                # a worker that came late may have had none for one of the first
	for fd in "${fds[@]:served}"; do read -r -t 5 line <&"$fd" || { fail "$1: not all are let in when there are files again"; break; }; done
	is "and whoever comes then" PONG timeout 5 redis-cli -p "$port" PING                                                 # P11
	for fd in "${fds[@]:160}"; do exec {fd}>&-; done
	stop_server
}
program few_files "ulimit -n 200; exec '$noh' \"\$@\""
for io in auto epoll; do out_of_files $io; done
finish
