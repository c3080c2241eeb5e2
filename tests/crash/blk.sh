#!/bin/bash
# tests/crash/blk.sh [quick|full|can] - power cuts under a real file system: ext4 and XFS on a disk that logs.
#
#     blk (FUSE) -> loop device -> ext4 or XFS -> work writes, marks what is acknowledged -> the log
#     for each cut: image of the disk as power left it -> mount -> work check -> all marked numbers are there
#
# A run whose syncs are left out must lose numbers: else the harness sees nothing, and that is a failure.
# Needs root, /dev/fuse, loop devices, libfuse3, mkfs. Where one is missing: one line with SKIP, exit 77.
# can: only that question.
# OUT=dir: where to build. POINTS=n: cuts for each file system. SEED=n. Last line: "N passed, N failed".
set -u
cd "$(dirname "$0")/../.." || exit 1
mode=${1:-quick}
case $mode in
quick) points=${POINTS:-20} controls=5 records=120 systems='ext4 xfs' ;;
full|stress) points=${POINTS:-120} controls=10 records=600 systems='ext4 xfs' ;;
can) ;;
*) echo "usage: tests/crash/blk.sh [quick|full|can]" >&2; exit 2 ;;
esac
seed=${SEED:-1} out=${OUT:-out/plain}
passed=0 failed=0 skipped=0
RANDOM=$seed

PATH=$PATH:/usr/sbin:/sbin
skip_all() { echo "SKIP  $1"; exit 77; }
[ "$(id -u)" = 0 ] || skip_all "needs root"
[ -c /dev/fuse ] || skip_all "there is no /dev/fuse"
[ -c /dev/loop-control ] || skip_all "there are no loop devices"
command -v losetup mount fusermount3 >/dev/null || skip_all "fuse3 is not installed"
pkg-config --exists fuse3 || skip_all "libfuse3-dev is not installed"
[ "$mode" = can ] && exit 0

blk=$out/tests/crash/blk work=$out/tests/crash/work
make --no-print-directory -s OUT="$out" "$blk" "$work" || { echo "0 passed, 1 failed"; exit 1; }
blk=$(realpath "$blk") work=$(realpath "$work")

[ -w /dev/shm ] && base=/dev/shm || base=${TMPDIR:-/tmp}
tmp=$(mktemp -d "$base/noh-blk-XXXXXX") || exit 1
mkdir "$tmp/fuse" "$tmp/mnt"
daemon='' loop=''
# Not mountpoint(1): it asks the file system, and one that has met an error says EIO.
mounted() { grep -q " $1 " /proc/self/mounts; }
tidy() {   # only what this run mounted
	mounted "$tmp/mnt" && umount "$tmp/mnt"
	[ "$loop" ] && losetup -d "$loop" 2>/dev/null
	loop=
	mounted "$tmp/fuse" && fusermount3 -u "$tmp/fuse" 2>/dev/null
	[ "$daemon" ] && wait "$daemon" 2>/dev/null
	daemon=
}
finish() { tidy; rm -rf "$tmp"; }
trap finish EXIT
trap 'exit 130' INT TERM

ok() { passed=$((passed + 1)); printf '  ok    %s\n' "$1"; }
bad() { failed=$((failed + 1)); printf '  FAIL  %s\n' "$1"; }

