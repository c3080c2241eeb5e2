#!/bin/bash
# tests/e2e/data.sh [path/to/noh] - the verbs for data directories, as a user meets them: exit codes, one
# sentence for what is wrong, nothing changed by what only reads. The last line: "N passed, N failed".
set -u
cd "$(dirname "$0")/../.." || exit 1
noh=${1:-out/plain/noh}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
dir=$tmp/data passed=0 failed=0

fail() {
	failed=$((failed + 1))
	printf 'FAIL  %s\n' "$1"
	sed 's/^/      /' "$tmp/out" "$tmp/err"
}
# Run noh; expect an exit code, and a pattern in what it says (stdout and stderr).
expect() {   # code, pattern, words...
	local code=$1 pattern=$2 rc
	shift 2
	timeout 60 "$noh" "$@" > "$tmp/out" 2> "$tmp/err" < /dev/null
	rc=$?
	if [ $rc -ne "$code" ]; then
		fail "noh $*: exit $rc, not $code"
	elif ! cat "$tmp/out" "$tmp/err" | grep -qE -- "$pattern"; then
		fail "noh $*: does not say \"$pattern\""
	elif [ "$code" -ne 0 ] && [ "$(wc -l < "$tmp/err")" -gt 1 ]; then
		fail "noh $*: more than one sentence"
	else
		passed=$((passed + 1))
	fi
}
is_json() {   # words...
	timeout 60 "$noh" "$@" > "$tmp/out" 2> "$tmp/err"
	if ! command -v python3 >/dev/null || python3 -m json.tool < "$tmp/out" > /dev/null 2> "$tmp/err"; then
		passed=$((passed + 1))
	else
		fail "noh $*: no JSON"
	fi
}
sums() { (cd "$1" && find . -type f ! -name lock ! -name lock.mdb -exec cksum {} + | sort); }

mkdir "$dir" && tar -C "$dir" -xJf tests/golden/v1.tar.xz || exit 1
sums "$dir" > "$tmp/before"

for verb in verify inspect check backup restore compact; do
	expect 0 "^usage: noh $verb " $verb --help
	expect 0 "^usage: noh $verb " help $verb
	expect 2 'the data directory is missing' $verb
	expect 2 'did you mean|there is no option' $verb --hepl "$dir"
	expect 2 'one word too many' $verb "$dir" "$dir" "$dir"
done
for verb in verify inspect check compact; do
	expect 1 'there is no data directory .*/nothing; name one' $verb "$tmp/nothing"
done
expect 1 'there is no data directory' backup "$tmp/nothing" "$tmp/copy"
expect 1 'there is no data directory' restore "$tmp/nothing" "$tmp/copy"
expect 2 'the second directory is missing' backup "$dir"
expect 2 '--limit needs a number' inspect "$dir" --list --limit many
expect 2 'an address or --list' inspect "$dir" gold:plain --list
expect 2 'type:id' inspect "$dir" plain

expect 0 'all is well, [0-9.]+ [mu]?s$' verify "$dir"
expect 0 '^actors +6$' inspect "$dir"
expect 0 'as a number 142$' inspect "$dir" gold:plain
expect 0 'entry "three", 51 bytes' inspect "$dir" gold:entries
expect 0 'timer of kind 8, due 20[0-9-]+T[0-9:.]+Z, every 3600000 ms' inspect "$dir" gold:every
expect 0 'pending message of kind 0' inspect "$dir" gold:stuck
expect 3 'nothing is stored of gold:nobody' inspect "$dir" gold:nobody
expect 0 '^gold:late$' inspect "$dir" --list
expect 0 '^gold:entries$' inspect "$dir" --list --type gold --limit 1
expect 1 '^gold +1 +676f6c64 +6 .* not a type of this program' check "$dir"
is_json inspect "$dir" --json
is_json inspect "$dir" gold:entries --json
is_json inspect "$dir" --list --json
is_json verify "$dir" --json
is_json check "$dir" --json

expect 0 'backed up .* 6 actors in the image, up to frame 18; .*; [0-9.]+ [mu]?s$' backup "$dir" "$tmp/copy"
expect 1 'is there already' backup "$dir" "$tmp/copy"
sums "$dir" > "$tmp/after"
if cmp -s "$tmp/before" "$tmp/after"; then passed=$((passed + 1)); else fail "reading verbs changed $dir"; fi
expect 0 'restored .* verified, 6 actors' restore "$tmp/copy" "$tmp/again"
expect 0 'without accounts: .*/third/users, or add them again' restore "$tmp/copy" "$tmp/third"
: > "$tmp/third/users"
expect 0 'without the accounts: copy .*/third/users by itself' backup "$tmp/third" "$tmp/fourth"
if [ -e "$tmp/fourth/users" ]; then fail "a backup has the accounts after all"; fi
expect 1 'is there and not empty' restore "$tmp/copy" "$tmp/again"
expect 0 'compacted .* 7 actors; image .* -> .*, journal 32.0 MiB -> 4.0 KiB' compact "$tmp/again"
expect 0 'all is well' verify "$tmp/again"

printf 'x' | dd of="$tmp/copy/image/data.mdb" bs=1 seek=17 conv=notrunc status=none
expect 1 'FOUND .*image/data.mdb' verify "$tmp/copy"
expect 1 'the backup .* is damaged: .*image/data.mdb' restore "$tmp/copy" "$tmp/never"
truncate -s 5000 "$dir"/journal/00000002.seg
is_json verify "$dir" --json
expect 1 'FOUND  .*/data: journal/00000002.seg .*cut off at offset 5000' verify "$dir"
expect 1 'journal/00000002.seg' backup "$dir" "$tmp/never"
expect 1 'journal/00000002.seg' compact "$dir"
if [ -e "$tmp/never" ] || [ -e "$tmp/never.partial" ]; then fail "something is left of a copy that failed"; fi

# A part that is gone is damage, to the server as well, and nobody begins anew in silence.
port=$((20000 + $$ % 20000))
refused() {   # pattern: by all who open it
	local verb
	for verb in verify inspect check compact; do expect 1 "$1" $verb "$tmp/part"; done
	expect 1 "$1" backup "$tmp/part" "$tmp/never"
	expect 1 "$1" serve --data "$tmp/part" --resp-port $port --http-port 0
}
cp -r "$tmp/again" "$tmp/part" && rm "$tmp"/part/journal/*
refused '/part/journal is missing or has no segment.*restore'
rm -r "$tmp/part/journal"
refused '/part/journal is missing or has no segment.*restore'
rm -r "$tmp/part/image"
refused '/part/image is missing.*restore'
rm "$tmp/part/noh.dir" && mkdir "$tmp/part/image"
refused '/part/noh.dir is missing, but image is there: put noh.dir back, or restore'

printf '%d passed, %d failed\n' $passed $failed
[ $failed -eq 0 ]
