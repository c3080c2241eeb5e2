#!/bin/bash
# tests/e2e/metrics.sh [path/to/noh] - /metrics of a real server, as Prometheus's own tool sees it; the alerts and the
# dashboard that come with it. What is not installed is skipped with a line. The last line: "N passed, N failed".
set -u
cd "$(dirname "$0")/../.." || exit 1
noh=${1:-out/plain/noh}
. tests/e2e/server.sh
hport=$(free_port)
url=http://127.0.0.1:$hport
hsock=$tmp/data/http.sock
has() { command -v "$1" >/dev/null; }
has curl || { skip "curl is not installed"; finish; }
code=$tmp/code
printf '#!/bin/sh\nexec curl -sS -m 20 -o /dev/null -w "%%{http_code}" "$@"\n' > "$code"
chmod +x "$code"
say() { printf "$1" | timeout 10 bash -c "exec 3<> /dev/tcp/127.0.0.1/$port; cat >&3; head -n $2 <&3" > /dev/null; }
# The value of one series; -: there is none.
number() { curl -sS "$url/metrics" | awk -v name="$1" 'index($0, name " ") == 1 { print $NF; found = 1 } END { if (!found) print "-" }'; }
export -f number
export url
value() { is "$1" "$2" bash -c 'number "$0"' "$1"; }

check_text() {   # on this backend
	local text=$tmp/text
	curl -sS "$url/metrics" > "$text"
	if has promtool; then
		is "promtool check metrics, $1" "" sh -c "promtool check metrics < '$text'"
	else skip "promtool is not installed"; fi
	like "what is running, $1" "noh_build_info\\{version=\"[0-9.]+\",commit=\"[0-9a-z]+\",io_backend=\"$1\",allocator=\"jemalloc\"\\} 1" cat "$text"
	is "no series twice" "" sh -c "grep -v '^#' '$text' | sed 's/ [^ ]*\$//' | sort | uniq -d"
	is "no actor's id, no key" "" sh -c "! grep -E 'shoe|order-' '$text'"
}
# Every HELP and TYPE stands once, before its samples, and the end is marked.
check_openmetrics() {
	curl -sS -H 'Accept: application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5' "$url/metrics" > "$tmp/open"
	is "OpenMetrics ends with a mark" "# EOF" tail -n 1 "$tmp/open"
	like "OpenMetrics is what it says" '^[Cc]ontent-[Tt]ype: application/openmetrics-text; version=1.0.0; charset=utf-8' \
		curl -sSI -H 'Accept: application/openmetrics-text' "$url/metrics"
	like "else it is plain text" '^[Cc]ontent-[Tt]ype: text/plain; version=0.0.4; charset=utf-8' curl -sSI "$url/metrics"
	like "who does not want it does not get it" 'text/plain' \
		curl -sSI -H 'Accept: application/openmetrics-text;q=0, text/plain' "$url/metrics"
	local python
	for python in python3 /usr/bin/python3; do "$python" -c 'import prometheus_client' 2>/dev/null && break; python=; done
	if [ "$python" ]; then
		is "an OpenMetrics parser reads it" "ok" "$python" -c 'import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse
names = [f.name for f in parse(open(sys.argv[1]).read())]
print("ok" if "noh_messages_accepted" in names and len(names) == len(set(names)) else names)' "$tmp/open"
	else skip "python3-prometheus-client is not installed"; fi
}
exact_counts() {
	local connections
	say 'INCR shoe\r\nINCR shoe\r\nINCRBY shoe 5 IDEM order-1\r\nINCRBY shoe 5 IDEM order-1\r\nINCRBY shoe 5 IDEM order-1\r\nGET shoe\r\nNOSUCH\r\n' 7
	value 'noh_requests_total{protocol="resp",op="incr"}' 2
	value 'noh_requests_total{protocol="resp",op="incrby"}' 3
	value 'noh_idempotent_replays_total{protocol="resp"}' 2
	value 'noh_messages_accepted_total{type="counter"}' 6
	value 'noh_messages_processed_total{type="counter",result="ok"}' 6
	value 'noh_mailbox_depth{type="counter"}' 0
	value 'noh_actors_active{type="counter"}' 1
	value 'noh_actors_stored{type="counter"}' 1
	value 'noh_request_errors_total' 1
	# The one that asks; the one before it may still be closing.
	for _ in $(seq 100); do connections=$(number 'noh_connections{protocol="http"}'); [ "$connections" = 1 ] && break; sleep 0.02; done
	is "who asks is connected, and nobody else" 1 echo "$connections"
	value 'noh_requests_total{protocol="resp",op="get"}' 1
	is "HEAD" 200 "$code" -I "$url/metrics"
	is "nothing is changed through it" 405 "$code" -d x "$url/metrics"
	is "through the Unix socket" 200 "$code" --unix-socket "$hsock" http://any/metrics
	like "its own requests are counted" '^[1-9][0-9]*$' bash -c 'number "$0"' 'noh_requests_total{protocol="http",op="metrics"}'
	like "and how long they take" '^[1-9][0-9]*$' bash -c 'number "$0"' 'noh_request_duration_seconds_count{protocol="http",op="metrics"}'
	like "and how long commands take" '^[1-9][0-9]*$' bash -c 'number "$0"' 'noh_invoke_duration_seconds_count{type="counter"}'
}
rules() {
	has promtool || { skip "promtool is not installed"; return; }
	cp packaging/prometheus/noh.rules.yml tests/e2e/metrics.rules.yml "$tmp/"
	like "promtool check rules" 'SUCCESS: 5 rules found' promtool check rules "$tmp/noh.rules.yml"
	like "promtool test rules" 'SUCCESS' promtool test rules "$tmp/metrics.rules.yml"
	if has python3; then
		is "the dashboard is JSON" ok python3 -c 'import json; d = json.load(open("packaging/grafana/noh.json")); ids = [p["id"] for p in d["panels"]]; print("ok" if len(ids) == len(set(ids)) > 20 else ids)'
	fi
}

for io in auto epoll; do
	rm -rf "$tmp/data"
	start_server --http-port "$hport" --io "$io" || finish
	exact_counts
	[ "$io" = epoll ] && check_text epoll || check_text '(io_uring|epoll)'
	check_openmetrics
	stop_server
done
rules
finish