make_fs() {   # kind image
	case $1 in
	ext4) truncate -s 48M "$2" && mkfs.ext4 -q -F -E nodiscard,lazy_itable_init=0 "$2" ;;
	xfs) truncate -s 320M "$2" && mkfs.xfs -q -f -K "$2" && { fallocate -d "$2" 2>/dev/null || true; } ;;
	esac
}
start_disk() {   # image log
	"$blk" serve "$1" "$2" "$tmp/fuse" &
	daemon=$!
	local i
	for i in $(seq 100); do
		[ -e "$tmp/fuse/disk" ] && break
		sleep 0.05
	done
	loop=$(losetup -f --show "$tmp/fuse/disk") || return
}
# What the work did between two points in time, written down.
record() {   # kind [forgetful]
	local kind=$1 rc=0
	shift
	rm -f "$tmp/base.img" "$tmp/cur.img"
	make_fs "$kind" "$tmp/base.img" > "$tmp/said" 2>&1 || { cat "$tmp/said"; return 1; }
	cp --sparse=always "$tmp/base.img" "$tmp/cur.img"
	start_disk "$tmp/cur.img" "$tmp/log" && mount -t "$kind" "$loop" "$tmp/mnt" && mkdir "$tmp/mnt/data" && sync -f "$tmp/mnt" &&
		timeout 60 "$work" write "$tmp/mnt/data" "$tmp/fuse/mark" $records "$@" > "$tmp/said" 2>&1 || rc=1
	[ $rc = 0 ] || cat "$tmp/said"
	tidy
	return $rc
}
# Power goes before that entry: is every number that was marked by then there?
cut_at() {   # kind entry how seed: 0 yes, 1 no; $why says what
	local acked there
	cp --sparse=always "$tmp/base.img" "$tmp/cut.img" &&
		acked=$("$blk" cut "$tmp/log" "$tmp/cut.img" "$2" "$3" "$4") || { why="no image"; return 1; }
	loop=$(losetup -f --show "$tmp/cut.img") || { why="no loop device"; return 1; }
	if ! mount -t "$1" "$loop" "$tmp/mnt" 2> "$tmp/said"; then
		why="it does not mount: $(tail -n 1 "$tmp/said")"
		tidy
		return 1
	fi
	there=$(timeout 60 "$work" check "$tmp/mnt/data" 2> "$tmp/said") || there=
	why="entry $2, $3, seed $4: $acked acknowledged, ${there:-$(tail -n 1 "$tmp/said")} there"
	tidy
	[ "$there" ] && [ "$there" -ge "$acked" ]
}
ways=(drop subset torn last keep)
cut_many() {   # kind count: sets $lost, $first
	local i from to
	lost=0 first=
	read -r from to < <("$blk" count "$tmp/log")
	for i in $(seq "$2"); do
		cut_at "$1" $((from + 1 + (RANDOM * 32768 + RANDOM) % (to - from))) "${ways[$((i % 5))]}" $((seed * 1000 + i)) && continue
		lost=$((lost + 1))
		first=${first:-$why}
	done
}
try() {   # kind
	local began=$(date +%s%N) ms
	command -v "mkfs.$1" >/dev/null || { echo "SKIP  $1: mkfs.$1 is not installed"; skipped=$((skipped + 1)); return; }
	grep -qw "$1" /proc/filesystems || { echo "SKIP  $1: this kernel has no $1"; skipped=$((skipped + 1)); return; }
	if ! record "$1"; then bad "$1: the work could not be done"; return; fi
	cut_many "$1" "$points"
	ms=$((($(date +%s%N) - began) / 1000000))
	if [ $lost -eq 0 ]; then
		ok "$1: $points cuts in $records acknowledged writes, none lost, $((points * 1000 / ms)) points/s"
	else
		bad "$1: $lost of $points cuts lost something: $first"
	fi
	if ! record "$1" forgetful; then bad "$1: the forgetful work could not be done"; return; fi
	cut_many "$1" "$controls"
	if [ $lost -gt 0 ]; then
		ok "$1, control without syncs: $lost of $controls cuts lost something, as they must"
	else
		bad "$1, control without syncs: nothing was lost, so this harness sees nothing"
	fi
}
# The disk begins to fail: the work says so and stops, and what it had acknowledged is there.
try_errors() {   # kind
	local worker rc
	command -v "mkfs.$1" >/dev/null || return
	rm -f "$tmp/base.img" "$tmp/cur.img"
	make_fs "$1" "$tmp/base.img" > "$tmp/said" 2>&1 && cp --sparse=always "$tmp/base.img" "$tmp/cur.img" &&
		start_disk "$tmp/cur.img" "$tmp/log" && mount -t "$1" "$loop" "$tmp/mnt" && mkdir "$tmp/mnt/data" ||
		{ bad "$1, errors: no file system"; tidy; return; }
	"$work" write "$tmp/mnt/data" "$tmp/fuse/mark" 100000000 > "$tmp/said" 2>&1 &
	worker=$!
	sleep 0.5
	echo eio > "$tmp/fuse/ctl"
	for rc in $(seq 100); do kill -0 $worker 2>/dev/null || break; sleep 0.1; done
	if kill -0 $worker 2>/dev/null; then kill $worker; wait $worker; bad "$1, errors: the work went on"; tidy; return; fi
	wait $worker
	rc=$?
	echo ok > "$tmp/fuse/ctl"
	tidy 2>/dev/null
	if [ $rc -ne 1 ]; then bad "$1, errors: the work ended with $rc: $(tail -n 1 "$tmp/said")"; return; fi
	if cut_at "$1" 100000000 keep 1; then
		ok "$1, the disk fails: it stopped; $why"
	else
		bad "$1, the disk fails: $why"
	fi
}
for kind in $systems; do try "$kind"; try_errors "$kind"; done
printf '%d passed, %d failed\n' $passed $failed
[ $failed -eq 0 ] || exit 1
[ $passed -gt 0 ] || exit 77
