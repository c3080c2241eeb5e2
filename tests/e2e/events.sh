#!/bin/bash
# tests/e2e/events.sh [path/to/noh] - events, supervision and what tells of them, from outside: a server whose actors fail and tell
# events (tests/e2e/flaky.c), asked by curl, redis-cli and noh: events tail, wait, describe, tree, quarantine. It is killed and
# comes back: no event is missed, none comes twice. The last line: "N passed, N failed".
set -u
cd "$(dirname "$0")/../.." || exit 1
noh=$(realpath "${1:-out/plain/noh}")
unset ${!NOH_*} ${!ACTOR_*} NO_COLOR
. tests/e2e/server.sh
has() { command -v "$1" > /dev/null; }
program=$(dirname "$noh")/tests/e2e/flaky
make --no-print-directory -s "${program#"$PWD"/}" || { echo "0 passed, 1 failed"; exit 1; }
port=$(free_port) http=$(free_port)
url=http://127.0.0.1:$http
export NOH_URL=$url
background=''
trap 'for p in $background; do kill "$p" 2> /dev/null; done; tidy' EXIT

start_flaky() {
	local i
	: > "$tmp/said"
	"$program" "$tmp/data" "$port" "$http" > "$tmp/said" 2>> "$tmp/log" < /dev/null &
	pid=$!
	for i in $(seq 300); do grep -qx ready "$tmp/said" && return; sleep 0.05; done
	fail "the server does not come up"
	finish
}
tell() { timeout 30 "$noh" invoke "$@" > "$tmp/out" 2>&1; }   # address, kind, message
behind() {   # file, command...: in the background; its pid in $last
	local file=$1
	shift
	"$@" > "$file" 2>&1 < /dev/null &
	last=$!
	background="$background $last"
}
ends() {   # what, exit code, pid, where it wrote
	local rc
	wait "$3"
	rc=$?
	if [ $rc -eq "$2" ]; then ok; else fail "$1: exit $rc, not $2" "${4:+$(tail -n 5 "$4")}"; fi
}

start_flaky

# ── tail ──
behind "$tmp/tail" "$noh" events tail --actor worker:7
tail_all=$last
tell worker:7 apply revision=3
comes "events tail shows an actor's events as they come" 'applied +worker:7 +revision 3' "$tmp/tail"   # CLI-01
tell worker:8 note '{"a": 1}'
tell worker:7 note '{"b": [2, 3]}'
comes "with what they say" 'note +worker:7 .*\{"b": \[2, 3\]\}' "$tmp/tail"
grep -q 'worker:8' "$tmp/tail" && fail "tail --actor shows another actor" "$(cat "$tmp/tail")" || ok
expect 0 'worker:8.*"a": 1' events tail --no-follow -n 100
expect 0 '^\{"seq":[0-9]+,"at":"20.*"kind":"note"' events tail --no-follow --json --kind note
expect 0 'applied' events tail --no-follow --type worker --since 1h
got=$("$noh" events tail --no-follow --since 2990-01-01T00:00:00Z 2>&1)
[ -z "$got" ] && ok || fail "tail --since a time to come tells something" "$got"
expect 2 'RFC 3339' events tail --since 2001-02-30
expect 2 '--since' events tail --since soon
expect 2 'neither' events tail --cursor 1 --last 1
expect 2 'from 0 to 1000' events tail -n 1001
expect 2 'newest event has the number' events tail --cursor 123456789
expect 2 'did you mean noh events tail' events tial
expect 3 'no type' events tail --actor nope:1
expect 75 'nobody listens' events tail --url "http://127.0.0.1:$(free_port)"

# ── describe ──
tell worker:7 error
is "describe has all six fields" 6 bash -c "'$noh' describe worker:7 | grep -cE '^(desired revision|observed revision|reconcile error|restarts|last failure|mailbox depth) '"   # CLI-03
expect 0 'desired revision +3' describe worker:7
expect 0 'observed revision +3' describe worker:7
expect 0 'reconcile error +the other side says no' describe worker:7
expect 0 'restarts +0' describe worker:7
expect 0 'last failure +-' describe worker:7
expect 0 'mailbox depth +0' describe worker:7
expect 0 'applied +worker:7 +revision 3' describe worker:7
expect 0 'state +inactive' describe worker:never
expect 0 '"desired_revision":3,"observed_revision":3,"reconcile_error":"the other side says no","restarts":0' describe worker:7 --json
expect 3 'no type' describe nope:1
expect 2 'missing' describe

