#!/bin/bash
# Measure noh beside CAF, Erlang, Go and Tokio, and write docs/benchmarks.{md,svg,json}.
#
#   bench/peers/run.sh                      everything; wants an idle machine
#   REPS=1 BENCHES="big counting" PEERS="go noh" THREADS=2 bench/peers/run.sh       a part
#   REPS=1 SCALE=0.05 bench/peers/run.sh    does everything still work?
#   bench/peers/run.sh --report RAW...      only write the report again, from kept raw results
#   bench/peers/net.sh                      the servers: Redis, Valkey, PostgreSQL; run.sh runs it at the end of
#                                           a whole run (NET= leaves it out)
#
# Every repetition runs every peer of a benchmark one after the other and starts with another one,
# so that a slow minute of the machine hits all alike. A run during which other processes took
# over 15 % of the machine is done once more. A part goes to out/peers/ instead of docs/; DOCS=DIR
# sets the folder for either. Everything built and the raw results stay in out/peers/; a run that
# was interrupted can still be reported.
set -u
cd "$(dirname "$0")/../.." || exit 1

all_benches="ping-pong counting thread-ring fork-join-create fork-join-throughput big chameneos
	bank-transaction fan-in-10 fan-in-1000 random-counters-1M"
own_rows="random-counters-10M flood counting-batch read-only"
all_peers="caf erlang go tokio noh"

REPS=${REPS:-5}
THREADS=${THREADS:-1 2}
BENCHES=${BENCHES:-$all_benches}
PEERS=${PEERS:-$all_peers}
OWN=${OWN-$own_rows}                 # rows of noh alone; OWN= leaves them out
SCALE=${SCALE:-1}                    # of N, for trials
LIMIT=${LIMIT:-180}                  # seconds one run may take
NOH=${NOH:-out/plain/noh}
here=bench/peers
out=out/peers

# N per benchmark. A run should take 0.3 s or more: the slower peers get less, noh its own.
#                        noh   go, tokio  caf, erlang     one N is
sizes="
ping-pong           15000000     2500000       800000     a round trip of two messages
counting            30000000    10000000      3000000     a message
thread-ring         25000000     4000000      1500000     a hop
fork-join-create     1000000     1000000      1000000     an actor
fork-join-throughput  400000      150000        50000     a message to each of 60 actors
big                    60000       20000         5000     a ping and a pong for each of 120 actors
chameneos            3000000     1000000       300000     a meeting (4 messages)
bank-transaction     3000000     1000000       300000     a transfer (4 messages)
fan-in-10           30000000     8000000      2000000     a message
fan-in-1000         30000000     8000000      2000000     a message
random-counters-1M  10000000    10000000     10000000     a message, plus 2 M for the final check
"                                    # (there the same for all, so that the check weighs the same)

say() { printf '%s\n' "$*" >&2; }
has() { [[ " $1 " == *" $2 "* ]]; }
squeeze() { echo $1; }               # newlines and tabs become single spaces
BENCHES=$(squeeze "$BENCHES") PEERS=$(squeeze "$PEERS") THREADS=$(squeeze "$THREADS")

# ── install ────────────────────────────────────────────────────────────────────────────────────
packages() {
	has "$PEERS" caf && echo g++ libcaf-dev libjemalloc2
	has "$PEERS" erlang && echo erlang-base
	has "$PEERS" go && echo golang-go
	has "$PEERS" tokio && echo librust-tokio-dev
	has "$PEERS" tokio && ! command -v cargo >/dev/null && echo cargo rustc
	command -v python3 >/dev/null || echo python3
}

