#!/bin/bash
# tests/e2e/cli.sh [path/to/noh] - the command line of a running server, as a new user meets it: from --help alone to an item
# that is reserved and committed; every verb, its JSON, its exit codes; who may do what; completion and manual page.
set -u
cd "$(dirname "$0")/../.." || exit 1
noh=$(realpath "${1:-out/plain/noh}")
unset ${!NOH_*} ${!ACTOR_*} NO_COLOR
. tests/e2e/server.sh
cd "$tmp" || exit 1
http=
# The n-th example of a verb's help that has this word, without what explains it.
example() {   # verb, word
	"$noh" "$1" --help | sed -n '/^Examples$/,/^$/p' | grep -F -- "$2" | head -n 1 | sed 's/^ *noh //; s/     .*//'
}

# ── from nothing to a committed item, by what --help says ──
"$noh" > overview 2>&1
grep -q 'noh VERB --help' overview && ok || fail "the overview does not lead on" "$(cat overview)"
verb=$(sed -n 's/^  \([a-z]*\) .*send a message to an actor and print its answer.*/\1/p' overview)
[ "$verb" = invoke ] && ok || fail "the overview does not name the verb that asks an actor"
port=$(free_port) http=$(free_port)
start_server --http-port "$http" || finish
for step in restock 'reserve n=2' commit; do
	words=$(example invoke "$step")
	[ "$words" ] || fail "noh invoke --help has no example of $step"
	# shellcheck disable=SC2086
	expect 0 '"outcome":"ok"' $words --data data
done
expect 0 '"on_hand":8,.*"sold":2' invoke inventory:shoes get --data data
# The same by curl: what the help shows, word for word but for the port.
if command -v curl > /dev/null; then
	"$noh" invoke --help | sed -n '/^The same with curl$/,/^$/p' | sed '1d' | sed "s/localhost:5012/localhost:$http/; s/curl /curl -sS -w '\\n' /" > by_curl
	bash by_curl > said_curl 2>&1
	is "restocked, reserved and committed by curl" 3 grep -c '"outcome":"ok"' said_curl
	is "and told what else there is" 1 grep -c '"openapi":' said_curl
	expect 0 '"on_hand":8,.*"sold":2' invoke inventory:boots get --data data
else
	skip "curl is not installed"
fi
export NOH_DATA_DIR=$tmp/data          # from here on, as a setting

# ── messages ──
expect 0 '"value":5' invoke counter:hits incr by=5
expect 0 '"value":6' invoke counter:hits incr
expect 0 '"value":9' invoke counter:hits incr '{"by": 3}'
is "a message from stdin" '{"outcome":"ok","value":10,"applied":1}' bash -c "echo '{\"by\": 1}' | '$noh' invoke counter:hits incr -"
is "--json is the server's word" '{"response":{"outcome":"ok","value":10}}' "$noh" invoke counter:hits get --json
expect 0 '^accepted$' send counter:hits incr by=-10
expect 0 '^accepted$' send counter:later incr by=4 --delay 300ms
for i in $(seq 100); do "$noh" invoke counter:later get | grep -q '"value":4' && break; sleep 0.1; done
expect 0 '"value":4' invoke counter:later get
expect 0 '^accepted$' send counter:muchlater incr --delay 1d
expect 0 'later:counter:muchlater' schedule list
back=$("$noh" send counter/muchlater incr --delay 2d | sed -n 's/.*to take it back: noh //p')
# shellcheck disable=SC2086
expect 0 '"id":"[0-9]*-2"' $back
# shellcheck disable=SC2086
expect 1 'the actor says no.*no such message waits' $back
expect 0 '^accepted$' send counter:muchlater incr --delay 2d
# To cancel the timer is to forget what waits; what comes then arrives as ever.
expect 0 '^cancelled$' schedule cancel later:counter:muchlater due
expect 3 'has no timer' schedule cancel later:counter:muchlater due
expect 0 '"waiting":0' invoke later:counter:muchlater list
expect 0 '^accepted$' send counter:muchlater incr by=6 --delay 300ms
for i in $(seq 100); do "$noh" invoke counter:muchlater get | grep -q '"value":6' && break; sleep 0.1; done
expect 0 '"value":6' invoke counter:muchlater get
expect 0 '"accepted":true' send counter:hits incr by=0 --json
expect 0 '"value":0' invoke counter:hits get
expect 0 '"outcome":"ok"' invoke counter:big set value=9223372036854775807
expect 0 '"value":9223372036854775807' invoke counter:big get
expect 0 '"value":7' invoke counter:once incr by=7 --idem order-1
expect 0 'used before' invoke counter:once incr by=7 --idem order-1
expect 0 '"value":7' invoke counter:once get
expect 2 'another' invoke counter:once incr by=8 --idem order-1
expect 2 'no JSON object' invoke counter:hits incr '{"by": 1,}'
expect 2 'no JSON object' invoke counter:hits incr '{"by": 1, "by": 2}'
expect 2 'neither JSON' invoke counter:hits incr five
expect 2 'has no message "nonsense"|no message' invoke counter:hits nonsense
expect 2 'kind of the message is missing' invoke counter:hits
expect 2 'no colon|not an address|address' invoke nocolon get
expect 3 'no type "nope"' invoke nope:x get
expect 2 'UTF-8' invoke $'counter:\xff' get
expect 2 'did you mean --idem' invoke counter:hits incr --iden x

