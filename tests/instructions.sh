#!/bin/bash
# The bars on the path of a message, in instructions (callgrind, so the same on a busy machine): ping-pong within one
# worker; a message to an actor that a thousand others rest for; one of a run to each of sixty; one between a mall and its
# visitors; a new actor, told something and heard; a failure with its restart, whose supervisor has a hundred thousand children
# or one thousand: it must not matter. Prints one line each; fails above a bar.
set -u
cd "$(dirname "$0")/.." || exit 1
BAR=${BAR:-250}
command -v valgrind >/dev/null || { echo "instructions: skipped, valgrind is not installed"; exit 77; }
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT
total() { # benchmark n [option] -> instructions of the process that ran it
	valgrind --tool=callgrind --callgrind-out-file="$dir/$1.$2$3.%p" \
		out/plain/noh bench "$1" --workers 1 --raw --n "$2" $3 >"$dir/$1.$2$3.log" 2>&1 || { cat "$dir/$1.$2$3.log" >&2; exit 1; }
	awk '/^(summary|totals):/ { if ($2 > most) most = $2 } END { printf "%.0f", most }' "$dir/$1.$2$3".[0-9]*
}
check() { # benchmark few many operations-of-one-n bar what [option]
	local least most
	least=$(total "$1" "$2" "${7-}") && most=$(total "$1" "$3" "${7-}") || exit 1
	per=$(((most - least) / (($3 - $2) * $4)))
	echo "instructions: $per $6 (the bar is $5)"
	[ "$per" -gt 0 ] && [ "$per" -le "$5" ]
}
failed=0
check ping-pong 100000 300000 2 "$BAR" "a message" || failed=1
check ping-pong 100000 300000 2 $((per + 10)) "a message with all events told, and nothing to tell" --all-events || failed=1
check fan-in-1000 100000 300000 1 275 "a message of a thousand senders to one" || failed=1
check fork-join-throughput 2000 6000 60 300 "a message of one sender to sixty" || failed=1
check chameneos 20000 60000 4 325 "a message of a crowd that meets at one" || failed=1
check fork-join-create 100000 300000 1 1200 "a new actor" || failed=1
check restart 2000 6000 1 11500 "a failure and its restart, of 100,000 children" || failed=1
check restart 200 600 1 12500 "a failure and its restart, of 1,000 children" --smoke || failed=1
exit $failed
