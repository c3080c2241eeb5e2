#!/bin/bash
# tests/fuzz/run.sh [target...] - fuzz whatever takes bytes from outside. FUZZ_SECONDS for each (60).
#
# A target is tests/fuzz/NAME_fuzz.c with LLVMFuzzerTestOneInput; it is built by clang with ASan and
# UBSan beside the product's own sources. Seeds: tests/fuzz/NAME/ (one file each, also every input that
# ever failed); what is found on the way stays in out/fuzz. A failing input is kept and named.
# The last line is "N passed, N failed".
set -u
cd "$(dirname "$0")/../.." || exit 1
seconds=${FUZZ_SECONDS:-60}
out=out/fuzz
tools/deps.sh test || exit 1
command -v clang >/dev/null || { echo "fuzzing needs clang, which is not to be had here" >&2; exit 1; }

targets=("$@")
[ $# -gt 0 ] || for f in tests/fuzz/*_fuzz.c; do f=${f##*/}; targets+=("${f%_fuzz.c}"); done
flags="-std=c11 -D_GNU_SOURCE -I. -Iinclude -O1 -g1 -fno-omit-frame-pointer -DNOH_SANITIZED -pthread \
	-fsanitize=address,undefined -fno-sanitize-recover=undefined"
mkdir -p "$out/obj"

# The product's sources once, with coverage for the fuzzer to follow.
objects=()
building=()
for c in {core,mailbox,sched,persist,net,box,actors}/*.c tools/{cli,accounts,client*,predicate,scrape,settings*}.c; do
	[ -e "$c" ] || continue
	o=$out/obj/${c//\//_}.o
	objects+=("$o")
	[ "$o" -nt "$c" ] && [ -z "$(find core mailbox sched persist net box actors tools include -name '*.h' -newer "$o")" ] && continue
	building+=("$c" "$o")
done
if [ ${#building[@]} -gt 0 ]; then
	printf '%s %s\n' "${building[@]}" |
		xargs -n 2 -P "$(nproc)" sh -c "clang $flags -fsanitize=fuzzer-no-link -c \$0 -o \$1" || exit 1
fi
rm -f "$out/libnoh_fuzz.a"
ar rcs "$out/libnoh_fuzz.a" "${objects[@]}" || exit 1

second=$(pkg-config --libs jansson 2>/dev/null)   # a second opinion on what is JSON, where there is one
# Build a target and run it. Everything it says comes at once, when it is over.
fuzz() {   # target
	local t=$1 corpus=$out/$1.corpus found=$out/$1.failed seeds=() dict=()
	mkdir -p "$corpus" "$found"
	[ -d "tests/fuzz/$t" ] && seeds=("tests/fuzz/$t")
	[ -e "tests/fuzz/$t.dict" ] && dict=(-dict="tests/fuzz/$t.dict")
	if ! clang $flags -fsanitize=fuzzer "tests/fuzz/${t}_fuzz.c" "$out/libnoh_fuzz.a" -lck -llmdb -luring -lxxhash -lcrypto $second -lm -o "$out/$t"; then
		printf '  FAIL  %s: it does not build\n' "$t"
		return 1
	fi
	if "$out/$t" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 \
		-artifact_prefix="$found/" "${dict[@]}" "$corpus" "${seeds[@]}" > "$out/$t.log" 2>&1; then
		printf '  FUZZ  %s, %s s, %s runs\n' "$t" "$seconds" \
			"$(sed -n 's/^stat::number_of_executed_units: *//p' "$out/$t.log")"
	else
		cat "$out/$t.log"
		printf '  FAIL  %s: the input is in %s; once fixed, keep it in tests/fuzz/%s/\n' "$t" "$found" "$t"
		return 1
	fi
}
fuzz_and_tell() {   # target
	fuzz "$1" > "$out/$1.said" 2>&1 && touch "$out/$1.good"
	cat "$out/$1.said"
}

# A target keeps one processor busy: as many at once as there are.
passed=0 failed=0 running=0
for t in "${targets[@]}"; do
	rm -f "$out/$t.good"
	if [ $running -ge "$(nproc)" ]; then
		wait -n
		running=$((running - 1))
	fi
	fuzz_and_tell "$t" &
	running=$((running + 1))
done
wait
for t in "${targets[@]}"; do
	if [ -e "$out/$t.good" ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
done
printf '%d passed, %d failed\n' $passed $failed
[ $failed -eq 0 ]
