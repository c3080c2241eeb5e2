#!/bin/bash
# tests/e2e/trace.sh [path/to/noh] - traces and logs of a real server: a traceparent in, noh trace out; lines in JSON,
# levels that change while it runs, and a stderr that nobody reads. The last line: "N passed, N failed".
set -u
cd "$(dirname "$0")/../.." || exit 1
noh=${1:-out/plain/noh}
. tests/e2e/server.sh
unset JOURNAL_STREAM
has() { command -v "$1" > /dev/null; }
has redis-cli || { skip "redis-cli is not installed"; finish; }
hport=$(free_port)
url=http://127.0.0.1:$hport
id=4bf92f3577b34da6a3ce929d0e0e4736
parent=00-$id-00f067aa0ba902b7-01
port=$(free_port)
# Programs, so that they can be given a time.
cli=$tmp/cli trace=$tmp/trace
printf '#!/bin/sh\nexec redis-cli -p %s "$@"\n' "$port" > "$cli"
printf '#!/bin/sh\nexec "%s" trace "$@" --data "%s/data"\n' "$(realpath "$noh")" "$tmp" > "$trace"
chmod +x "$cli" "$trace"
exits() {   # code, what, command...
	local want=$1 what=$2 rc
	shift 2
	timeout 20 "$@" > "$tmp/out" 2> "$tmp/said" < /dev/null
	rc=$?
	if [ $rc -eq "$want" ]; then ok; else fail "$what: exit $rc, not $want" "$(cat "$tmp/out" "$tmp/said")"; fi
}

# ── traces ──
start_server --http-port "$hport" --trace-sample 0 --log-format json || finish
exits 3 "a trace nobody sent" "$trace" show $id
like "and says what it would take" 'traceparent did not say sampled' cat "$tmp/said"
"$cli" ACTOR.INVOKE counter:hits get '' TRACE $parent > /dev/null
exits 0 "a trace by RESP" "$trace" show $id
like "its actor and message" 'counter:hits get$' cat "$tmp/out"
like "its head" "^trace $id  20[0-9T:.-]+Z  [0-9.]+(us|ms|s) in all, 1 span$" cat "$tmp/out"
exits 0 "the same as JSON" "$trace" show $id --json
if has python3; then
	is "six instants, in order" ok python3 -c '
import json, sys
t = json.load(open(sys.argv[1]))
s = t["spans"][0]
at = [s[k] for k in ("received", "queued", "started", "ended", "on_disk", "answered")]
assert s["parent_id"] == "00f067aa0ba902b7" and s["span_id"] != s["parent_id"] and s["status"] == "ok"
assert all(at) and at == sorted(at), at
print("ok")' "$tmp/out"
fi
if has curl; then
	is "the same by curl" 200 curl -sS -o "$tmp/body" -w '%{http_code}' "$url/trace?id=$id"
	is "no such trace" 404 curl -sS -o "$tmp/body" -w '%{http_code}' "$url/trace?id=00000000000000000000000000000001"
	like "is a problem" '"code":"no_such_trace"' cat "$tmp/body"
	is "no trace id" 400 curl -sS -o "$tmp/body" -w '%{http_code}' "$url/trace?id=zz"
	is "a wrong question" 400 curl -sS -o "$tmp/body" -w '%{http_code}' "$url/trace?limit=0"
	is "no change by it" 405 curl -sS -o "$tmp/body" -w '%{http_code}' -X POST "$url/trace"
	other=5cf92f3577b34da6a3ce929d0e0e4737
	status=$(curl -sS -o "$tmp/body" -w '%{http_code}' -H "traceparent: 00-$other-00f067aa0ba902b7-01" \
		-H 'Content-Type: application/json' "$url/actor/invoke" \
		-d '{"actor_address":"counter:hits","message_type":"incr","message":{"by":2}}')
	if [ "$status" = 404 ]; then
		skip "this server has no /actor/invoke"
	else
		like "a traceparent by HTTP" 'counter:hits add' "$trace" show $other
	fi
fi
"$cli" CONFIG SET noh-trace-sample 1 > /dev/null
"$cli" INCR sampled > /dev/null
"$cli" CONFIG SET noh-trace-sample 0 > /dev/null
like "a request that is sampled is listed" ' counter:sampled add' "$trace" list
like "and as JSON" '"actor":"counter:sampled","kind":"add"' "$trace" list --json
exits 2 "half an id" "$trace" show 4bf92f
exits 2 "no verb" "$trace"
exits 2 "a mistyped option" "$trace" list --jsn
like "is told the right one" 'did you mean --json' cat "$tmp/said"
exits 0 "help" "$trace" --help
exits 75 "a server that is not there" "$noh" trace list --socket "$tmp/nobody"

