#!/bin/bash
# tests/e2e/deb_install.sh NOH.deb NOH-DEV.deb - install the packages, use them, remove and purge them: by dpkg itself, on a
# copy of this system that is thrown away (an overlay over its root). 77: that cannot be done here.
set -u
deb=$(realpath "$1") dev=$(realpath "$2")
[ "$(id -u)" = 0 ] || exit 77
if [ -z "${INSIDE:-}" ]; then
	work=$(mktemp -d) || exit 1
	INSIDE=$work unshare --mount --pid --fork "$0" "$deb" "$dev"
	rc=$?
	rmdir "$work"
	exit $rc
fi
mount --make-rprivate / && mount -t tmpfs none "$INSIDE" && mkdir "$INSIDE"/{upper,work,root,debs} || exit 77
mount -t overlay noh-test -o "lowerdir=/,upperdir=$INSIDE/upper,workdir=$INSIDE/work" "$INSIDE/root" || exit 77
new=$INSIDE/root
mkdir -p "$new/tmp/noh-debs"
cp "$deb" "$dev" "$new/tmp/noh-debs/"
mount -t proc proc "$new/proc" 2> /dev/null
mount --bind /dev "$new/dev" 2> /dev/null
inside() { chroot "$new" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C "$@"; }
must() {   # what, command...
	local what=$1
	shift
	"$@" && return
	echo "deb_install: $what"
	exit 1
}
must_not() { local what=$1; shift; ! "$@" 2> /dev/null && return; echo "deb_install: $what"; exit 1; }

inside getent passwd noh > /dev/null && { echo "there is a user noh already"; exit 77; }
# What it depends on is there, or this machine could not have built it; else nothing is proved.
inside dpkg --dry-run -i "/tmp/noh-debs/$(basename "$deb")" > /dev/null 2>&1 || exit 77

must "dpkg -i" inside dpkg -i "/tmp/noh-debs/$(basename "$deb")"
must "it is configured" sh -c "chroot $new dpkg-query -W -f '\${Status}' noh | grep -qx 'install ok installed'"
must "the user noh" inside getent passwd noh
must "the directory is its own alone" test "$(inside stat -c '%U:%G %a' /var/lib/noh)" = 'noh:noh 700'
must "the binary runs" inside noh version
must "the settings are right" inside setpriv --reuid noh --regid noh --clear-groups noh config check
must "the unit's program is there" inside test -x "$(sed -n 's/^ExecStart=\([^ ]*\).*/\1/p' "$new/lib/systemd/system/noh.service")"

# As the unit starts it, but on no port: others may use those.
chroot "$new" /usr/bin/setpriv --reuid noh --regid noh --clear-groups --no-new-privs \
	noh serve --config /etc/noh/noh.conf --resp-port 0 --http-port 0 --unix /var/lib/noh/s > "$INSIDE/log" 2>&1 &
pid=$!
for _ in $(seq 200); do grep -q 'ready in' "$INSIDE/log" && break; sleep 0.05; done
grep -q 'ready in' "$INSIDE/log" || { cat "$INSIDE/log"; echo "deb_install: it does not start as the user noh"; exit 1; }
must "noh config reload finds it" inside setpriv --reuid noh --regid noh --clear-groups noh config reload
must_not "another user may not reload it" inside setpriv --reuid nobody --regid nogroup --clear-groups noh config reload > /dev/null
kill -TERM $pid
must "it stops" wait $pid

must "dpkg -i noh-dev" inside dpkg -i --force-depends "/tmp/noh-debs/$(basename "$dev")" > /dev/null 2>&1
if inside sh -c 'command -v pkg-config && command -v cc' > /dev/null; then
	must "a program is built with noh-dev" inside sh -c \
		'cc /usr/share/doc/noh-dev/examples/counter.c -o /tmp/counter $(pkg-config --cflags --libs noh) -pthread && /tmp/counter > /dev/null'
fi
must "an upgrade to the same version" inside dpkg -i "/tmp/noh-debs/$(basename "$deb")"
must "dpkg -r" inside dpkg -r noh-dev noh
must_not "the binary is gone" test -e "$new/usr/bin/noh"
must "the settings stay" test -e "$new/etc/noh/noh.conf"
must "dpkg -P, with data" inside dpkg -P noh noh-dev
must_not "the settings are gone" test -e "$new/etc/noh"
must "data are kept" test -e "$new/var/lib/noh/noh.dir"
must "and whose they are" inside getent passwd noh
must "dpkg -i once more" inside dpkg -i "/tmp/noh-debs/$(basename "$deb")" > /dev/null
rm -rf "$new"/var/lib/noh/*
must "dpkg -P, without data" inside dpkg -P noh
must_not "no directory is left" test -e "$new/var/lib/noh"
must_not "no user is left" inside getent passwd noh
left=$(cd "$INSIDE/upper" && find etc lib usr var -name '*noh*' -not -type c 2> /dev/null | grep -v '^var/lib/dpkg/info/.*dpkg-tmp')
must "nothing is left: $left" test -z "$left"