# ── actors ──
expect 0 'active +yes' status counter:hits
expect 0 '"is_active":true' status counter:hits --json
expect 0 'active +no' status counter:never
expect 0 '^active$' activate counter:fresh
expect 0 'active already' activate counter:fresh
expect 0 'back in storage' deactivate counter:fresh
expect 0 '^it was not active$' deactivate counter:fresh
expect 0 'back in storage' deactivate counter:hits --force
expect 0 '"value":0' invoke counter:hits get
for i in $(seq 12); do "$noh" send counter:n$i incr > sent 2>&1 || fail "send" "$(cat sent)"; done
expect 0 'counter:n7 ' list --type counter
expect 0 '"actors":\[' list --json
# Page by page comes to all of them.
cursor='' found=0
while :; do
	page=$("$noh" list --type counter --limit 5 --all --json ${cursor:+--cursor "$cursor"})
	found=$((found + $(grep -o 'counter:n[0-9]*"' <<< "$page" | wc -l)))
	cursor=$(sed -n 's/.*"next_cursor":"\([^"]*\)".*/\1/p' <<< "$page")
	[ "$cursor" ] || break
done
[ "$found" -ge 12 ] && ok || fail "pages of a list have $found of 12 counters"
expect 2 'from 1 to 1000' list --limit 0
expect 0 '1 of 1 nodes healthy' pool
expect 0 '"total_nodes":1' pool --json

# ── timers ──
expect 0 '"reservation":2' invoke inventory:shoes reserve n=1 ttl_ms=3600000
expect 0 'inventory:shoes +expire' schedule list
expect 0 '"message_type":"expire"' schedule list --type inventory --json
expect 0 'nothing is scheduled' schedule list --type counter
expect 0 '^cancelled$' schedule cancel inventory:shoes expire
expect 3 'has no timer' schedule cancel inventory:shoes expire
expect 0 'nothing is scheduled' schedule list --actor inventory:shoes
expect 2 'not both' schedule list --type inventory --actor inventory:shoes
expect 3 'no type' schedule cancel nope:x expire

# ── messages that were set aside: none here; those there are, are tests/box/dead_test.c's ──
expect 0 '^none$' dead list
expect 0 '"dead":\[\],"next_cursor":null,"complete":true' dead list --json
expect 3 'none of this id' dead show 1-1
expect 2 'no id of a message' dead show x-y
expect 3 'none of this id' dead redrive 1-1
expect 0 '^0 redriven$' dead redrive --all
expect 2 '--yes' dead purge --all
expect 0 '^0 purged$' dead purge --all --yes
expect 3 'none of this id' dead purge 1-1
expect 2 'which\?' dead redrive

# ── all that can be asked for over HTTP can be asked for here ──
expect 0 'state +active' describe counter:hits
expect 0 'no actor supervises' tree
expect 0 '^none$' quarantine list
expect 3 'nothing to resume' quarantine resume counter:hits
expect 0 '' events tail --no-follow -n 1
expect 3 'trace' trace show 4bf92f3577b34da6a3ce929d0e0e4736
expect 3 '"code":"no_such_trace"' trace show 4bf92f3577b34da6a3ce929d0e0e4736 --json
expect 0 'nothing has changed|no change|changed' config reload
expect 0 'WORKER' top --once --every 100ms
expect 0 'ready' doctor
if command -v curl > /dev/null; then
	# By operationId: what the document offers against what was asked for by now, by noh alone but for this document. Those that
	# are missing end the server: tests/e2e/limits.sh.
	curl -s "http://127.0.0.1:$http/metrics" | sed -n 's/^noh_requests_total{protocol="http",op="\([^"]*\)"} [1-9].*/\1/p' | sort -u > used
	curl -s "http://127.0.0.1:$http/openapi.json" | grep -o '"operationId":"[^"]*"' | cut -d'"' -f4 | sort -u > offered
	is "every operation of the API has a verb" 'Drain GetDrain' bash -c "comm -13 used offered | xargs"   # CLI-04
	[ "$(wc -l < offered)" -ge 25 ] && ok || fail "the document offers $(wc -l < offered) operations"
else
	skip "curl is not installed"
fi

# ── which server ──
expect 0 'active' status counter:hits --url "http://127.0.0.1:$http"
expect 0 'active' status counter:hits --socket data/http.sock
is "by environment" 0 bash -c "env -u NOH_DATA_DIR NOH_URL=http://127.0.0.1:$http '$noh' status counter:hits > out; echo \$?"
expect 75 'nobody listens' status counter:hits --url "http://127.0.0.1:$(free_port)"
expect 75 'no server' status counter:hits --socket nowhere.sock
expect 2 'TLS' status counter:hits --url https://127.0.0.1:1
expect 1 'HTTP port' status counter:hits --url "http://127.0.0.1:$port"
expect 2 '--timeout 5' status counter:hits --timeout 5
(exec 3<> "/dev/tcp/127.0.0.1/$http") 2> /dev/null && ok || fail "the HTTP port is not open"