install_missing() {
	local p missing=() as_root=()
	if ! command -v dpkg >/dev/null; then
		say "This is not Debian: install $(squeeze "$(packages)") or their like by hand."
		return
	fi
	for p in $(packages | tr ' ' '\n' | sort -u); do
		dpkg-query -W -f '${Status}\n' "$p" 2>/dev/null | grep -q 'ok installed' || missing+=("$p")
	done
	[ ${#missing[@]} -eq 0 ] && return
	if [ "$(id -u)" -ne 0 ]; then
		if ! sudo -n true 2>/dev/null; then
			say "Not root and no sudo: please run  apt-get install ${missing[*]}"
			return
		fi
		as_root=(sudo)
	fi
	say "  APT   ${missing[*]}"
	"${as_root[@]}" apt-get update -qq &&
	"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
		apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null ||
		say "apt-get could not install ${missing[*]}; what cannot be built is left out."
}

# ── build ──────────────────────────────────────────────────────────────────────────────────────
build_caf() {
	[ $out/caf -nt $here/caf/main.cpp ] ||
		g++ -O3 -march=native -std=c++17 -DNDEBUG -o $out/caf $here/caf/main.cpp -lcaf_core -lpthread
}

build_erlang() { mkdir -p $out/erlang && erlc +inline -o $out/erlang $here/erlang/savina.erl; }

build_go() {
	local root=$PWD
	(cd $here/go && GOCACHE=$root/$out/go-cache GOFLAGS=-mod=mod GOTOOLCHAIN=local GOPROXY=off \
		GOAMD64=v3 go build -o "$root/$out/go" .)
}

build_tokio() {                      # from a copy: cargo writes its lock file beside the sources
	local root=$PWD
	rm -rf $out/tokio-src && cp -r $here/tokio $out/tokio-src &&
	(cd $out/tokio-src && export RUSTFLAGS="-C target-cpu=native" &&
		cargo build -q --release --offline --target-dir "$root/$out/tokio" &&
		cargo build -q --release --offline --target-dir "$root/$out/tokio-unbounded" \
			--features unbounded)
}

build_noh() { [ "$NOH" != out/plain/noh ] || make --no-print-directory >/dev/null; }

build_all() {
	local p built=
	for p in $PEERS; do
		if ! has "$all_peers" "$p"; then
			say "There is no peer '$p'; the peers are: $all_peers."
			exit 2
		fi
		say "  BUILD $p"
		if build_"$p" >$out/build-"$p".log 2>&1; then
			built="$built $p"
		else
			say "  SKIP  $p: its packages or compiler do not allow the build (see $out/build-$p.log)."
			skipped="$skipped $p"
		fi
	done
	PEERS=$(squeeze "$built")
}

# ── the commands ───────────────────────────────────────────────────────────────────────────────
# A peer with two ways to do it runs as two variants; the report shows the better one per row.
variants() {                         # peer benchmark threads
	case $1 in
	caf) echo caf caf-sharing ;;
	erlang) echo erlang; [ "$2" = fork-join-create ] && echo erlang-hibernate ;;
	tokio) echo tokio; [ "$3" = 1 ] && echo tokio-current
	       [[ $2 = fan-in* || $2 = random* || $2 = counting || $2 = *throughput ]] && return
	       echo tokio-unbounded; [ "$3" = 1 ] && echo tokio-unbounded-current ;;
	*) echo "$1" ;;
	esac
}

# Stealing searches CAF's run queues under their locks: with many ready actors and a second worker
# these two take minutes to hours.
hopeless() { [[ $1 = caf && $3 -gt 1 && ( $2 = fork-join-create || $2 = random-counters-1M ) ]]; }

size() {                             # variant benchmark
	local column
	case $1 in noh) column=2 ;; go|tokio*) column=3 ;; *) column=4 ;; esac
	awk -v b="$2" -v c=$column -v s="$SCALE" '$1 == b { printf "%d\n", $c * s }' <<<"$sizes"
}

