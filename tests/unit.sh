#!/bin/bash
# tests/unit.sh program... - run test programs, a few at a time: most of them wait more than they work.
#
# One line for each as it ends, with its seconds; shows all that a failing one said. The last line sums up:
# "N passed, N failed". Exit 0 if none failed. A program that crashes, hangs or leaks counts as one failed test.
# One whose expectations were not met (no sanitizer had anything to say) is run again at the end, by itself and with the same seed:
# a time may have been too short beside three others. What it says then counts; a line beginning with AGAIN tells of it.
#   UNIT_JOBS=1        how many at once; else two for each processor
#   TEST_TIMEOUT=240   seconds for each
#   SLOW=1             at the end, where the time went: the slowest programs and tests
set -u
limit=${TEST_TIMEOUT:-240}
jobs=${UNIT_JOBS:-$((2 * $(nproc 2>/dev/null || echo 1)))}
[ "${SLOW:-}" ] && export TEST_TIMES=1
TIMEFORMAT='%R %U %S'
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
passed=0 failed=0 again=() alone=

# What an exit status other than 0, 1 and 77 means, in words.
ending() {
	case $1 in
	124) echo "no end after $limit s" ;;
	137) echo "killed by SIGKILL: out of memory, or no end after $limit s" ;;
	1) echo "failed before it could count" ;;
	*)
		if [ "$1" -gt 128 ]; then
			echo "killed by SIG$(kill -l $(($1 - 128)))"
		else
			echo "exit status $1"
		fi
		;;
	esac
}

run() {   # number, program, its seed or nothing: in the background; leaves what it said, its times, and last its exit status
	local rc
	{ time timeout -k 5 "$limit" "$2" ${3:+"$3"} > "$tmp/$1.said" 2>&1 < /dev/null; } 2> "$tmp/$1.time"
	rc=$?
	echo "$rc $2" > "$tmp/$1.ending"
	mv "$tmp/$1.ending" "$tmp/$1.end"
}

report() {   # number: a program that ended
	local said=$tmp/$1.said rc program good=0 bad=0 counts seconds user sys
	read -r rc program < "$tmp/$1.end"
	read -r seconds user sys < <(tail -n 1 "$tmp/$1.time")
	counts=$(sed -n 's/^.*: \([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$said" | tail -n 1)
	[ "$counts" ] && read -r good bad <<< "$counts"
	printf '  TEST  %s, %s s\n' "$program" "$seconds"
	printf '%s %s %s %s\n' "$seconds" "$user" "$sys" "$program" >> "$tmp/programs"
	sed -n "s,^  time  ,${program##*/tests/}: ,p" "$said" >> "$tmp/tests"
	if [ "$rc" -eq 1 ] && [ "$bad" -gt 0 ] && [ -z "$alone" ] && ! grep -q 'Sanitizer\|runtime error' "$said"; then
		sed 's/^/  | /' "$said"
		printf '  AGAIN %s: %s\n' "$program" "$(grep -o '^  FAIL  .*' "$said" | cut -c9- | tr '\n' ';')"
		again+=("$program" "$(grep -o -m 1 -e '--seed=[0-9]*' "$said")")
		good=0 bad=0
	elif [ "$rc" -eq 77 ]; then
		grep -v '^  time  ' "$said" | sed 's/^/  /'
	elif [ "$rc" -ne 0 ]; then
		cat "$said"
		if [ "$rc" -ne 1 ] || [ "$bad" -eq 0 ]; then
			bad=$((bad + 1))
			printf '  FAIL  %s: %s\n' "$program" "$(ending "$rc")"
		fi
	elif [ -z "$counts" ]; then
		cat "$said"
		bad=1
		printf '  FAIL  %s: did not say how many tests passed\n' "$program"
	fi
	passed=$((passed + good)) failed=$((failed + bad))
	rm -f "$tmp/$1".*
}
report_ended() {
	local end
	for end in "$tmp"/*.end; do
		[ -e "$end" ] || continue
		end=${end##*/}
		report "${end%.end}"
		running=$((running - 1))
	done
}

running=0 number=0
for program; do
	case $program in */*) ;; *) program=./$program ;; esac
	while [ "$running" -ge "$jobs" ]; do
		wait -n
		report_ended
	done
	number=$((number + 1)) running=$((running + 1))
	run "$number" "$program" &
done
wait
report_ended
alone=1
for ((i = 0; i < ${#again[@]}; i += 2)); do
	number=$((number + 1)) running=1
	run "$number" "${again[i]}" "${again[i + 1]}"
	report_ended
done
if [ "${SLOW:-}" ]; then
	echo "  seconds, of a processor's own and the kernel's: the slowest programs"
	sort -rn "$tmp/programs" | head -n 20 | awk '{ printf "  %8.2f %8.2f %8.2f  %s\n", $1, $2, $3, $4 }'
	awk '{ t += $1; u += $2; s += $3 } END { printf "  %8.2f %8.2f %8.2f  all of them\n", t, u, s }' "$tmp/programs"
	echo "  seconds: the slowest tests"
	sort -t: -k2 -rn "$tmp/tests" | head -n 60 | sed 's/^/  /'
fi
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