# ── users ──
token=$("$noh" user add ann | sed -n 's/^ *token *//p')
boss=$("$noh" user add boss --role admin | sed -n 's/^ *token *//p')
# The server looks at the file every second or so: when it knows the second of them, it knows both.
for i in $(seq 100); do
	"$noh" pool --url "http://127.0.0.1:$http" --token "$boss" > out 2>&1 && ! "$noh" pool --url "http://127.0.0.1:$http" > out 2>&1 && break
	sleep 0.1
done
expect 1 'token' status counter:hits --url "http://127.0.0.1:$http"
echo "$token" > token; echo "$boss" > boss
expect 0 'active' status counter:hits --url "http://127.0.0.1:$http" --token-file token
expect 0 'active' status counter:hits --url "http://127.0.0.1:$http" --token "$token"
is "a token by environment" 0 bash -c "NOH_TOKEN=$token '$noh' status counter:hits --url http://127.0.0.1:$http > out; echo \$?"
is "a token's file by environment" 0 bash -c "NOH_TOKEN_FILE=token '$noh' status counter:hits --url http://127.0.0.1:$http > out; echo \$?"
expect 1 'role' pool --url "http://127.0.0.1:$http" --token-file token
expect 1 'role' dead list --url "http://127.0.0.1:$http" --token-file token
expect 0 'healthy' pool --url "http://127.0.0.1:$http" --token-file boss
expect 1 'right token' status counter:hits --url "http://127.0.0.1:$http" --token wrong
expect 0 'healthy' pool                    # whoever may open its socket is an admin
expect 2 'token-file' pool --token-file nowhere

# ── a server that is gone, and one that stops ──
stop_server
expect 75 'noh serve' status counter:hits

# ── for programs ──
printf '[net]\nbnid = 127.0.0.1\n[node]\nnodes = 5\n' > typo.conf
is "what is wrong with settings" '{ "valid": false, "errors": ["typo.conf:2: there is no key bnid in [net]; did you mean bind?"], "warnings": [] }' \
	bash -c "'$noh' config check --json typo.conf || [ \$? = 2 ]"
is "what is right" '{ "valid": true, "errors": [], "warnings": [] }' "$noh" config check --json
expect 2 '"valid": false' config check --json --bind 0.0.0.0 --data nowhere
is "a user is added" 0 bash -c "'$noh' user add eve --role developer --json --users-file accounts > added; echo \$?"
grep -qE '^\{ "name": "eve", "role": "developer", "token": "[A-Za-z0-9_-]{40,}" \}$' added && ok || fail "noh user add --json" "$(cat added)"
is "and revoked" '{ "name": "eve", "revoked": true }' "$noh" user revoke eve --json --users-file accounts

# ── help, completion, manual page ──
expect 2 'did you mean noh invoke' invok
expect 0 'Exit code' help invoke
expect 0 '^noh ' version
expect 0 '"version": "' version --json
for v in $("$noh" | sed -n 's/^  \([a-z]*\)  *[a-z"].*/\1/p' | sort -u); do
	[ "$v" = noh ] || [ "$v" = cc ] && continue
	help=$("$noh" "$v" --help 2>&1)
	[ $? -eq 0 ] && grep -q '^usage: noh' <<< "$help" && grep -q 'noh '"$v" <<< "$help" && ok || fail "noh $v --help" "$help"
done
"$noh" help --man > noh.1
if command -v man > /dev/null && command -v groff > /dev/null; then
	MANWIDTH=80 man -l --warnings=w noh.1 > page 2> warnings
	[ -s page ] && [ ! -s warnings ] && ok || fail "the manual page" "$(cat warnings)"
fi
grep -q '^.SS "noh invoke"' noh.1 && grep -q 'http' noh.1 && ok || fail "the manual page lacks a verb"
"$noh" completion bash > completion.bash && bash -n completion.bash && ok || fail "completion for bash"
# Words of a line, the last one being typed.
cat > complete_words <<'END'
. ./completion.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _noh; echo "${COMPREPLY[@]}"
END
is "bash completes a verb" invoke bash complete_words noh inv
is "bash completes an option" --idem bash complete_words noh invoke counter:a incr --id
is "bash completes an action" redrive bash complete_words noh dead re
is "bash completes a setting" --http-port bash complete_words noh serve --http-po
for s in zsh fish; do
	"$noh" completion $s > completion.$s && grep -q redrive completion.$s && ok || fail "completion for $s"
	command -v $s > /dev/null && { $s -n completion.$s && ok || fail "$s does not read its completion"; }
done
expect 2 'did you mean fish' completion fisch
finish
