#!/bin/bash
# tests/run.sh [stress] - everything CI runs (make test), or minutes of it (make stress).
#
# One line per stage; of what fails, all that went wrong is shown, and again what it was at the end. The last line
# is "N passed, N failed", summed over all stages: a stage of unit tests counts its tests, any other stage one for each of its checks.
#   T=mailbox   only the unit tests whose path has "mailbox", in the plain build
#   SAN=thread  only the unit tests, in that build
#   STAGE_SECONDS=1200  a stage that takes longer has failed
set -u
cd "$(dirname "$0")/.." || exit 1
mode=${1:-test}
case $mode in test|stress) ;; *) echo "usage: tests/run.sh [stress]" >&2; exit 2 ;; esac

T=${T:-} SAN=${SAN:-} CC=${CC:-gcc}
[ "$CC" = cc ] && CC=gcc
export T CC
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES V   # of the make that called us
[ "$SAN" ] && only=$SAN || only=
unset SAN
case ${CC##*/} in gcc|cc) out=out/plain ;; *) out=out/plain-${CC##*/} ;; esac
jobs=$(nproc 2>/dev/null || echo 2)
limit=${STAGE_SECONDS:-1200}
if [ "$mode" = stress ]; then
	limit=${STAGE_SECONDS:-3600}
	export TEST_TIMEOUT=${TEST_TIMEOUT:-1200}   # a stress program is minutes long under ThreadSanitizer
fi
export TSAN_OPTIONS="halt_on_error=1 second_deadlock_stack=1 ${TSAN_OPTIONS:-}"
export UBSAN_OPTIONS="halt_on_error=1 print_stacktrace=1 ${UBSAN_OPTIONS:-}"
export ASAN_OPTIONS="detect_stack_use_after_return=1 ${ASAN_OPTIONS:-}"

passed=0 failed=0 began=$SECONDS
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM
log=$tmp/log

# ── the bookkeeping ──────────────────────────────────────────────────────────────────────────────
stage() {   # headline
	name=$1 stage_passed=0 stage_failed=0 at=$(date +%s%N)
	: > "$tmp/failures"
	printf '  %-34s' "$name"
}
skip() { printf ' skipped: %s\n' "$1"; }
close_stage() {
	local ms=$((($(date +%s%N) - at) / 1000000))
	printf ' %4d passed, %d failed %6d.%d s\n' $stage_passed $stage_failed $((ms / 1000)) $((ms % 1000 / 100))
	if [ $stage_failed -gt 0 ]; then
		cat "$tmp/failures"
	fi
	passed=$((passed + stage_passed)) failed=$((failed + stage_failed))
}
ok() { stage_passed=$((stage_passed + 1)); }
bad() {   # what is wrong; the log shows more
	stage_failed=$((stage_failed + 1))
	{ printf '  FAIL  %s: %s\n' "$name" "$1"; [ -s "$log" ] && said; } | tee -a "$tmp/all-failures" >> "$tmp/failures"
}
# What the log says of the failure: first its lines of verdict, then all but what went well.
said() {
	grep -E '^ *(FAIL|AGAIN)  *[^ ]' "$log" | cut -c-300 | sed 's/^ */        /'
	grep -vE '^  (CC|CXX|LINK|AR|SHIM|TEST|ok)  ' "$log" | tail -n 400 | sed 's/^/        /'
}
bounded() {   # our own functions bound what they run
	if [ "$(type -t "$1")" = function ]; then "$@"; else timeout --kill-after=10 "$limit" "$@"; fi
}
# A check is a command; its output is shown only if it fails.
check() {   # what it shows, command...
	local what=$1 rc
	shift
	: > "$log"
	bounded "$@" > "$log" 2>&1 < /dev/null
	rc=$?
	case $rc in
	0) ok ;;
	124|137) bad "$what: no end after $limit s" ;;
	*) bad "$what (exit $rc)" ;;
	esac
	return $rc
}
# A suite is a command whose last line sums up: "N passed, N failed". 77 is a skip.
suite() {   # what, command...
	local what=$1 rc sum p f
	shift
	bounded "$@" > "$log" 2>&1 < /dev/null
	rc=$?
	sum=$(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$log" | tail -n 1)
	p=0 f=0
	[ "$sum" ] && read -r p _ f _ <<< "$sum"
	stage_passed=$((stage_passed + p))
	if [ $rc -eq 124 ] || [ $rc -eq 137 ]; then
		bad "$what: no end after $limit s"
	elif [ $rc -ne 0 ] && [ "$f" -eq 0 ]; then
		bad "$what (exit $rc)"          # it did not even get to its tests
	elif [ "$f" -gt 0 ]; then
		bad "$what: $f of its tests failed"
		stage_failed=$((stage_failed + f - 1))
	elif [ -z "$sum" ]; then
		ok                              # a suite that does not count is one check
	fi
}
has() { command -v "$1" >/dev/null; }
run_make() { timeout --kill-after=10 "$limit" make --no-print-directory -j"$jobs" "$@"; }

finish() {
	[ $failed -gt 0 ] && grep -E '^ *FAIL ' "$tmp/all-failures" | cut -c-300 | sort -u
	printf '  %d s in all\n' $((SECONDS - began))
	printf '%d passed, %d failed\n' $passed $failed
	[ $failed -eq 0 ] && [ $passed -gt 0 ]
	exit
}

# ── stages that both modes share ─────────────────────────────────────────────────────────────────
unit_stage() {   # headline, make arguments...
	stage "$1"
	shift
	suite "make $*" run_make "$@"
	close_stage
	grep '^  AGAIN' "$log"
}
# What make test makes smaller for the sanitizers (test_size), in its full size.
full_size_stages() {
	local sized
	sized=$(grep -l 'test_size(' tests/*/*_test.c | sed 's/\.c$//' | tr '\n' ' ')
	unit_stage "full size, ASan and UBSan" SAN=address TEST_FULL=1 TEST_TIMEOUT=1200 T="$sized" unit
	unit_stage "full size, ThreadSanitizer" SAN=thread TEST_FULL=1 TEST_TIMEOUT=1200 T="$sized" unit
}
interleave_stage() {   # arguments of its run.sh
	stage "interleavings"
	if [ ! -x tests/interleave/run.sh ]; then skip "tests/interleave/run.sh is not there"; return; fi
	suite "tests/interleave/run.sh $*" tests/interleave/run.sh "$@"
	close_stage
}

# ── the stages of make test ──────────────────────────────────────────────────────────────────────
build() {
	stage "build, $CC"
	check "make all lib" run_make all lib
	close_stage
}
build_clang() {   # quick: what clang warns of needs no optimizer
	stage "build, clang"
	has clang || { skip "clang is not installed"; return; }
	if [ "$1" = quick ]; then
		check "make CC=clang OPT=-O0 all" run_make CC=clang OPT=-O0 OUT=out/plain-clang-O0 all
	else
		check "make CC=clang all lib" run_make CC=clang all lib
	fi
	close_stage
}
bench_smoke() {
	stage "benchmarks, smoke size"
	check "noh bench --smoke" "$out/noh" bench --smoke
	close_stage
}

# CK's shim for ThreadSanitizer is silent on a correct program and still lets it see a race.
shim_works() {
	tests/tsan/ck_shim.sh "$tmp/shim" || return
	local build="$CC -std=c11 -D_GNU_SOURCE -O1 -g -fsanitize=thread -I$tmp/shim -DCK_USE_CC_BUILTINS=1"
	$build tests/tsan/shim_check.c -o "$tmp/shim_ok" -lck -pthread &&
		$build -DPLANTED_RACE tests/tsan/shim_check.c -o "$tmp/shim_race" -lck -pthread || return
	timeout 60 "$tmp/shim_ok" || return
	timeout 60 "$tmp/shim_race" >/dev/null 2>&1 || return 0
	echo "the planted race was not reported"
	return 1
}
shim_stage() {
	stage "ThreadSanitizer reads CK"
	check "tests/tsan/shim_check.c" shim_works
	close_stage
}

only_noh() {   # nm...: lists noh_* and nothing else
	local others
	"$@" | grep -q ' noh_' || { echo "no noh_* at all"; return 1; }
	others=$("$@" | awk 'NF >= 2 { print $NF }' | grep -v '^noh_' | sort -u)
	[ -z "$others" ] && return
	echo "these symbols are visible as well:" $others
	return 1
}
declared() { sed -n 's/^NOH_API[^(]*[ *]\(noh_[a-z_]*\)(.*/\1/p' include/noh*.h | sort -u; }
all_exported() {
	comm -23 <(declared) <(nm -D --defined-only "$1" | awk '{ print $NF }' | sort -u) > "$tmp/lacking"
	[ ! -s "$tmp/lacking" ] && return
	echo "declared in include/, but not in the library:" $(cat "$tmp/lacking")
	return 1
}
staged_install() {   # into DESTDIR for another prefix, as a packager does
	run_make install DESTDIR="$tmp/dest" PREFIX=/usr || return
	local f
	for f in bin/noh share/man/man1/noh.1 share/bash-completion/completions/noh include/noh.h include/noh_actors.h include/noh_json.h include/noh_reconcile.h lib/libnoh.a lib/libnoh.so lib/libnoh.so.0 lib/pkgconfig/noh.pc; do
		[ -e "$tmp/dest/usr/$f" ] || { echo "$f was not installed"; return 1; }
	done
	grep -qx 'prefix=/usr' "$tmp/dest/usr/lib/pkgconfig/noh.pc" || { echo "noh.pc names another prefix"; return 1; }
}
resolves() {   # ldd works and finds every library
	local out
	out=$(ldd "$1") || return
	! grep 'not found' <<< "$out"
}
static_example() {   # libnoh.a with what noh.pc says it needs
	$CC -std=c11 $(pkg-config --cflags noh) examples/counter.c -o "$tmp/counter-static" \
		"$tmp/prefix/lib/libnoh.a" $(sed -n 's/^Libs.private: //p' "$tmp/prefix/lib/pkgconfig/noh.pc") &&
		timeout 60 "$tmp/counter-static"
}
install_stage() {
	stage "install, examples, symbols"
	local lib=$tmp/prefix/lib e
	export PKG_CONFIG_PATH=$lib/pkgconfig LD_LIBRARY_PATH=$lib
	if check "make install" run_make install PREFIX="$tmp/prefix"; then
		check "make install DESTDIR" staged_install
		check "libnoh.so shows noh_* alone" only_noh nm -D --defined-only "$lib/libnoh.so"
		check "libnoh.a shows noh_* alone" only_noh nm -g --defined-only "$lib/libnoh.a"
		check "libnoh.so has all of noh.h" all_exported "$lib/libnoh.so"
		check "libraries of noh are found" resolves "$tmp/prefix/bin/noh"
		check "libraries of libnoh.so are found" resolves "$lib/libnoh.so"
		mkdir -p "$tmp/examples"
		check "make -C examples" make -C examples OUT="$tmp/examples"
		for e in counter ask timer json; do
			check "examples/$e" "$tmp/examples/$e"
		done
		check "examples/durable" "$tmp/examples/durable" "$tmp/durable-data"
		check "examples/durable, again" "$tmp/examples/durable" "$tmp/durable-data"
		suite "tests/e2e/examples.sh" tests/e2e/examples.sh "$tmp/examples"
		check "examples/counter, static" static_example
		has redis-cli && suite "README.md, literally" tests/e2e/readme.sh "$tmp/prefix"
		has g++ && check "noh.h and its sisters in C++" g++ -std=c++11 -Wall -Wextra -Werror -Iinclude -fsyntax-only -x c++ include/noh.h include/noh_actors.h include/noh_json.h include/noh_reconcile.h
	fi
	unset PKG_CONFIG_PATH LD_LIBRARY_PATH
	close_stage
}
instruction_stage() {
	stage "instructions per message"
	[ -x tests/instructions.sh ] || { skip "tests/instructions.sh is not there"; return; }
	has valgrind || { skip "valgrind is not installed"; return; }
	suite "tests/instructions.sh" tests/instructions.sh
	close_stage
}
fuzz_stage() {
	stage "fuzzing, seconds of it"
	has clang || { skip "clang is not installed"; return; }
	suite "tests/fuzz/run.sh" env FUZZ_SECONDS=3 tests/fuzz/run.sh
	close_stage
}
e2e_stage() {
	stage "data directories, from outside"
	suite "tests/e2e/data.sh" tests/e2e/data.sh "$out/noh"
	close_stage
	stage "the server's command line"
	suite "tests/e2e/serve.sh" tests/e2e/serve.sh "$out/noh"
	close_stage
	stage "verbs of a running server, doctor"
	suite "tests/e2e/cli.sh" tests/e2e/cli.sh "$out/noh"
	suite "tests/e2e/doctor.sh" tests/e2e/doctor.sh "$out/noh"
	close_stage
}
# Power cuts under real file systems; those of the simulated disk are unit tests (tests/sim).
crash_stage() {   # quick or full
	local why
	stage "power cuts, ext4 and XFS"
	why=$(tests/crash/blk.sh can) || { skip "${why#SKIP  }"; return; }
	suite "tests/crash/blk.sh $1" env OUT="$out" tests/crash/blk.sh "$1"
	close_stage
	grep '^SKIP' "$log" | sed 's/^/    /'
}

sale_stage() {   # quick or full
	stage "flash sale, server killed"
	suite "tests/e2e/flash_sale.sh" tests/e2e/flash_sale.sh "$out/noh"
	suite "tests/e2e/orders.sh $1" tests/e2e/orders.sh "$1" "$out/noh"
	close_stage
}
# A real server, the clients that people have, what idle ones cost, and a disk that fills up under it.
serve_stage() {
	local s
	stage "the server, from outside"
	: > "$tmp/skips"
	for s in clients idle http api limits metrics trace events full_disk; do
		suite "tests/e2e/$s.sh" tests/e2e/$s.sh "$out/noh"
		grep '^SKIP' "$log" >> "$tmp/skips"
	done
	close_stage
	sed 's/^/    /' "$tmp/skips"
}
service_stage() {
	stage "as a service, packaged"
	suite "tests/e2e/service.sh" tests/e2e/service.sh "$out/noh"
	close_stage
	grep '^SKIP' "$log" | sed 's/^/    /'
}
neighbour_stage() {
	stage "bad neighbours"
	suite "tests/e2e/neighbours.sh" tests/e2e/neighbours.sh "$out/noh"
	close_stage
	grep '^SKIP' "$log" | sed 's/^/    /'
}

sim_stage() {   # quick or full
	stage "whole boxes, simulated"
	suite "tests/sim/run.sh $1" env OUT="$out" tests/sim/run.sh "$1"
	close_stage
}

readme_example() { diff <(sed -n '/^```c$/,/^```$/p' README.md | sed '1d;$d') examples/counter.c; }
settings_page() { diff <("$out/noh" config doc) docs/configuration.md; }
links_resolve() {   # every relative link of every page leads to a file
	local page link rc=0
	while read -r page; do
		while read -r link; do
			case $link in ''|http*|mailto:*|\#*) continue ;; esac
			[ -e "$(dirname "$page")/${link%%#*}" ] || { echo "$page: no such file: $link"; rc=1; }
		done < <(sed '/^```/,/^```/d' "$page" | grep -oE '\]\([^)]+\)' | sed 's/^](//; s/)$//')
	done < <(pages)
	return $rc
}
pages() { find . -name '*.md' -not -path './out/*' -not -path './.git/*' | sort; }
folders_explained() {
	local d rc=0
	for d in include core mailbox sched persist net box actors tools bench tests examples docs packaging; do
		[ -s "$d/README.md" ] || { echo "$d/README.md is missing"; rc=1; }
	done
	return $rc
}
named_files_exist() {   # `sched/turn.c` in a page is a file of the tree
	local page f rc=0
	while read -r page; do
		while read -r f; do
			[ -e "$f" ] || { echo "$page names $f, which is not there"; rc=1; }
		done < <(grep -oE '`(include|core|mailbox|sched|persist|net|box|actors|tools|bench|tests|examples|docs)/[A-Za-z0-9_/.-]+\.(c|h|sh|md)`' "$page" | tr -d '`' | sort -u)
	done < <(pages)
	return $rc
}
proofs_exist() {   # every id that docs/guarantees.md calls a proof is an id of a test
	local id rc=0
	while read -r id; do
		grep -q "^| $id |" docs/conformance.md || { echo "docs/guarantees.md: no test names $id"; rc=1; }
	done < <(sed -n '/^Proved by/,/^$/p' docs/guarantees.md | grep -oE '\b(P[0-9]+|[A-Z]+-[0-9]+)\b' | sort -u)
	return $rc
}
docs_stage() {
	stage "documentation"
	check "README.md shows examples/counter.c" readme_example
	check "docs/conformance.md is up to date" tools/conformance.sh --check
	check "docs/commands.md is up to date" tools/commands.sh --check
	check "docs/metrics.md is up to date" tools/metrics.sh --check
	check "docs/configuration.md is up to date" settings_page
	check "docs/guarantees.md names its proofs" proofs_exist
	check "links lead somewhere" links_resolve
	check "named files exist" named_files_exist
	check "every folder has its README" folders_explained
	close_stage
}

# ── run ──────────────────────────────────────────────────────────────────────────────────────────
tools/deps.sh test || { echo "0 passed, 1 failed"; exit 1; }

if [ "$only" ]; then
	unit_stage "unit tests, SAN=$only" SAN="$only" T="$T" "$([ $mode = stress ] && echo stress-unit || echo unit)"
elif [ "$mode" = stress ]; then
	unit_stage "stress tests, plain" T="$T" stress-unit
	unit_stage "stress tests, ThreadSanitizer" SAN=thread T="$T" stress-unit
	[ "$T" ] || full_size_stages
	[ "$T" ] || interleave_stage stress
	[ "$T" ] || build
	[ "$T" ] || build_clang full
	[ "$T" ] || sale_stage full
	[ "$T" ] || neighbour_stage
	[ "$T" ] || crash_stage full
	[ "$T" ] || sim_stage full
elif [ "$T" ]; then
	unit_stage "unit tests with \"$T\"" T="$T" unit
else
	build
	build_clang quick
	unit_stage "unit tests, plain" unit
	bench_smoke
	e2e_stage
	serve_stage
	service_stage
	sale_stage quick
	interleave_stage
	unit_stage "unit tests, ASan and UBSan" SAN=address unit
	shim_stage
	unit_stage "unit tests, ThreadSanitizer" SAN=thread unit
	crash_stage quick
	sim_stage quick
	install_stage
	instruction_stage
	fuzz_stage
	docs_stage
fi
finish