# ── wait ──
behind "$tmp/waited" "$noh" wait --actor worker:9 --for 'state=active and revision>=3' --timeout 30s
waiter=$last
tell worker:9 apply revision=2
tell worker:9 apply revision=3
ends "wait ends when its condition holds" 0 "$waiter"   # CLI-02
comes "and says how it is" 'worker:9: state active, revision 3 of 3' "$tmp/waited"
expect 0 'revision 3' wait worker:9 --for 'revision=desired' --timeout 5s
expect 4 'not so in time: state active, revision 3' wait --actor worker:9 --for 'revision>3' --timeout 300ms
expect 2 'at 1: there is no field "stat"; did you mean state' wait --actor worker:9 --for 'stat=active'
expect 2 'at 14: ' wait --actor worker:9 --for 'state=active revision=3'
expect 2 'for what' wait --actor worker:9
expect 2 'for whom' wait --for 'state=active'
expect 3 'no type' wait --actor nope:1 --for 'state=active'
expect 75 'nobody listens' wait --actor worker:9 --for 'state=active' --url "http://127.0.0.1:$(free_port)"
behind "$tmp/waited" "$noh" wait worker:9 --for "event=note" --timeout 30s
waiter=$last
for i in $(seq 100); do tell worker:9 note; kill -0 "$waiter" 2> /dev/null || break; sleep 0.1; done
ends "wait for an event" 0 "$waiter"

# ── supervision ──
expect 0 'no actor supervises' tree
tell keeper:home start
expect 0 '^keeper:home  active' tree
"$noh" tree > "$tmp/tree"
is "children are below their supervisor, in order" '├─ worker:1 ├─ worker:2 └─ worker:3' bash -c "sed -n 's/\(.─ worker:[0-9]\).*/\1/p' '$tmp/tree' | xargs"   # SUP-10 SUP-11
expect 0 'parent +keeper:home' describe worker:2
expect 0 '^none$' quarantine list
behind "$tmp/unwell" "$noh" wait worker:2 --for 'state=quarantined' --timeout 30s
waiter=$last
timeout 30 "$noh" send worker:2 fail > "$tmp/out" 2>&1
ends "an actor that fails too often is quarantined" 0 "$waiter"   # SUP-06
expect 0 'worker:2 +quarantined +[1-9].* a worker of 2 broke' quarantine list
expect 0 'worker:2  quarantined.*a worker of 2 broke' tree
expect 0 'last failure +a worker of 2 broke' describe worker:2
expect 0 'state +quarantined' status worker:2
expect 0 'restarts +[1-9]' status worker:2
expect 0 'last failure +a worker of 2 broke \(2' status worker:2
expect 0 '"state":"quarantined","restarts":[1-9][0-9]*,"last_failure":"a worker of 2 broke","last_failure_at":"2[^"]*Z","retry_at":null' status worker:2 --json
expect 0 '"actor_address":"worker:2".*"state":"quarantined"' list --all --type worker --json
expect 75 '^noh invoke: worker:2 is quarantined: a worker of 2 broke; noh quarantine resume worker:2$' invoke worker:2 note
expect 0 'failed +worker:2' events tail --no-follow --actor worker:2 -n 100
expect 0 'restarted +worker:2' events tail --no-follow --actor worker:2 -n 100
expect 0 'quarantined +worker:2' events tail --no-follow --actor worker:2 -n 100
expect 0 '"quarantined":\[\{"actor_address":"worker:2","state":"quarantined"' quarantine list --type worker --json
expect 0 'degraded' pool   # SUP-05
is "resume lets it begin anew" 'worker:2 resumed' "$noh" quarantine resume worker:2   # SUP-07
expect 0 '\{\}' invoke worker:2 note
expect 0 '"state":"active","restarts":[1-9][0-9]*,"last_failure":"a worker of 2 broke"' status worker:2 --json
expect 0 'healthy' pool
expect 0 'admin +worker:2 .*default asked for "quarantine resume worker:2"' events tail --no-follow --actor worker:2 -n 100
expect 3 'nothing to resume' quarantine resume worker:2
expect 3 'no type' quarantine resume nope
expect 0 '^none$' quarantine list

# ── by other clients ──
if has redis-cli; then
	cli=$tmp/cli
	printf '#!/bin/sh\nexec redis-cli -p %s "$@"\n' "$port" > "$cli"
	chmod +x "$cli"
	like "EVENTS.READ by redis-cli" 'applied' "$cli" EVENTS.READ KIND applied COUNT 1
	like "ACTOR.DESCRIBE by redis-cli" 'observed_revision' "$cli" ACTOR.DESCRIBE worker:7
	like "ACTOR.STATUS tells of the last failure" 'a worker of 2 broke' "$cli" ACTOR.STATUS worker:2
	like "ACTOR.TREE by redis-cli" 'worker:3' "$cli" ACTOR.TREE keeper:home
	like "COMMAND DOCS knows it" 'Events behind a cursor' "$cli" COMMAND DOCS events.read
	behind "$tmp/blocked" redis-cli -p "$port" EVENTS.READ CURSOR '$' KIND note ACTOR worker:5 BLOCK 20000
	waiter=$last
	for i in $(seq 100); do tell worker:5 note; kill -0 "$waiter" 2> /dev/null || break; sleep 0.1; done
	ends "a command that waits for an event gets it" 0 "$waiter"
	comes "whole" 'worker:5' "$tmp/blocked"