# The C++ and Rust programs get the allocator that suits them best: jemalloc for CAF, glibc's for
# Tokio; with a million live actors under random access also 2 MiB pages, which noh uses as well; and a heap that grows in
# large steps while Tokio creates a million (with 2 MiB pages its single runs are 0.5 to 2.9 M/s, most below the 1.9 it has so).
jemalloc=$(ls /usr/lib/*/libjemalloc.so.2 2>/dev/null | head -1)
allocator_of() {                     # variant benchmark  ->  appends to command[]
	case $1/$2 in
	caf*/random*)   command+=(LD_PRELOAD="$jemalloc" MALLOC_CONF=thp:always) ;;
	caf*)           command+=(LD_PRELOAD="$jemalloc") ;;
	tokio*/random*) command+=(GLIBC_TUNABLES=glibc.malloc.hugetlb=1) ;;
	tokio*/*create) command+=(MALLOC_TOP_PAD_=67108864) ;;
	esac
}

command_of() {                       # variant benchmark threads N  ->  command[]
	command=(env)
	allocator_of "$1" "$2"
	case $1 in
	caf)           command+=(CAF_POLICY=stealing "$out/caf") ;;
	caf-sharing)   command+=(CAF_POLICY=sharing "$out/caf") ;;
	erlang*)       [ "$1" = erlang-hibernate ] && command+=(WAITING=hibernate)
	               command+=(erl -noshell -pa "$out/erlang" +S "$3:$3" +sbt db +sbwt very_long
	                         +P 2000000 -run savina main) ;;
	go)            command+=(GOGC=400 "$out/go") ;;
	tokio)         command+=("$out/tokio/release/tokio-peer") ;;
	tokio-current) command+=(TOKIO_RUNTIME=current "$out/tokio/release/tokio-peer") ;;
	tokio-unbounded) command+=("$out/tokio-unbounded/release/tokio-peer") ;;
	tokio-unbounded-current)
	               command+=(TOKIO_RUNTIME=current "$out/tokio-unbounded/release/tokio-peer") ;;
	noh)           command=("$NOH" bench "$2" --workers "$3" --raw)
	               [ -n "$4" ] && command+=(--n "$4")
	               return ;;
	esac
	command+=("$2" "$3" "$4")
}

# ── one run ────────────────────────────────────────────────────────────────────────────────────
tick=$(getconf CLK_TCK)
busy() { awk '/^cpu / { print $2 + $3 + $4 + $7 + $8; exit }' /proc/stat; }

# Runs command[] and sets line to its result and the share of the machine that others used.
measure() {
	local before after real user sys TIMEFORMAT='%R %U %S'
	before=$(busy)
	{ time timeout --foreground -k 5 "$LIMIT" "${command[@]}" >$out/run.out 2>$out/run.err; } 2>$out/run.time
	after=$(busy)
	read -r real user sys < <(tail -1 $out/run.time)
	line=$(tail -1 $out/run.out)
	wall=$real
	other=$(awk -v b=$((after - before)) -v t="$tick" -v c="$(nproc)" -v r="$real" -v u="$user" \
		-v s="$sys" 'BEGIN { o = b / t - u - s; printf "%.2f", (o > 0 && r > 0) ? o / (r * c) : 0 }')
}


# A virtual machine gives memory that was free for a few seconds back to its host, and the next touch of it costs
# about forty times as much. Who makes a million actors would pay that or not by chance: so each program makes them once
# before, in a run that does not count, and then memory is touched on all cores (touch.py says why that is needed, too).
prepare() {
	measure
	python3 $here/touch.py
}

one() {                              # variant benchmark threads
	local n command=() line='' wall=0 other=0 try
	if hopeless "$@"; then
		echo "$1 $2 $3 DNF - - -" >>"$raw"
		return
	fi
	n=$(size "$1" "$2")
	command_of "$1" "$2" "$3" "$n"
	for try in 1 2; do
		[ "$2" = fork-join-create ] && prepare
		measure
		if [[ $line != "$1 $2 $3 "* ]]; then
			if has "$own_rows" "$2" && grep -q 'no benchmark' $out/run.err; then
				echo "$1 $2 $3 ABSENT - - -" >>"$raw"
				return
			fi
			echo "$1 $2 $3 FAILED - - -" >>"$raw"
			say "  FAIL  $1 $2 $3: ${line:-$(tail -1 $out/run.err)}"
			failures=$((failures + 1))
			return
		fi
		awk "BEGIN { exit !($other > 0.15 && $wall < 30) }" || break
		[ $try = 1 ] && echo "# disturbed: $line other=$other" >>"$raw"
	done
	echo "$line other=$other" >>"$raw"
	cost[$1/$2/$3]=$wall
	result=$(awk '{ printf "%.2f M/s", $6 / 1e6 }' <<<"$line")
}

# ── all runs ───────────────────────────────────────────────────────────────────────────────────
plan() {                             # one repetition: "variant benchmark threads" per line
	local rep=$1 b t p v list
	for b in $BENCHES; do
		for t in $THREADS; do
			list=()
			for p in $PEERS; do
				for v in $(variants "$p" "$b" "$t"); do list+=("$v"); done
			done
			for ((i = 0; i < ${#list[@]}; i++)); do
				echo "${list[(i + rep) % ${#list[@]}]} $b $t"
			done
		done
	done
	if has "$PEERS" noh; then
		for b in $OWN; do
			for t in $THREADS; do echo "noh $b $t"; done
		done
	fi
}

remaining() {                        # seconds: known runs at their last cost, the others guessed
	local sum=0 i
	for ((i = $1; i < ${#runs[@]}; i++)); do
		case ${runs[i]} in
		*0M*)    sum="$sum+${cost[${runs[i]// //}]:-30}" ;;
		*1M*)    sum="$sum+${cost[${runs[i]// //}]:-12}" ;;
		*creat*) sum="$sum+${cost[${runs[i]// //}]:-4}" ;;
		*)       sum="$sum+${cost[${runs[i]// //}]:-1.5}" ;;
		esac
	done
	awk "BEGIN { printf \"%d\", $sum }"
}

run_all() {
	local rep i left result line_of_rep
	runs=()
	for ((rep = 1; rep <= REPS; rep++)); do
		while read -r line_of_rep; do runs+=("$line_of_rep"); done < <(plan "$rep")
	done
	for ((i = 0; i < ${#runs[@]}; i++)); do
		(( i % (${#runs[@]} / REPS) == 0 )) && echo "# load $(cut -d' ' -f1-3 /proc/loadavg)" >>"$raw"
		left=$(remaining $i)
		printf '  RUN   %3d/%d  about %2d:%02d left  %-44s' $((i + 1)) ${#runs[@]} \
			$((left / 60)) $((left % 60)) "${runs[i]}" >&2
		result=-
		one ${runs[i]}
		say " $result"
	done
}

# ── facts for the report ───────────────────────────────────────────────────────────────────────
version() { "$@" 2>/dev/null | head -1; }
package() { dpkg-query -W -f '${Version}' "$1" 2>/dev/null || echo unknown; }

show_commands() {                    # peer; without the folder of the library
	local command=() b v
	for b in BENCHMARK fork-join-create random-counters-1M; do
		for v in $(variants "$1" $b 1); do
			[[ $b = BENCHMARK || $v = *-hibernate || $v = tokio* || $v/$b = caf*/random* ]] || continue
			command_of "$v" $b T N
			echo "# command $v/$b: ${command[*]}" | sed 's,LD_PRELOAD=[^ ]*/,LD_PRELOAD=,'
		done
	done
}