# ── levels ──
is "a level of all, and one of a type" OK "$cli" CONFIG SET loglevel 'error counter=debug'
is "are told" $'loglevel\nerror counter=debug' "$cli" CONFIG GET loglevel
like "a type there is not" 'there is no type "nobody"' "$cli" CONFIG SET loglevel 'info nobody=debug'
like "no level" '"loud" is no level' "$cli" CONFIG SET loglevel loud
is "as Redis calls them" OK "$cli" CONFIG SET loglevel warning
is "and nothing else has changed" $'loglevel\nwarn' "$cli" CONFIG GET loglevel

# ── lines ──
"$cli" CONFIG SET loglevel debug > /dev/null
"$cli" ACTOR.SEND counter:$'evil"\n\x1b[2J' 1 'not what it takes' TRACE $parent > /dev/null 2>&1
comes "a failed turn is logged with its trace" "\"msg\":\"turn failed[^\"]*\".*\"trace_id\":\"$id\"" "$tmp/log"
comes "its actor cannot break the line" '"actor":"counter:evil\\"\\u000a\\u001b\[2J","type":"counter"' "$tmp/log"
for i in $(seq 200); do echo "ACTOR.SEND counter:flood-$i 1 x"; done | "$cli" > /dev/null 2>&1
comes "a flood of one line is told in one" '"repeated":1[0-9][0-9]' "$tmp/log"
if [ "$(grep -c 'counter:flood' "$tmp/log")" -le 12 ]; then ok; else fail "a flood is written in full"; fi
if has python3; then
	is "every line is JSON" ok python3 -c '
import json, sys
for line in open(sys.argv[1]):
    if line.startswith("{"):
        json.loads(line)
print("ok")' "$tmp/log"
fi
stop_server

# ── secrets ──
rm -rf "$tmp/data"
: > "$tmp/log"
token=$("$noh" user add dev --role developer --data "$tmp/data" | sed -n 's/^  token  //p')
user=$("$noh" user add usual --role user --data "$tmp/data" | sed -n 's/^  token  //p')
"$noh" serve --data "$tmp/data" --resp-port "$port" --http-port "$hport" --log-level debug > "$tmp/log" 2>&1 < /dev/null &
pid=$!
comes "a server with users" 'ready in' "$tmp/log"
"$cli" --user dev --pass "$token" --no-auth-warning ACTOR.SEND counter:a 1 canary-payload > /dev/null 2>&1
"$cli" --user dev --pass wrong-canary --no-auth-warning PING > /dev/null 2>&1
if has curl; then
	is "a trace is a developer's" 403 curl -sS -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $user" "$url/trace"
	is "and nobody's" 401 curl -sS -o /dev/null -w '%{http_code}' "$url/trace"
	is "who may see it" 200 curl -sS -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $token" "$url/trace"
	is "by noh, with a token" 0 sh -c "NOH_TOKEN=$token '$noh' trace list --url $url > /dev/null; echo \$?"
fi
comes "a turn that failed" 'counter:a: turn failed' "$tmp/log"
stop_server
if grep -qE "$token|canary" "$tmp/log"; then fail "a secret or a payload is in the log"; else ok; fi

# ── the journal, and a stderr that nobody reads ──
: > "$tmp/journal"
JOURNAL_STREAM=$(stat -c '%d:%i' "$tmp/journal") "$noh" serve --data "$tmp/other" --resp-port "$port" 2> "$tmp/journal" > /dev/null < /dev/null &
pid=$!
comes "in the journal lines have a priority" '^<6>noh .* ready in' "$tmp/journal"
stop_server
mkfifo "$tmp/fifo"
exec 4<> "$tmp/fifo"                      # open, and nobody reads it
timeout 1 dd if=/dev/zero of="$tmp/fifo" bs=4096 2> /dev/null   # until it is full
"$noh" serve --data "$tmp/other" --resp-port "$port" --log-level debug 2> "$tmp/fifo" > "$tmp/log" < /dev/null 4>&- &
pid=$!
for i in $(seq 200); do answers && break; sleep 0.05; done
for i in $(seq 300); do echo "ACTOR.SEND counter:$i 1 x ACK memory"; done > "$tmp/many"
is "with a stderr that nobody reads it serves on" 300 sh -c "redis-cli -p $port < '$tmp/many' | grep -c ."
is "and answers" 1 "$cli" INCR alive
stop_server
exec 4>&-
finish
