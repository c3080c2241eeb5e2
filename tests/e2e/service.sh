#!/bin/bash
# tests/e2e/service.sh [path/to/noh] - noh as a service: what it tells the service manager and when, its watchdog, reloads,
# users that are revoked, a stop with clients that do not listen, a place without io_uring; the unit, and the packages,
# which are installed and removed for real where that is possible. The last line: "N passed, N failed".
set -u
cd "$(dirname "$0")/../.." || exit 1
root=$PWD
noh=$(realpath "${1:-out/plain/noh}")
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM
unset ${!NOH_*} ${!ACTOR_*} NOTIFY_SOCKET WATCHDOG_USEC WATCHDOG_PID JOURNAL_STREAM
passed=0 failed=0

ok() { passed=$((passed + 1)); }
fail() {   # what
	failed=$((failed + 1))
	printf 'FAIL  %s\n' "$1"
	tail -n 25 "$tmp/out" | sed 's/^/      /'
}
skip() { printf 'SKIP  %s\n' "$1"; }
# 77: it cannot be tried here.
holds() {   # what, command...
	local what=$1 rc
	shift
	if [ "$(type -t "$1")" = function ]; then "$@"; else timeout 120 "$@"; fi > "$tmp/out" 2>&1 < /dev/null
	rc=$?
	case $rc in
	0) ok ;;
	77) skip "$what" ;;
	*) fail "$what (exit $rc)" ;;
	esac
}
finish() {
	printf '%d passed, %d failed\n' $passed $failed
	[ $failed -eq 0 ] && [ $passed -gt 0 ]
	exit
}
command -v python3 > /dev/null || { skip "python3 is not installed"; ok; finish; }

# ── the server under a service manager ──
cc=${CC:-cc}
$cc -std=gnu11 -Wall -Wextra -O1 tests/e2e/no_uring.c -o "$tmp/no_uring" || fail "tests/e2e/no_uring.c"
$cc -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -O1 -shared -fPIC tests/e2e/hang.c -o "$tmp/hang.so" -ldl || fail "tests/e2e/hang.c"
chmod 711 "$tmp"
case_of() {   # case, more words...
	local dir
	dir=$(mktemp -d "$tmp/case.XXXXXX") && cp "$tmp/hang.so" "$dir" || return 1
	cd "$dir" || return 1
	exec timeout 120 python3 "$root/tests/e2e/service.py" "$noh" "$@"
}
run_case() {   # what, case, more words...
	local what=$1 rc
	shift
	(case_of "$@") > "$tmp/out" 2>&1 < /dev/null
	rc=$?
	case $rc in
	0) ok ;;
	77) skip "$what" ;;
	*) fail "$what: $(tail -n 1 "$tmp/out")" ;;
	esac
}
run_case "READY, RELOADING, STOPPING" notify
run_case "an abstract notify socket" abstract
run_case "the watchdog is fed while all workers go round" watchdog                 # CF-17 PL-12
run_case "a watchdog of another process" watchdog_of_another
run_case "the claim on the data directory names its owner and is renewed" claim   # CF-05 CF-06 CF-16
run_case "a revoked user loses open connections" revoked
run_case "a stop does not wait for who takes nothing" deaf
run_case "noh config reload changes all or nothing and says what" reload           # CF-20 CF-21
run_case "reloads that race with a stop" reload_in_a_stop
for io in auto epoll; do
	run_case "sockets of a service manager outlive the server ($io)" sockets $io