facts() {
	echo "# fact date: $(date -u +'%Y-%m-%d %H:%M UTC')"
	echo "# fact cpu: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)"
	echo "# fact cores: $(nproc)"
	echo "# fact memory: $(awk '/MemTotal/ { printf "%.1f GiB", $2 / 1048576 }' /proc/meminfo)"
	echo "# fact kernel: $(uname -sr)"
	echo "# fact repetitions: $REPS"
	for p in $PEERS; do
		case $p in
		caf)    echo "# fact caf: CAF $(package libcaf-dev), $(version g++ --version)," \
		             "-O3 -march=native -DNDEBUG, jemalloc $(package libjemalloc2)" ;;
		erlang) echo "# fact erlang: Erlang/OTP $(package erlang-base)," \
		             "$(erl -noshell -eval 'io:put_chars(atom_to_list(erlang:system_info(emu_flavor))), halt().')" ;;
		go)     echo "# fact go: $(go version | cut -d' ' -f3), GOAMD64=v3" ;;
		tokio)  echo "# fact tokio: Tokio $(package librust-tokio-dev), $(version rustc --version)," \
		             "opt-level 3, fat LTO, target-cpu=native" ;;
		noh)    echo "# fact noh: noh $(sed -n 's/.*NOH_VERSION "\(.*\)"/\1/p' include/noh.h)," \
		             "$(version "${CC:-gcc}" --version), as built by make" ;;
		esac
		show_commands "$p"
	done
	[ -n "$skipped" ] && echo "# fact skipped:$skipped"
	awk 'NF > 4 { printf "# size %s: %s %s %s | ", $1, $2, $3, $4
	              for (i = 5; i <= NF; i++) printf "%s%s", $i, i < NF ? " " : "\n" }' <<<"$sizes"
}

report() {                           # folder raw...
	local dir=$1
	shift
	mkdir -p "$dir"
	python3 $here/report.py "$dir" "$@" && say "  WROTE $dir/benchmarks.md .svg .json"
}

whole() {
	[ "$(tr ' ' '\n' <<<"$BENCHES" | sort)" = "$(squeeze "$all_benches" | tr ' ' '\n' | sort)" ] &&
	[ "$THREADS" = "1 2" ] && [ "$asked" = "$all_peers" ] && [ "$REPS" -ge 3 ] && [ "$SCALE" = 1 ]
}

if [ "${1:-}" = --report ]; then
	shift
	report "${DOCS:-$out}" "$@"
	exit
fi
for b in $BENCHES; do
	has "$(squeeze "$all_benches")" "$b" || { say "There is no benchmark '$b'."; exit 2; }
done
asked=$PEERS skipped='' failures=0
declare -A cost=()
trap 'say; exit 130' INT
mkdir -p $out
exec 9>$out/lock
flock -n 9 || { say "Another run is under way in $out."; exit 1; }
install_missing
build_all
[ -n "$PEERS" ] || { say "Nothing could be built."; exit 1; }
raw=$out/raw-$(date +%Y%m%d-%H%M%S).txt
facts >"$raw"
run_all
if whole; then dir=docs; else dir=$out; fi
report "${DOCS:-$dir}" "$raw" || exit 1
say "  RAW   $raw"
if whole && [ "${NET-yes}" ]; then
	$here/net.sh || failures=$((failures + 1))
fi
if [ $failures -gt 0 ]; then
	say "$failures runs failed."
	exit 1
fi
