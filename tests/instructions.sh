#!/bin/bash
# The bar on the path of a message: ping-pong within one worker, instructions per message (callgrind,
# so the same on a busy machine). Prints one line; fails above the bar.
set -u
cd "$(dirname "$0")/.." || exit 1
BAR=${BAR:-250}
command -v valgrind >/dev/null || { echo "instructions: skipped, valgrind is not installed"; exit 77; }
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT
total() { # n -> instructions of the process that ran the benchmark
	valgrind --tool=callgrind --callgrind-out-file="$dir/$1.%p" \
		out/plain/noh bench ping-pong --workers 1 --raw --n "$1" >"$dir/$1.log" 2>&1 || { cat "$dir/$1.log"; exit 1; }
	awk '/^(summary|totals):/ { if ($2 > most) most = $2 } END { printf "%.0f", most }' "$dir/$1".[0-9]*
}
few=$(total 100000) && many=$(total 300000) || exit 1
per=$(((many - few) / 400000))   # n there and n back
echo "instructions: $per a message (the bar is $BAR)"
[ "$per" -gt 0 ] && [ "$per" -le "$BAR" ]
