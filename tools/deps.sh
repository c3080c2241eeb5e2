#!/bin/bash
# tools/deps.sh [build|test|all] - what noh is built with (build) and tested with (test, all).
#
# Looks for headers, libraries and commands, whatever system they come from; that takes a blink and
# calls no package manager. What is missing is installed by apt-get, as root or through sudo.
# Where that cannot be, one sentence names the packages. Without the parts for building: exit 1.
# Without parts for testing: the tests that need them are skipped.
set -u
export LC_ALL=C
want=${1:-build}
case $want in build|test|all) ;; *) echo "usage: tools/deps.sh [build|test|all]" >&2; exit 2 ;; esac

cc=${CC:-gcc}
cc=${cc%% *}
command -v "$cc" >/dev/null || cc=cc
command -v clang >/dev/null && clang=clang || clang=

has_command() { command -v "$1" >/dev/null; }
has_admin_command() { has_command "$1" || [ -x "/usr/sbin/$1" ] || [ -x "/sbin/$1" ]; }
has_library() {   # pkg-config name, header
	pkg-config --exists "$1" 2>/dev/null ||
		printf '#include <stddef.h>\n#include <%s>\n' "$2" | "$cc" -E -x c - >/dev/null 2>&1
}
links() {   # compiler, flags: does a program link with them?
	printf 'int main(void) { return 0; }\n' | "$@" -x c - -o /dev/null 2>/dev/null
}
has_clang_rt() {
	[ -n "$clang" ] && ls "$(clang -print-resource-dir)"/lib/*/libclang_rt.fuzzer*.a >/dev/null 2>&1
}
has_sanitizers() { links "$cc" -fsanitize=address,undefined && links "$cc" -fsanitize=thread; }
has_relacy() { [ -e /usr/include/relacy/relacy.hpp ] || [ -e /usr/local/include/relacy/relacy.hpp ]; }

# Debian's run-time libraries of the sanitizers carry the compiler's version in their names.
clang_rt_name() {
	local v
	v=$([ -n "$clang" ] && clang -dumpversion)
	[ -n "$v" ] || v=$(apt-cache depends clang 2>/dev/null | sed -n 's/.*Depends: clang-\([0-9]*\).*/\1/p')
	echo "libclang-rt-$(printf '%s\n' "${v:-14}" | sed 's/[^0-9].*//' | head -n 1)-dev"
}

gcc_rt_name() { echo "libgcc-$("$cc" -dumpversion | sed 's/[^0-9].*//')-dev"; }

