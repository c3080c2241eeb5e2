#!/bin/bash
# tests/e2e/doctor.sh [path/to/noh] - noh doctor finds what is planted: each of these misconfigurations by itself, with what
# to do about it, and none where nothing is wrong.
set -u
cd "$(dirname "$0")/../.." || exit 1
noh=$(realpath "${1:-out/plain/noh}")
unset ${!NOH_*} ${!ACTOR_*} NO_COLOR
. tests/e2e/server.sh
${CC:-cc} -O1 -D_GNU_SOURCE tests/e2e/no_uring.c -o "$tmp/no_uring" || exit 1
cd "$tmp" || exit 1
shm=
tidy_shm() { [ "$shm" ] && rm -rf "$shm"; tidy; }
trap tidy_shm EXIT
resp=$(free_port) web=$(free_port)
ports=(--resp-port "$resp" --http-port "$web")

# What doctor says of one check, and that it ends as it must.
finds() {   # what is planted, exit code, verdict, check, pattern, command...
	local what=$1 code=$2 verdict=$3 check=$4 pattern=$5 got rc
	shift 5
	got=$(timeout 60 "$@" 2>&1)
	rc=$?
	if [ $rc -ne "$code" ]; then
		fail "$what: exit $rc, not $code" "$got"
	elif ! grep -E "^$verdict +$check " <<< "$got" | grep -qE -- "$pattern"; then
		fail "$what: no line \"$verdict $check ... $pattern\"" "$got"
	else
		ok
	fi
}
doctor() { finds "$1" "$2" "$3" "$4" "$5" "$noh" doctor "${ports[@]}" "${@:6}"; }

# ── nothing is wrong ──
quiet=$("$noh" doctor "${ports[@]}" --data data --quiet)
[ $? -eq 0 ] && ! grep -q '^fail' <<< "$quiet" && ok || fail "a machine as it is: something failed" "$quiet"
doctor "as it is" 0 ok config 'settings given' --data data
"$noh" doctor "${ports[@]}" --data data --json > json
grep -q '"check": "config", "verdict": "ok"' json && [ "$(head -c 1 json)" = '[' ] && [ "$(tail -n 1 json)" = ']' ] && ok || fail "--json" "$(cat json)"
[ ! -e data ] && ok || fail "doctor made a data directory"

# ── planted, one at a time ──
printf '[net]\nbnid = 127.0.0.1\n' > typo.conf
doctor "an unknown key" 1 fail config 'bnid.*bind' --data data --config typo.conf
if [ -d /dev/shm ] && [ "$(stat -f -c %T /dev/shm)" = tmpfs ]; then
	shm=$(mktemp -d /dev/shm/noh-XXXXXX)
	doctor "a data directory on tmpfs" 1 fail file-system 'tmpfs.*choose a directory on a disk' --data "$shm/data"
fi
finds "too few open files" 1 fail open-files '10000 connections need 10128.*LimitNOFILE' \
	bash -c 'ulimit -n 500; exec "$@"' bash "$noh" doctor "${ports[@]}" --data data
finds "io_uring is forbidden" 0 warn io_uring 'not permitted.*epoll is used' ./no_uring EPERM 0 "$noh" doctor "${ports[@]}" --data data
finds "io_uring is forbidden and insisted on" 1 fail io_uring 'insists' ./no_uring EPERM 0 "$noh" doctor "${ports[@]}" --data data --io uring
doctor "no room for the journal" 1 fail disk-space 'the journal alone.*smaller --journal' --data data --journal 64GiB
doctor "public without users" 1 fail users 'no users.*noh user add' --data data --bind 0.0.0.0
doctor "public and insecure" 0 warn users 'whoever connects' --data data --bind 0.0.0.0 --insecure
doctor "more memory than there is" 1 fail memory 'a budget of' --data data --memory 64TiB
doctor "more workers than cores" 0 warn workers '1000 workers' --data data --workers 1000
finds "a limit on address space" 1 fail address-space 'ulimit -v' \
	bash -c 'ulimit -v 60000000; exec "$@"' bash "$noh" doctor "${ports[@]}" --data data
if [ "$(id -u)" -ne 0 ]; then
	mkdir locked && chmod 500 locked
	doctor "a directory of somebody else" 1 fail data-dir 'chown' --data locked/data
fi
echo text > plain
doctor "a file where the directory should be" 1 fail data-dir 'no directory' --data plain
doctor "a file where the socket should be" 1 fail unix-socket 'no socket' --data data --unix plain

# ── beside a server, and what one leaves behind ──
port=$resp
start_server --http-port "$web" || finish
doctor "a server that runs" 0 ok server 'runs, and is ready' --data data
doctor "its port is its own" 0 ok resp-port 'by the server that runs' --data data
doctor "a port of another program" 1 fail resp-port 'used by another program.*ss -ltnp' --data other
doctor "a port of another program, HTTP" 1 fail http-port 'used by another program' --data other
finds "a server elsewhere" 0 ok server 'runs, and is ready' "$noh" doctor --url "http://127.0.0.1:$web"
finds "its workers" 0 ok workers 'healthy; 0 of [0-9]+ actors active' "$noh" doctor --url "http://127.0.0.1:$web"
"$noh" doctor --url "http://127.0.0.1:$web" | grep -q data-dir && fail "asked elsewhere it looks at this machine" || ok
finds "nobody elsewhere" 1 fail server 'does not answer' "$noh" doctor --url "http://127.0.0.1:$(free_port)"
finds "a wrong setting beside a URL" 1 fail config '"many"' "$noh" doctor --max-args many --url "http://127.0.0.1:$web"
"$noh" doctor --url nonsense > said 2>&1
[ $? -eq 2 ] && grep -q nonsense said && ok || fail "a URL that is none" "$(cat said)"
"$noh" user add ann --role admin --data data > added
chmod 644 data/users
doctor "accounts that others may read" 1 fail users-file 'chmod 600' --data data
chmod 600 data/users
for _ in $(seq 100); do "$noh" doctor --url "http://127.0.0.1:$web" | grep -q '^warn' && break; sleep 0.1; done
finds "a server that wants a token" 0 warn workers 'give an admin.s token' "$noh" doctor --url "http://127.0.0.1:$web"
grep -oE '[A-Za-z0-9_-]{40,}' added | head -n 1 > token
finds "with one" 0 ok workers 'healthy' "$noh" doctor --url "http://127.0.0.1:$web" --token-file token
kill_server
# Its other sockets as well are closed a moment after it is gone.
for _ in $(seq 100); do "$noh" doctor --data data | grep -q 'left from a server' && break; sleep 0.1; done
doctor "a stale socket" 0 warn http-socket 'left from a server that has ended' --data data
touch -d '2 days' data/noh.dir
doctor "a clock that went back" 1 fail clock-back 'set the clock' --data data
touch data/noh.dir
cp data/noh.dir whole
sed -i 's/^format 1$/format 9/' data/noh.dir
doctor "a damaged number of the format" 1 fail data 'is damaged.*noh restore' --data data
{ head -n 1 whole; printf 'format 9\nwhat only a later one knows\n'; } > data/noh.dir
doctor "a directory of a newer format" 1 fail data-format 'format 9.*newer release.*nothing is damaged' --data data
{ head -n 1 whole; printf 'format 0\n'; } > data/noh.dir
doctor "a directory of an older format" 1 fail data-format 'format 0.*older than the first release.*nothing is damaged' --data data
finish
