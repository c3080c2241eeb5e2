#!/bin/bash
# packaging/deb.sh OUT - the Debian packages noh and noh-dev from what is built in OUT, into OUT. make deb calls it.
#
# The same sources give the same bytes: every time in the packages is that of the last change of the sources.
set -eu
cd "$(dirname "$0")/.."
out=${1:?usage: packaging/deb.sh OUT}
for c in dpkg-deb dpkg-shlibdeps dpkg-architecture gzip; do
	command -v $c > /dev/null || { echo "make deb needs $c (package dpkg-dev)" >&2; exit 1; }
done
export LC_ALL=C TZ=UTC
umask 022
version=$(sed -n 's/.*NOH_VERSION "\(.*\)"/\1/p' include/noh.h)
arch=$(dpkg-architecture -qDEB_HOST_ARCH)
multiarch=$(dpkg-architecture -qDEB_HOST_MULTIARCH)
maintainer=${DEB_MAINTAINER:-The noh maintainers <maintainers@noh.example>}
: "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct 2> /dev/null || stat -c %Y include/noh.h)}"
export SOURCE_DATE_EPOCH
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

make --no-print-directory -s install DESTDIR="$tmp/all" PREFIX=/usr LIBDIR="/usr/lib/$multiarch" \
	UNITDIR=/lib/systemd/system DOCDIR=/usr/share/doc/noh

# ── noh-dev: what a program is built with; the shared library is none's but the embedder's own matter ──
dev=$tmp/noh-dev lib=usr/lib/$multiarch
mkdir -p "$dev/$lib/pkgconfig" "$dev/usr/share/doc/noh-dev/examples"
mv "$tmp/all/usr/include" "$dev/usr/include"
mv "$tmp/all/$lib/libnoh.a" "$dev/$lib/"
# A static library alone: whoever links it needs the others as well.
awk '/^Libs:/ { libs = $0; next } /^Libs.private:/ { sub(/^Libs.private:/, ""); print libs $0; next } { print }' \
	"$tmp/all/$lib/pkgconfig/noh.pc" > "$dev/$lib/pkgconfig/noh.pc"
cp -r examples/*.c examples/node examples/Makefile "$dev/usr/share/doc/noh-dev/examples/"
strip --strip-debug --enable-deterministic-archives "$dev/$lib/libnoh.a"

# ── noh: the server ──
srv=$tmp/noh
mkdir -p "$srv/usr/share/doc/noh"
mv "$tmp/all/usr/bin" "$srv/usr/bin"
mv "$tmp/all/etc" "$srv/etc"
mv "$tmp/all/lib" "$srv/lib"
[ ! -d "$tmp/all/usr/share/man" ] || mv "$tmp/all/usr/share/man" "$srv/usr/share/man"
[ ! -d "$tmp/all/usr/share/bash-completion" ] || mv "$tmp/all/usr/share/bash-completion" "$srv/usr/share/"
[ ! -d "$tmp/all/usr/share/fish" ] || mv "$tmp/all/usr/share/fish" "$srv/usr/share/"
if [ -d "$tmp/all/usr/share/zsh" ]; then
	mkdir -p "$srv/usr/share/zsh"
	mv "$tmp/all/usr/share/zsh/site-functions" "$srv/usr/share/zsh/vendor-completions"
fi
cp README.md docs/configuration.md docs/operations.md docs/commands.md docs/metrics.md docs/guarantees.md "$srv/usr/share/doc/noh/"
strip --strip-unneeded "$srv/usr/bin/noh"
find "$srv" -path '*/man/*' -name '*.[1-9]' -exec gzip -9n {} +

# ── what both have ──
changelog() { sed -e "s/@version@/$version/" -e "s/@maintainer@/$maintainer/" -e "s/@date@/$(date -R -d "@$SOURCE_DATE_EPOCH")/" packaging/deb/changelog; }
control() {   # package, section, depends, summary, text
	cat <<END
Package: $1
Source: noh
Version: $version
Architecture: $arch
Maintainer: $maintainer
Installed-Size: $(du -sk --apparent-size --exclude=DEBIAN "$tmp/$1" | cut -f1)
Depends: $3
Section: $2
Priority: optional
Description: $4
$(fold -s -w 74 <<< "$5" | sed 's/^/ /; s/ *$//')
END
}
finish() {   # package
	local p=$tmp/$1 doc=$tmp/$1/usr/share/doc/$1
	changelog | gzip -9n > "$doc/changelog.gz"
	cp packaging/deb/copyright "$doc/copyright"
	find "$p" -path "$p/DEBIAN" -prune -o -type f -exec chmod u=rw,go=r {} +
	[ "$1" != noh ] || chmod 755 "$p/usr/bin/noh"
	(cd "$p" && find . -path ./DEBIAN -prune -o -type f -printf '%P\0' | sort -z | xargs -0 md5sum) > "$p/DEBIAN/md5sums"
	find "$p" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
	dpkg-deb --root-owner-group -Zxz --build "$p" "$out/$1_${version}_$arch.deb" > /dev/null
	echo "$out/$1_${version}_$arch.deb"
}
libraries() {   # of a program, as Debian names them
	mkdir -p "$tmp/src/debian" && : > "$tmp/src/debian/control"
	(cd "$tmp/src" && dpkg-shlibdeps -O "$1" 2> /dev/null) | sed -n 's/^shlibs:Depends=//p'
}
headers() {   # the -dev packages of the libraries noh.pc names
	local l f
	for l in $(sed -n 's/^Libs://p' "$dev/$lib/pkgconfig/noh.pc" | tr ' ' '\n' | sed -n 's/^-l//p' | grep -vxE 'noh|m'); do
		f=$(${CC:-gcc} -print-file-name="lib$l.so")
		dpkg -S "$f" "$(realpath -s "$f")" "/lib/${f#/usr/lib/}" 2> /dev/null | cut -d: -f1
	done | sort -u | paste -sd, | sed 's/,/, /g'
}

mkdir -p "$srv/DEBIAN" "$dev/DEBIAN"
control noh database "$(libraries "$srv/usr/bin/noh"), adduser, init-system-helpers (>= 1.54~)" \
	"durable actors, counters and inventory for every Redis client" \
	"noh runs millions of small durable actors on one machine: what it has answered is on disk. Counters and inventory with \
reservations are built in; any Redis client speaks to it. This package has the server, its command line and its systemd \
service, which listens on this machine alone until it is told otherwise." > "$srv/DEBIAN/control"
control noh-dev libdevel "$(headers)" "durable actors, counters and inventory (development files)" \
	"noh runs millions of small durable actors on one machine: what it has answered is on disk. This package has the header, \
the static library and the examples for programs that have actors of their own." > "$dev/DEBIAN/control"
echo /etc/noh/noh.conf > "$srv/DEBIAN/conffiles"
install -m 755 packaging/deb/postinst packaging/deb/prerm packaging/deb/postrm "$srv/DEBIAN/"
mkdir -p "$out"
finish noh
finish noh-dev