# One line per part: is it here, and else its package in Debian, Fedora, Arch ("-": none there).
check() {
	local debian=$1 fedora=$2 arch=$3
	shift 3
	"$@" && return
	missing+=("$debian")
	in_fedora+=("$fedora")
	in_arch+=("$arch")
}
look() {
	missing=() in_fedora=() in_arch=()
	hash -r
	if [ "$1" = build ]; then
		check gcc              gcc                gcc             has_command "$cc"
		check libc6-dev        glibc-devel        glibc           links "$cc"
		check make             make               make            has_command make
		check pkg-config       pkgconf-pkg-config pkgconf         has_command pkg-config
		check liburing-dev     liburing-devel     liburing        has_library liburing liburing.h
		check libjemalloc-dev  jemalloc-devel     jemalloc        has_library jemalloc jemalloc/jemalloc.h
		check libck-dev        ck-devel           'ck (AUR)'      has_library ck ck_pr.h
		check liblmdb-dev      lmdb-devel         lmdb            has_library lmdb lmdb.h
		check libxxhash-dev    xxhash-devel       xxhash          has_library libxxhash xxhash.h
		check libssl-dev       openssl-devel      openssl         has_library libcrypto openssl/sha.h
	else
		command -v clang >/dev/null && clang=clang
		check g++              gcc-c++            gcc             has_command g++
		check clang            clang              clang           has_command clang
		check "$(clang_rt_name)" compiler-rt      compiler-rt     has_clang_rt
		check "$(gcc_rt_name)" 'libtsan libasan libubsan' gcc-libs has_sanitizers
		check relacy-dev       -                  -               has_relacy
		check redis-tools      redis              redis           has_command redis-cli
		check libhiredis-dev   hiredis-devel      hiredis         has_library hiredis hiredis/hiredis.h
		check curl             curl               curl            has_command curl
		check wrk              -                  'wrk (AUR)'     has_command wrk
		check nghttp2-client   nghttp2            libnghttp2      has_command h2load
		check slowhttptest     slowhttptest       'slowhttptest (AUR)' has_command slowhttptest
		check python3          python3            python          has_command python3
		check nodejs           nodejs             nodejs          has_command node
		check npm              npm                npm             has_command npm
		check python3          python3            python          has_command python3
		check dpkg-dev         dpkg-dev           dpkg            has_command dpkg-shlibdeps
		check lintian          -                  -               has_command lintian
		check systemd          systemd            systemd         has_command systemd-analyze
		check valgrind         valgrind           valgrind        has_command valgrind
		check fuse3            fuse3              fuse3           has_command fusermount3
		check libfuse3-dev     fuse3-devel        fuse3           has_library fuse3 fuse3/fuse.h
		check e2fsprogs        e2fsprogs          e2fsprogs       has_admin_command mkfs.ext4
		check xfsprogs         xfsprogs           xfsprogs        has_admin_command mkfs.xfs
	fi
}
packages() { local p; for p in "$@"; do [ "$p" = - ] || printf ' %s' "$p"; done; }
sentence() {
	echo "$1 Debian:$(packages "${missing[@]}"); Fedora:$(packages "${in_fedora[@]}");" \
	     "Arch:$(packages "${in_arch[@]}")." >&2
}

as_root=
can_install() {
	has_command apt-get || return 1
	[ "$(id -u)" = 0 ] && return 0
	has_command sudo || return 1
	if [ -t 0 ]; then as_root=sudo; else as_root='sudo -n'; fi
	$as_root true 2>/dev/null
}
# Runs quietly; a line that counts the seconds on a terminal, one plain line elsewhere.
quietly() {   # what to say, command...
	local say=$1 began=$SECONDS pid rc
	shift
	"$@" >"$log" 2>&1 &
	pid=$!
	if [ -t 2 ]; then
		while kill -0 $pid 2>/dev/null; do
			printf '\r  DEPS  %s (%d s) ' "$say" $((SECONDS - began)) >&2
			sleep 0.2
		done
	fi
	wait $pid
	rc=$?
	[ -t 2 ] && printf '\r\033[K' >&2
	printf '  DEPS  %s, %d s\n' "$say" $((SECONDS - began)) >&2
	return $rc
}
updated=
install_missing() {
	local apt="env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=120"
	log=$(mktemp) || return 1
	trap 'rm -f "$log"' EXIT
	if [ -z "$updated" ]; then
		quietly "reading the package lists" $as_root $apt update || true
		updated=1
	fi
	quietly "installing ${missing[*]}" $as_root $apt install -y --no-install-recommends "${missing[@]}" &&
		return
	# One package that is not to be had must not keep the others away.
	local p
	for p in "${missing[@]}"; do
		quietly "installing $p" $as_root $apt install -y --no-install-recommends "$p" || true
	done
}

look build
if [ ${#missing[@]} -gt 0 ] && can_install; then
	install_missing
	look build
	[ ${#missing[@]} -gt 0 ] && tail -n 5 "$log" >&2
fi
if [ ${#missing[@]} -gt 0 ]; then
	sentence "noh cannot be built here yet; please install these packages:"
	exit 1
fi
[ "$want" = build ] && exit 0

look test
if [ ${#missing[@]} -gt 0 ] && can_install; then
	install_missing
	look test
	# clang came just now: its run-time library is named after its version.
	[ ${#missing[@]} -gt 0 ] && [ -n "$clang" ] && { install_missing; look test; }
fi
[ ${#missing[@]} -gt 0 ] &&
	sentence "Some tests will be skipped; these packages would let them run:"
exit 0
