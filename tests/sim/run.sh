#!/bin/bash
# tests/sim/run.sh quick|full - simulated boxes (tests/sim/box), and the planted bugs they must find.
#
# quick: seeds 1 to 50, those that once found something, then on from 1001 for some seconds, every planted bug; all at
#        once. The same seeds every time: a gate that draws its own says nothing about the change it guards.
# full:  1,000 of them, 500 that are drawn, some twice; every planted bug. A seed that fails is named, with the command to
# see it again. The last line is "N passed, N failed".
#   OUT=out/plain   where make builds     NOH_SIM_SEED=N   where the drawn ones begin; else it is the time
set -u
cd "$(dirname "$0")/../.." || exit 1
mode=${1:-quick} out=${OUT:-out/plain} from=${NOH_SIM_SEED:-$(date +%s)} passed=0 failed=0
case $mode in quick|full) ;; *) echo "usage: tests/sim/run.sh quick|full" >&2; exit 2 ;; esac
jobs=$(nproc 2>/dev/null || echo 2)
make --no-print-directory -s -j"$jobs" OUT="$out" "$out/noh-sim" || { echo "0 passed, 1 failed"; exit 1; }
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

begin() {   # name, arguments of noh-sim: in the background
	local name=$1
	shift
	"$out/noh-sim" "$@" > "$tmp/$name" 2>&1 &
}
sum_up() {   # name...: shows what it said, and adds it up
	local name p f
	wait
	for name in "$@"; do
		cat "$tmp/$name" | grep -vE '^[0-9]+ passed, [0-9]+ failed$'
		read -r p _ f _ < <(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$tmp/$name" || echo 0 x 1 x)
		passed=$((passed + p)) failed=$((failed + f))
	done
}

# Children of a parent in storage that were left running, twice; an actor that waited for room it took itself; a child of a parent
# that was activated on a full disk.
found=(87 1794861945 90 1794985374)
if [ "$mode" = quick ]; then
	for seed in "${found[@]}"; do
		begin "found-$seed" --seed "$seed"
	done
	begin fixed --seed 1 --seeds 50
	begin more --seed "${NOH_SIM_SEED:-1001}" --seconds 10
	begin plants-0 --plants --budget 400 --part 0/2
	begin plants-1 --plants --budget 400 --part 1/2
	sum_up "${found[@]/#/found-}" fixed more plants-0 plants-1
else
	begin fixed --seed 1 --seeds 1000
	begin drawn --seed "$from" --seeds 500
	sum_up fixed drawn
	begin twice --seed $((from + 500)) --seeds 100 --twice
	begin plants --plants --budget 2000
	sum_up twice plants
fi
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
