#!/bin/bash
# tests/interleave/run.sh [quick|full|list] - the lock-free parts in every order of their steps.
#
# 1 cases under the depth-first scheduler     every order with few preemptions
# 2 logic twins (twins.txt)                   a planted bug each; a case must find it
# 3 cases under Relacy                        what weak memory allows
# 4 order twins (sites.awk)                   each order weakened by one step; a case must find it,
#                                             or unnecessary.txt says why nobody can
# quick: for make test.  full, stress: half an hour of it; also tries whether what unnecessary.txt lists
# is still unfound.  list: order twins with their lines.  One line per case, and at the end
# "N passed, N failed". OUT=dir: where to build (out/interleave).
set -u
cd "$(dirname "$0")/../.." || exit 1
mode=${1:-quick}
case $mode in quick|full|list) ;; stress) mode=full ;;
*) echo "usage: tests/interleave/run.sh [quick|full|list]" >&2; exit 2 ;; esac
here=tests/interleave
out=${OUT:-out/interleave}
src=$out/src
log=$out/log
passed=0 failed=0
# Rings of 1, 2 and 4 slots; caches that trade two numbers at once.
sizes='{0,10},{1,10},{2,10},{2,1},{2,1},{2,1},{2,1},{2,1}'
common=(-D_GNU_SOURCE -DNOH_SANITIZED -DSLAB_RUN=2 -DSLAB_PART=1 -DHANDS=4 -DRING_LIFE=ring_life "-DRING_SIZES=$sizes"
	-include $here/ring_life.h)
ordered='core/slab.c mailbox/mailbox.c mailbox/mailbox.h mailbox/inbox.h sched/runq.c sched/runq.h
	sched/park.h sched/park.c sched/step_word.h sched/relay.h net/lease.h persist/gather.c'

ok() { passed=$((passed + 1)); }
bad() { failed=$((failed + 1)); printf '  FAIL  %s\n' "$*"; }
count() {   # what, exit status, output: a program that tried cases
	cat "$3"
	passed=$((passed + $(grep -c '^  ok ' "$3")))
	[ "$2" -eq 0 ] || bad "$1: see above (exit $2)"
}

# What is checked is a copy: it stays the same while somebody edits.
snapshot() {   # to
	rm -rf "$1"
	mkdir -p "$1/core" "$1/mailbox" "$1/net" "$1/sched" "$1/persist" "$1/$here"
	cp core/atomic.h core/slab.[ch] core/futex.[ch] core/mem.h core/must.h "$1/core/" &&
		cp mailbox/*.[ch] "$1/mailbox/" && cp sched/runq.[ch] sched/park.[ch] sched/hands.h sched/step_word.h sched/relay.h "$1/sched/" &&
		cp net/lease.h "$1/net/" && cp persist/gather.[ch] "$1/persist/" &&
		cp $here/*.[ch] $here/relacy.cpp "$1/$here/"
}
units='mailbox/mailbox mailbox/ring core/slab core/futex sched/runq sched/park persist/gather tests/interleave/dfs
	tests/interleave/mailbox_cases tests/interleave/lane_cases tests/interleave/sched_cases
	tests/interleave/journal_cases'
build_dfs() {   # sources, objects of a finished build to use where they are the same
	local u objects=()
	for u in $units; do
		if [ -e "${2:-}/$u.o" ] && [ ! "$1/$u.c" -nt "$2/$u.o" ]; then
			objects+=("$2/$u.o")
			continue
		fi
		gcc -std=gnu11 $([ $# -gt 1 ] && echo -O1 || echo -O2 -g) -Wall -Wextra -I"$1" -Iinclude "${common[@]}" -Dsyscall=fake_syscall \
			"-DNOH_ATOMIC_BACKEND=\"$here/dfs_atomic.h\"" -c "$1/$u.c" -o "$1/$u.o" || return
		objects+=("$1/$u.o")
	done
	gcc "${objects[@]}" -o "$1/dfs"
}

# ── 1, 2: depth first ────────────────────────────────────────────────────────────────────────────
dfs_cases() {
	local rc
	if [ $mode = full ]; then
		"$src/dfs" --full --seconds=20 > "$log"
	else
		"$src/dfs" > "$log"
	fi
	rc=$?
	count "dfs" $rc "$log"
	if [ $mode = full ]; then
		"$src/dfs" --random=200000 --seed="${SEED:-$RANDOM}" > "$log"
		rc=$?
		count "dfs, random" $rc "$log"
	fi
}
logic_twin() {   # name file cases sed-script...
	local name=$1 file=$2 cases=${3//,/ } twin=$out/twin found
	rm -rf "$twin"
	mkdir -p "$twin"
	cp -rp "$src/core" "$src/mailbox" "$src/net" "$src/sched" "$src/persist" "$src/tests" "$twin/"
	find "$twin" -name '*.o' -delete
	shift 3
	sed -i "$*" "$twin/$file"
	if cmp -s "$src/$file" "$twin/$file"; then bad "twin $name: its change fits nothing in $file"; return; fi
	touch -d '+2 seconds' "$twin/$file"
	case $file in *.h) set -- "$twin" /none ;; *) set -- "$twin" "$src" ;; esac
	if ! build_dfs "$@" > "$log" 2>&1; then bad "twin $name does not compile"; cat "$log"; return; fi
	if timeout 60 "$twin/dfs" $cases > "$log" 2>&1; then
		bad "twin $name: no case found it ($cases)"
	else
		found=$(sed -n 's/^  FAIL  dfs \([a-z_]*\): .*/\1/p' "$log" | head -n 1)
		printf '  ok    twin %-23s found by %s\n' "$name" "${found:-a crash}"
		ok
	fi
}
logic_twins() {
	local name file cases script
	while read -r name file cases script; do
		case $name in ''|\#*) continue ;; esac
		logic_twin "$name" "$file" "$cases" "$script"
	done < $here/twins.txt
}

