#!/bin/bash
# tests/e2e/api.sh [path/to/noh] - the actor API of a real server, as a new user meets it: curl, all seven paths, roles,
# idempotency; the same things by RESP; and /openapi.json, by a validator that others wrote. What is not installed is
# skipped with a line. The last line: "N passed, N failed".
set -u
cd "$(dirname "$0")/../.." || exit 1
noh=${1:-out/plain/noh}
. tests/e2e/server.sh
hport=$(free_port)
url=http://127.0.0.1:$hport
has() { command -v "$1" >/dev/null; }
has curl || { skip "curl is not installed"; finish; }

# post PATH JSON [curl options]: "STATUS body"; the head is in $tmp/head.
post=$tmp/post
cat > "$post" <<END
#!/bin/bash
path=\$1 json=\$2
shift 2
body=\$(curl -sS -m 20 -D $tmp/head -w '\n%{http_code}' -H 'Content-Type: application/json' -d "\$json" "\$@" "$url\$path") || exit 1
printf '%s %s\n' "\${body##*\$'\n'}" "\$(head -n 1 <<< "\$body")"
END
chmod +x "$post"
to() { printf '{"actor_address":"%s","message_type":"%s","message":%s}' "$1" "$2" "$3"; }
time='"20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z"'

messages() {
	local id
	like "send" '^202 \{"accepted":true,"actor_node":"box-1"\}$' "$post" /actor/send "$(to counter:hits incr '{"by":41}')"
	is "invoke" '200 {"response":{"outcome":"ok","value":42,"applied":1}}' "$post" /actor/invoke "$(to counter:hits incr '{}')"
	is "the same counter by RESP" 43 redis-cli -p "$port" INCR hits
	is "and back" '200 {"response":{"outcome":"ok","value":43}}' "$post" /actor/invoke "$(to counter:hits get '{}')"
	is "beyond 2^53" '200 {"response":{"outcome":"ok","previous":null}}' "$post" /actor/invoke "$(to counter:big set '{"value":9007199254740993}')"
	is "exact by RESP" 9007199254740994 redis-cli -p "$port" INCR big
	is "exact by JSON" '200 {"response":{"outcome":"ok","value":9007199254740994}}' "$post" /actor/invoke "$(to counter:big get '{}')"
	is "a limit of a rate" '200 {"response":{"outcome":"out_of_bounds","value":9007199254740994,"applied":0}}' "$post" /actor/invoke "$(to counter:big incr '{"by":1,"high":10}')"
	like "a message for later" '^202 \{"accepted":true' "$post" /actor/send '{"actor_address":"counter:soon","message_type":"incr","message":{"by":7},"delay_ms":1500}'
	is "is not there yet" '200 {"response":{"outcome":"not_found","value":null}}' "$post" /actor/invoke "$(to counter:soon get '{}')"
	for _ in $(seq 100); do [ "$(redis-cli -p "$port" GET soon)" = 7 ] && break; sleep 0.05; done
	is "arrives" '200 {"response":{"outcome":"ok","value":7}}' "$post" /actor/invoke "$(to counter:soon get '{}')"
	is "JSON for later by RESP" OK redis-cli -p "$port" ACTOR.SEND counter:json_later incr '{"by":5}' DELAY 300
	is "and with a key" OK redis-cli -p "$port" ACTOR.SEND counter/json_once incr '{"by":9}' DELAY 300 IDEM once
	is "the same once more" OK redis-cli -p "$port" ACTOR.SEND counter/json_once incr '{"by":9}' DELAY 300 IDEM once
	like "what is wrong with it is said at once" 'NOKIND|by' redis-cli -p "$port" ACTOR.SEND counter:json_later incr '{"by":"x"}' DELAY 300
	like "no object" 'takes a JSON object' redis-cli -p "$port" ACTOR.SEND counter:json_later incr '[1]' DELAY 300
	for _ in $(seq 100); do [ "$(redis-cli -p "$port" GET json_later)" = 5 ] && [ "$(redis-cli -p "$port" GET json_once)" = 9 ] && break; sleep 0.05; done
	is "arrives as any other" 5 redis-cli -p "$port" GET json_later
	is "once" 9 redis-cli -p "$port" GET json_once
	like "a message for later has an id" "^202 \\{\"accepted\":true,\"actor_node\":\"box-1\",\"later\":\\{\"id\":\"[0-9]+-1\",\"due_at\":$time\\}\\}$" \
		"$post" /actor/send '{"actor_address":"counter/regret","message_type":"incr","message":{"by":7},"delay_ms":3600000}'
	is "another, by RESP" OK redis-cli -p "$port" ACTOR.SEND counter/regret incr '{"by":8}' DELAY 7200000
	like "both wait" '"waiting":2,"messages":\[\{"id":"[0-9]+-1",.*"id":"[0-9]+-2","due_at":"[^"]*","message_type":"add","kind":1,"size":8\}\],"next_cursor":null' \
		"$post" /actor/invoke "$(to later:counter:regret list '{}')"
	id=$("$post" /actor/invoke "$(to later:counter:regret list '{"limit":1}')" | sed -n 's/.*"next_cursor":"\([^"]*\)".*/\1/p')
	like "the first is taken back" "^200 \\{\"response\":\\{\"id\":\"$id\"" "$post" /actor/invoke "$(to later:counter:regret cancel "{\"id\":\"$id\"}")"
	like "once" '^409 .*"code":"refused".*no such message waits' "$post" /actor/invoke "$(to later:counter:regret cancel "{\"id\":\"$id\"}")"
	like "what is no id" '^422 .*no id of a message' "$post" /actor/invoke "$(to later:counter:regret cancel '{"id":"x-1"}')"
	like "by RESP as well" '"id":"[0-9]+-2"' redis-cli -p "$port" ACTOR.INVOKE later:counter:regret cancel \
		"{\"id\":\"$(redis-cli -p "$port" ACTOR.INVOKE later:counter:regret list '' | grep -oE '[0-9]+-2')\"}"
	like "nothing is left" '"is_active":[a-z]*,.*"exists":false' "$post" /actor/status '{"actor_address":"later:counter:regret"}'
	like "later than a year" '^422 .*delay_ms' "$post" /actor/send '{"actor_address":"counter:soon","message_type":"incr","message":{},"delay_ms":99999999999}'
	like "bad JSON" '^400 .*"code":"bad_json"' "$post" /actor/invoke '{"actor_address":'
	like "a name twice" '^400 .*twice' "$post" /actor/invoke '{"actor_address":"counter:a","actor_address":"counter:b"}'
	like "an unknown type" '^404 .*"code":"no_type"' "$post" /actor/invoke "$(to cow:a moo '{}')"
	like "an unknown message" '^422 .*"code":"no_kind"' "$post" /actor/invoke "$(to counter:a moo '{}')"
	like "an unknown field" '^422 .*there is no field' "$post" /actor/invoke "$(to counter:a incr '{"buy":1}')"
	like "not JSON by its type" "^415$" curl -sS -o /dev/null -w "%{http_code}" -H "Content-Type: text/plain" -d "$(to counter:a get {})" "$url/actor/invoke"
	like "no body of GET" '^405$' curl -sS -o /dev/null -w '%{http_code}' "$url/actor/invoke"
}
# From nothing to a sold item, by one protocol and the other.
inventory() {
	is "restock" '200 {"response":{"outcome":"ok","on_hand":5,"reserved":0,"available":5,"sold":0,"holds":0,"restocked":5,"adjusted":0}}' "$post" /actor/invoke "$(to inventory:tv restock '{"n":5}')"
	like "reserve" "^200 \{\"response\":\{\"outcome\":\"ok\",\"reservation\":1,\"expires_at\":$time,\"available\":3\}\}$" "$post" /actor/invoke "$(to inventory:tv reserve '{"n":2,"ttl_ms":600000}')" -H 'Idempotency-Key: "order-1"'
	like "not replayed" '^HTTP/1.1 200' grep -v Idempotency-Replayed "$tmp/head"
	like "reserve again" '^200 .*"reservation":1,.*"available":3' "$post" /actor/invoke "$(to inventory:tv reserve '{"n":2,"ttl_ms":600000}')" -H 'Idempotency-Key: order-1'
	like "replayed" '^Idempotency-Replayed: true' cat "$tmp/head"
	like "another body" '^422 .*"code":"idempotency_conflict"' "$post" /actor/invoke "$(to inventory:tv reserve '{"n":3}')" -H 'Idempotency-Key: order-1'
	is "the same reservation by RESP" $'1\n3' redis-cli -p "$port" INV.RESERVE tv 2 TTL 600 IDEM order-1
	is "sold out is an answer" '200 {"response":{"outcome":"out_of_stock","available":3}}' "$post" /actor/invoke "$(to inventory:tv reserve '{"n":9}')"
	is "committed by RESP" 2 redis-cli -p "$port" INV.COMMIT tv 1
	is "and known here" '200 {"response":{"outcome":"committed","reservation":1,"n":2}}' "$post" /actor/invoke "$(to inventory:tv release '{"reservation":1}')"
	is "the stock" '200 {"response":{"outcome":"ok","on_hand":3,"reserved":0,"available":3,"sold":2,"holds":0,"restocked":5,"adjusted":0}}' "$post" /actor/invoke "$(to inventory:tv get '{}')"
}
looking() {
	like "status of nobody" '^200 .*"is_active":false,"node_id":"box-1","activated_at":null,"last_message_at":null,"messages_processed":0,"mailbox_size":0' "$post" /actor/status '{"actor_address":"counter:nobody"}'
	like "status" "^200 .*\"is_active\":true,\"node_id\":\"box-1\",\"activated_at\":$time,\"last_message_at\":$time" "$post" /actor/status '{"actor_address":"counter:hits"}'
	like "activate" "^200 \{\"actor_address\":\"counter:new\",\"node_id\":\"box-1\",\"already_active\":false,\"activated_at\":$time\}$" "$post" /actor/activate '{"actor_address":"counter:new"}'
	like "activate again" '^200 .*"already_active":true' "$post" /actor/activate '{"actor_address":"counter:new"}'
	is "deactivate" '200 {"actor_address":"counter:hits","was_active":true,"messages_drained":0}' "$post" /actor/deactivate '{"actor_address":"counter:hits"}'
	is "deactivate again" '200 {"actor_address":"counter:hits","was_active":false,"messages_drained":0}' "$post" /actor/deactivate '{"actor_address":"counter:hits","force":true}'
	like "list" '^200 \{"actors":\[\{"actor_address":"inventory:tv","is_active":true' "$post" /actor/list '{"actor_type":"inventory"}'
	like "list of all" '"actor_address":"counter:hits","is_active":false' "$post" /actor/list '{"active_only":false,"actor_type":"counter"}'
	like "pages" '"next_cursor":"a[0-9]+"' "$post" /actor/list '{"limit":1}'
	like "pool" '^200 \{"total_nodes":1,"healthy_nodes":1,"total_actors_active":[0-9]+,"total_capacity":[0-9]+,"utilization_percent":[0-9.]+,"nodes":\[\{"node_id":"box-1"' "$post" /actor/pool/status '{}'
}
openapi() {
	local dir=out/openapi code
	like "the document" '^\{"openapi":"3' curl -sS "$url/openapi.json"
	for code in $(curl -sS "$url/openapi.json" | grep -oE '"code":"[a-z_]+","status"' | cut -d'"' -f4 | sort -u); do
		grep -q "\`$code\`" docs/http.md && ok || fail "docs/http.md says nothing of $code"
	done
	for code in $(grep -ohE '\b[1-5][0-9]{2}, "[a-z_]+", ' net/http*.c net/rest*.c | cut -d'"' -f2 | sort -u); do
		grep -q "\`$code\`" docs/http.md && ok || fail "docs/http.md says nothing of $code"
	done
	has node && has npm || { skip "openapi: node and npm are not installed"; return; }
	mkdir -p $dir
	if ! cmp -s tests/e2e/openapi/package-lock.json $dir/package-lock.json || [ ! -d $dir/node_modules/ajv ]; then
		cp tests/e2e/openapi/package.json tests/e2e/openapi/package-lock.json $dir/
		timeout 120 npm ci --prefix $dir --no-audit --no-fund --ignore-scripts > "$tmp/npm" 2>&1 ||
			{ rm -rf $dir; skip "openapi: $(tail -n 1 "$tmp/npm")"; return; }
	fi
	cp tests/e2e/openapi/check.mjs $dir/
	is "the document is valid, and answers are as it says" fine node $dir/check.mjs "$url"
}
# After a crash the key is known, and the node has its name.
restart() {
	kill_server
	start_server --http-port "$hport" --node-id box-1 || finish
	like "replayed after a crash" '^200 .*"reservation":1,' "$post" /actor/invoke "$(to inventory:tv reserve '{"n":2,"ttl_ms":600000}')" -H 'Idempotency-Key: order-1'
	like "and marked" '^Idempotency-Replayed: true' cat "$tmp/head"
	is "the counter" '200 {"response":{"outcome":"ok","value":43}}' "$post" /actor/invoke "$(to counter:hits get '{}')"
}
# A node without a name keeps the one it was given at first.
node_id() {
	local first
	stop_server
	start_server --http-port "$hport" || finish
	first=$("$post" /actor/send "$(to counter:x incr '{}')")
	like "a node's own name" '"actor_node":"[0-9a-f]{16}"' echo "$first"
	stop_server
	start_server --http-port "$hport" || finish
	is "stays" "$first" "$post" /actor/send "$(to counter:x incr '{}')"
	stop_server
}
roles() {
	local role path
	rm -rf "$tmp/data"
	for role in user developer admin; do
		"$noh" user add "$role" --role "$role" --users-file "$tmp/users" > "$tmp/$role" 2>&1 || fail "noh user add" "$(cat "$tmp/$role")"
	done
	answers() { curl -sS -o /dev/null "$url/readyz" 2>/dev/null; }   # PING needs a log-in now
	start_server --http-port "$hport" --users-file "$tmp/users" || finish
	like "nobody" '^401 ' "$post" /actor/invoke "$(to counter:a get '{}')"
	like "nobody is told how" '^WWW-Authenticate: Bearer' cat "$tmp/head"
	while read -r role path want; do
		like "$role, $path" "^$want " "$post" "$path" "$([ "${path#/actor/pool}" = "$path" ] && [ "$path" != /actor/list ] && echo '{"actor_address":"counter:a"}' || echo '{}')" \
			-H "Authorization: Bearer $(token "$role")"
	done <<- END
		user /actor/status 200
		user /actor/activate 403
		user /actor/list 403
		user /actor/pool/status 403
		developer /actor/status 200
		developer /actor/activate 200
		developer /actor/deactivate 200
		developer /actor/list 200
		developer /actor/pool/status 403
		admin /actor/activate 200
		admin /actor/list 200
		admin /actor/pool/status 200
	END
	stop_server
}
token() { grep -oE '[A-Za-z0-9_-]{30,}' "$tmp/$1" | head -n 1; }

has redis-cli || { skip "redis-tools is not installed"; finish; }
start_server --http-port "$hport" --node-id box-1 || finish
messages
inventory
looking
openapi
restart
node_id
roles
finish
