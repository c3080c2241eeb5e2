#!/bin/bash
# tests/e2e/examples.sh [directory of the built examples] - what examples/zoo.c and examples/node show, looked at from
# outside. Both check themselves as well: they end with 0 only if all is right. Without a directory noh is installed into a
# temporary place, and the examples are built against it. The last line: "N passed, N failed".
set -u
cd "$(dirname "$0")/../.." || exit 1
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
programs=${1:-} passed=0 failed=0
if [ -z "$programs" ]; then
	programs=$tmp
	make -s install PREFIX="$tmp/prefix" > "$tmp/install" 2>&1 || { cat "$tmp/install"; exit 1; }
	export PKG_CONFIG_PATH=$tmp/prefix/lib/pkgconfig LD_LIBRARY_PATH=$tmp/prefix/lib
	make -s -C examples OUT="$tmp" "$tmp/zoo" "$tmp/node_agent" > "$tmp/install" 2>&1 || { cat "$tmp/install"; exit 1; }
fi
shows() {   # sentence, command...
	local what=$1
	shift
	if "$@" > "$tmp/said" 2>&1; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		printf 'FAIL  %s\n' "$what"
		sed 's/^/      /' "$tmp/said"
	fi
}
runs() { timeout 120 "$@" > "$tmp/out" 2>&1 || { echo "exit $?"; grep WRONG "$tmp/out"; tail -n 30 "$tmp/out"; return 1; }; }
has() {   # extended patterns, all of which must be in the output
	local p
	for p in "$@"; do
		grep -qE -- "$p" "$tmp/out" || { echo "no line has \"$p\""; return 1; }
	done
}
below() {   # parent, child...: in the tree, each child is one step further right, behind its parent
	local parent=$1 child
	shift
	for child in "$@"; do
		awk -v parent="$parent" -v child="$child" '
			{ match($0, /^ */); depth = RLENGTH }
			index($1, parent ":") == 1 { at = depth; inside = 1; next }
			inside && depth <= at { inside = 0 }
			inside && depth == at + 3 && index($1, child ":") == 1 { found = 1 }
			END { exit !found }' "$tmp/out" || { echo "$child is not below $parent"; return 1; }
	done
}
node_tree() {
	below node_supervisor control_plane_stream instance_supervisor volume_supervisor overlay_supervisor \
		image_cache_supervisor observability_supervisor &&
		below instance_supervisor instance && below volume_supervisor volume_attachment &&
		below overlay_supervisor wireguard && below image_cache_supervisor image_pull image_gc &&
		below observability_supervisor log_tail metrics_scrape
}

given_up() {
	has 'so it is: +degraded' 'so it is: +stopped' 'so it is: +quarantined' 'so it is: +awaiting' &&
		has 'somebody says: resume' 'a higher revision comes'
}
phases() {
	has 'instance:web +reconcile.phase +converging > active' 'instance:api +reconcile.phase +active > draining' \
		'instance:db +reconcile.phase +stopping > stopped'
}
tried_again() { has 'reconcile.failed .*device is busy' 'reconcile.phase +retrying > converging'; }
one_by_one() { has 'wireguard:wg0 +reconcile.action +converging > remove peer' 'wireguard:wg0 +reconcile.action +converging > add peer'; }

shows "every policy of supervision does in the zoo what it says" runs "$programs/zoo"   # SUP-01 SUP-02 SUP-03 SUP-18
shows "who failed too often is degraded, stopped or quarantined, or awaits a revision, and comes back" given_up   # SUP-04 SUP-05 SUP-06 SUP-07
shows "the events of the zoo tell who failed and was restarted" has 'cat:b +failed .*bit its keeper' 'cat:b +restarted'   # EV-02

shows "a node agent converges while three of ten calls to its devices fail" runs "$programs/node_agent" "$tmp/node"   # EX-12 UC-16 RC-10
shows "its supervision tree is printed as it was designed" node_tree   # SUP-10 SUP-11
shows "at most one pull per digest, and all who wait share its result" has 'All is as desired' 'image_pull:sha-aaa .*pull'   # SUP-14
shows "instances go through their phases, and each is an event" phases   # RC-04 RC-05
shows "failed calls are told, and tried again" tried_again   # SUP-09
shows "peers are changed one by one, and no more than needed" one_by_one   # RC-06 RC-02
shows "what comes after a restart is read from the durable cursor" has 'Act 3' 'revision 22 of 22'   # SUP-13 SUP-15
seed=$RANDOM
shows "by other chances, too: seed $seed" runs "$programs/node_agent" "$tmp/other" "$seed"
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