done
run_case "sockets of a service manager that cannot be used are told" sockets_refused
run_case "the container's words, settings and health check are right" container "$root/packaging/Containerfile"
activated() {   # by systemd's own program: it starts the server when the first client comes
	local resp http pid i got=
	resp=$((20000 + RANDOM % 10000)) http=$((30000 + RANDOM % 2000))
	systemd-socket-activate -l 127.0.0.1:$resp -l 127.0.0.1:$http --fdname=resp:http "$noh" serve --data "$tmp/activated" & pid=$!
	for i in $(seq 200); do
		got=$( (exec 3<> /dev/tcp/127.0.0.1/$resp && printf 'INCR k\r\n' >&3 && read -r -t 10 line <&3 && echo "${line%$'\r'}") 2> /dev/null) && break
		sleep 0.05
	done
	kill "$pid"
	wait "$pid"
	[ $? -eq 0 ] && [ "$got" = :1 ]
}
if command -v systemd-socket-activate > /dev/null; then
	holds "systemd-socket-activate" activated
else
	skip "systemd-socket-activate is not installed"
fi
for error in EPERM ENOSYS; do
	run_case "without io_uring ($error), as nobody" sealed "$tmp/no_uring" $error
done

# ── the unit ──
install_into() { make --no-print-directory -s install DESTDIR="$1" PREFIX=/usr; }
unit_is_fine() {   # systemd wants what it starts to be there
	sed "s,/usr/bin/noh,$noh,; /^Documentation=/d" "$tmp/dest/usr/lib/systemd/system/noh.service" > "$tmp/noh.service"
	cp packaging/noh.socket "$tmp"
	systemd-analyze verify --man=no "$tmp/noh.service" "$tmp/noh.socket" 2>&1 | grep -E 'noh\.(service|socket)' && return 1
	return 0
}
conf_is_fine() { "$noh" config check "$tmp/dest/etc/noh/noh.conf"; }
keeps_conf() {   # a second install does not touch what an admin wrote
	echo '[net]' > "$tmp/dest/etc/noh/noh.conf" && install_into "$tmp/dest" && [ "$(cat "$tmp/dest/etc/noh/noh.conf")" = '[net]' ]
}
if [ "$noh" = "$root/out/plain/noh" ]; then
	holds "make install" install_into "$tmp/dest"
	holds "the installed noh.conf is right" conf_is_fine
	if command -v systemd-analyze > /dev/null; then
		holds "systemd-analyze verify" unit_is_fine
	else
		skip "systemd-analyze is not installed"
	fi
	holds "no path of the template is left in the unit" sh -c "! grep @ $tmp/dest/usr/lib/systemd/system/noh.service | grep -v '^SystemCallFilter=\|^#'"
	holds "an installed noh.conf stays" keeps_conf
fi

# ── the packages ──
has_file() { dpkg-deb -c "$1" | awk '{ print $6 }' | grep -qx "$2"; }
if [ "$noh" = "$root/out/plain/noh" ] && command -v dpkg-shlibdeps > /dev/null; then
	holds "make deb" make --no-print-directory -s deb
	deb=$(ls "$root"/out/plain/noh_*.deb) dev=$(ls "$root"/out/plain/noh-dev_*.deb)
	for f in ./usr/bin/noh ./etc/noh/noh.conf ./lib/systemd/system/noh.service ./usr/share/doc/noh/copyright; do
		holds "noh has $f" has_file "$deb" "$f"
	done
	for f in ./usr/include/noh.h './usr/lib/.*/libnoh.a' './usr/lib/.*/pkgconfig/noh.pc'; do
		holds "noh-dev has $f" has_file "$dev" "$f"
	done
	holds "noh.conf is a conffile" sh -c "dpkg-deb -I $deb conffiles | grep -qx /etc/noh/noh.conf"
	sum=$(sha256sum < "$deb")
	holds "make deb, again" make --no-print-directory -s deb
	holds "the same sources give the same package" test "$sum" = "$(sha256sum < "$deb")"
	if command -v lintian > /dev/null; then
		holds "lintian finds no errors" lintian --allow-root --fail-on error "$deb" "$dev"
	else
		skip "lintian is not installed"
	fi
	holds "installed, run, removed and purged for real" tests/e2e/deb_install.sh "$deb" "$dev"
else
	skip "packages: dpkg-dev is not installed, or this is another build"
fi
finish