else
	skip "redis-cli is not installed"
fi
if has curl; then
	behind "$tmp/sse" curl -sSN "$url/events?actor=worker:6"
	comes "a stream begins at once" '^retry: 1000' "$tmp/sse"
	tell worker:6 apply revision=1
	tell worker:6 apply revision=2
	comes "a stream for curl" '^data: \{"seq":[0-9]+,.*"revision":2,' "$tmp/sse"
	is "where to begin is said once" 400 curl -s -o "$tmp/both" -w '%{http_code}' "$url/events?last=5&cursor=1"
	comes "and the answer says so" 'give one of them' "$tmp/both"
	is "describe takes both names of the field" 200 curl -s -o /dev/null -w '%{http_code}' "$url/actor/describe?actor_address=worker:6"
	is "so does resume" 404 curl -s -o /dev/null -w '%{http_code}' -H 'Content-Type: application/json' -d '{"actor_address":"worker:6"}' "$url/admin/quarantine/resume"
	is "but one of them there must be" 422 curl -s -o /dev/null -w '%{http_code}' -H 'Content-Type: application/json' -d '{}' "$url/admin/quarantine/resume"
	is "OpenAPI knows the new paths" 5 bash -c "curl -s $url/openapi.json | grep -oE '\"/(events|actor/describe|actor/tree|admin/quarantine/list|admin/quarantine/resume)\":' | wc -l"
else
	skip "curl is not installed"
fi

# ── killed, and back ──
kill_server
comes "tail says how to go on" 'go on with --cursor [0-9]+$' "$tmp/tail"
ends "and that the server has gone" 75 "$tail_all"
cursor=$(sed -n 's/.*--cursor //p' "$tmp/tail")
before=$(tail -n 2 "$tmp/tail" | head -n 1 | awk '{print $1}')
[ "$before" = "$cursor" ] && ok || fail "the cursor is $cursor, the last event told $before"
start_flaky
tell worker:7 apply revision=4
"$noh" events tail --no-follow --actor worker:7 --cursor "$cursor" > "$tmp/after" 2>&1
is "behind the cursor comes what is new, once" "1 applied" bash -c "grep -c 'revision 4' '$tmp/after' | tr '\n' ' '; awk '{print \$3}' '$tmp/after' | sort -u | grep applied"
"$noh" events tail --no-follow --cursor 0 --json > "$tmp/all" 2>&1
is "numbers have no gaps, also across the crash" fine bash -c "sed -n 's/^{\"seq\":\([0-9]*\),.*/\1/p' '$tmp/all' | awk 'NR > 1 && \$1 != last + 1 { bad = 1 } { last = \$1 } END { print bad || NR < 10 ? \"gaps\" : \"fine\" }'"
like "why it failed is known after a crash" 'last failure +a worker of 2 broke' "$noh" describe worker:2   # SUP-17
like "so is the revision it has" 'observed revision +4' "$noh" describe worker:7   # SUP-15

# ── many ──
newest=$("$noh" events tail --no-follow -n 1 --json | sed -n 's/^{"seq":\([0-9]*\),.*/\1/p')
behind "$tmp/flood" "$noh" events tail --kind flood --cursor "$newest" --json
flood=$last
for i in $(seq 20); do tell worker:6 flood n=100; done
for i in $(seq 400); do [ "$(grep -c '"kind":"flood"' "$tmp/flood")" -ge 2000 ] && break; sleep 0.05; done
is "two thousand events, each once, in order" fine bash -c "sed -n 's/^{\"seq\":\([0-9]*\),.*/\1/p' '$tmp/flood' | awk 'NR > 1 && \$1 <= last { bad = 1 } { last = \$1 } END { print bad || NR != 2000 ? NR : \"fine\" }'"
kill -TERM "$pid"
comes "a server that stops says so" 'stopping; go on behind the cursor when it is back; go on with --cursor' "$tmp/flood"
ends "tail ends with it" 75 "$flood"
wait "$pid"
[ $? -eq 0 ] && ok || fail "the server did not end well"
pid=

# ── a server that begins anew: its events have lower numbers ──
start_flaky
behind "$tmp/waited" "$noh" wait worker:9 --for "event=note" --timeout 60s
waiter=$last
for i in $(seq 200); do curl -s "$url/metrics" | grep -q '^noh_requests_total.*"StreamEvents"} [1-9]' && break; sleep 0.05; done   # it has looked, and listens
kill_server
rm -rf "$tmp/data"
start_flaky
for i in $(seq 150); do tell worker:9 note; kill -0 "$waiter" 2> /dev/null || break; sleep 0.1; done
kill "$waiter" 2> /dev/null && fail "a wait does not see what happens on a server that has begun anew"
ends "a wait goes on with a server that has begun anew" 0 "$waiter" "$tmp/waited"
stop_server
finish
