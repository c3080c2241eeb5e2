#!/bin/sh
# tests/unit.sh program... - run test programs one after another. Quiet about what passes; shows all
# that a failing one said. The last line sums up: "N passed, N failed". Exit 0 if none failed.
# A program that crashes, hangs or leaks counts as one failed test. TEST_TIMEOUT: seconds for each.
limit=${TEST_TIMEOUT:-120}
said=$(mktemp) || exit 1
trap 'rm -f "$said"' EXIT
passed=0
failed=0

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

for program; do
	printf '  TEST  %s\n' "$program"
	case $program in */*) ;; *) program=./$program ;; esac
	(timeout -k 5 "$limit" "$program") >"$said" 2>&1 </dev/null
	rc=$?
	counts=$(sed -n 's/^.*: \([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$said" | tail -n 1)
	good=${counts% *}
	bad=${counts#* }
	good=${good:-0}
	bad=${bad:-0}
	if [ "$rc" -eq 77 ]; then
		sed 's/^/  /' "$said"
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
	passed=$((passed + good))
	failed=$((failed + bad))
done
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