# ── 3, 4: Relacy ─────────────────────────────────────────────────────────────────────────────────
change() {   # file from to: each must fit
	grep -q "$2" "$1" || { bad "$1 has no line like: $2"; return 1; }
	sed -i "s/$2/$3/" "$1"
}
build_relacy() {   # the same sources as C++; plain memory that an atomic guards becomes tracked
	local r=$out/relacy
	snapshot "$r" && cp $here/relacy_must.h "$r/core/must.h" &&
		change "$r/mailbox/ring.h" 'struct slot slots\[\];' 'struct slot slots[4];' &&
		change "$r/mailbox/ring.h" '^	struct msg msg;' '	PLAIN(struct msg) msg;' &&
		change "$r/mailbox/mailbox.h" '^	struct sysmsg \*next;' '	PLAIN(struct sysmsg *) next;' &&
		change "$r/mailbox/mailbox.h" '^	uint32_t       gen;' '	PLAIN(uint32_t) gen;' &&
		change "$r/sched/runq.h" '^	struct runq_array \*older;' '	PLAIN(struct runq_array *) older;' &&
		change "$r/sched/runq.h" '^	uint64_t           mask;' '	PLAIN(uint64_t) mask;' &&
		change "$r/sched/runq.h" 'items\[\];' 'items[8];' &&
		g++ -std=gnu++11 -O1 -w -I"$r" -Iinclude "${common[@]}" \
			"-DNOH_ATOMIC_BACKEND=\"$here/relacy_atomic.h\"" "$r/$here/relacy.cpp" -o "$r/run"
}
relacy_cases() {
	local rc c
	"$out/relacy/run" --random=$([ $mode = full ] && echo 100000 || echo 4000) > "$log"
	rc=$?
	count "relacy" $rc "$log"
	[ $mode = full ] || return
	for c in $("$src/dfs" --list); do
		timeout 20 "$out/relacy/run" --bound=2 "$c" > "$log"
		rc=$?
		if [ $rc -eq 124 ]; then
			printf '  ok    relacy %-21s nothing found, cut after 20 s, preemptions <= 2\n' "$c"
			ok
		else
			count "relacy, bounded" $rc "$log"
		fi
	done
}
order_sites() { local f; for f in $ordered; do awk -f $here/sites.awk "$out/relacy/$f"; done > "$out/sites"; }
cases_for() {   # file: those that run its code, the likeliest first
	case $1 in
	slab.c) echo slab slab_three two_boxes_drop ;;
	runq.*) echo runq_thief runq_two_thieves ;;
	inbox.h|park.*) echo inbox_park inbox_takers ;;
	step_word.h) echo step_deadline step_yields ;;
	lease.h) echo lease ;;
	relay.h) echo relay relay_room relay_rooms ;;
	gather.c) echo gather_due gather_cause gather_sleep ;;
	*) echo push_push lap grow_across run_across run_cursor run_idle drop_one drop_five drop_grow grow lane_idle lane_back room kill_push kill_drop claim_claim lane_park lane_kill \
		lane_reborn park_wake two_boxes two_boxes_drop drop_two push_push_run capacity_two old_ring room_run ;;
	esac
}
found_by() {   # file line operation order how: prints the case
	local cases
	cases=$(cases_for "$1")
	case $5 in --bound=*) cases='grow_across run_across' ;; esac
	"$out/relacy/run" --quiet "$5" --weaken="$1:$2:$3:$4" $cases 2>/dev/null |
		sed -n 's/^  FAIL  relacy \([a-z_]*\) .*/\1/p' | head -n 1
}
find_twin() {   # file line operation order: at random, few and many; then what random hardly meets
	local how by=
	for how in --random=400 --bound=1 --random=10000; do
		case $how$1 in --bound*mailbox*|--random*) by=$(found_by "$@" $how) ;; esac
		[ "$by" ] && break
	done
	echo "$by"
}
rare() { grep -q "^$1 $2 $3 $4: rare:" $here/unnecessary.txt; }
listed() { grep -q "^$1 $2 $3 $4:" $here/unnecessary.txt; }
order_twins() {
	local file fn op order line by caught=0 unnecessary=0 began=$SECONDS
	order_sites
	while read -r file fn op order line; do
		if listed "$file" "$fn" "$op" "$order"; then
			unnecessary=$((unnecessary + 1))
			[ $mode = full ] && ! rare "$file" "$fn" "$op" "$order" || continue
			by=$(find_twin "$file" "$line" "${op%#*}" "$order")
			[ -z "$by" ] || bad "$file $fn $op $order: listed as unnecessary, but $by finds it"
			continue
		fi
		by=$(find_twin "$file" "$line" "${op%#*}" "$order")
		if [ "$by" ]; then
			caught=$((caught + 1))
			ok
		else
			bad "order twin $file $fn $op $order (line $line): no case found it"
		fi
	done < "$out/sites"
	printf '  %s    %d order twins found, %d listed as unnecessary %d s\n' "ok" $caught $unnecessary \
		$((SECONDS - began))
	while IFS=: read -r line _; do   # what the list names must be there
		case $line in ''|\#*) continue ;; esac
		grep -q "^$line [0-9]*$" "$out/sites" || bad "unnecessary.txt names \"$line\", which is not there"
	done < $here/unnecessary.txt
}

