#!/bin/bash
# tools/commands.sh [--check] - make net/command_slots.h and docs/commands.md from the table of commands
# (net/command_table.c), or only say whether they are up to date.
set -eu
cd "$(dirname "$0")/.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
program=out/plain/tests/net/commands_doc
make --no-print-directory -s CC=gcc SAN= "$program"
"$program" --slots > "$tmp/slots"
"$program" > "$tmp/page"
if [ "${1:-}" = --check ]; then
	diff net/command_slots.h "$tmp/slots" && diff docs/commands.md "$tmp/page" && exit 0
	echo "run tools/commands.sh"
	exit 1
fi
cmp -s "$tmp/slots" net/command_slots.h || cp "$tmp/slots" net/command_slots.h
cmp -s "$tmp/page" docs/commands.md || cp "$tmp/page" docs/commands.md