weak_memory() {
	if ! echo '#include <relacy/relacy.hpp>' | g++ -std=gnu++11 -w -fsyntax-only -x c++ - 2>/dev/null; then
		echo "  skipped: weak memory and order twins, because g++ or relacy-dev is not installed"
	elif ! build_relacy; then
		bad "it does not compile for Relacy"
	elif [ $mode = list ]; then
		order_sites && cat "$out/sites"
		exit
	else
		relacy_cases
		order_twins
	fi
}
depth_first() { dfs_cases; logic_twins; }
# The two halves run side by side: each keeps one processor busy.
half() {   # function: leaves what it said, and its counts
	log=$out/$1.log passed=0 failed=0
	"$1" > "$out/$1.said" 2>&1
	echo "$passed $failed" > "$out/$1.counts"
}
both() {
	local h p f
	rm -f "$out/depth_first.counts" "$out/weak_memory.counts"
	half depth_first &
	(half weak_memory)
	wait
	for h in depth_first weak_memory; do
		cat "$out/$h.said"
		p=0 f=1
		[ -e "$out/$h.counts" ] && read -r p f < "$out/$h.counts"
		passed=$((passed + p)) failed=$((failed + f))
	done
}

mkdir -p "$out"
if ! snapshot "$src" || ! build_dfs "$src"; then
	bad "it does not compile"
elif [ $mode = list ]; then
	weak_memory
else
	both
fi
printf '%d passed, %d failed\n' $passed $failed
[ $failed -eq 0 ]
