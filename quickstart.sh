#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A disk image goes NBD client -> nbdkit rtrs -> RTRS/RNBD -> rtrs-server -> file and back, on this
# machine, and is compared.  See README.md.

usage() {
	cat <<'USAGE'
usage: ./quickstart.sh [--keep] [IMAGE]

Install what is missing (Debian packages; with sudo when you are not root), build, start rtrs-server
and nbdkit rtrs on this machine, copy IMAGE through them and back, and compare.  IMAGE is only read;
without one a small ext4 image with real files is made.

  --keep   leave the servers running at the end, with the image on the exported disk
  --help   show this

TMPDIR    where the copies are kept [/var/tmp]: needs twice the size of IMAGE
USAGE
}

set -u
top=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd) || exit 1
# shellcheck source=build-aux/setup.sh
. "$top/build-aux/setup.sh"

keep=no image=""
while [ $# -gt 0 ]; do
	case $1 in
	--keep) keep=yes ;;
	-h | --help) usage; exit 0 ;;
	--) shift; break ;;
	-*) usage >&2; die "unknown option: $1" ;;
	*) break ;;
	esac
	shift
done
[ $# -le 1 ] || { usage >&2; die "one IMAGE at most, not $#: $*"; }
if [ $# -eq 1 ]; then
	[ -f "$1" ] && [ -r "$1" ] || die "IMAGE is not a file that can be read: $1"
	[ -s "$1" ] || die "IMAGE is empty: $1"
	image=$(realpath -- "$1") || exit 1
fi

heading() {
	printf '\n== %s\n' "$*"
}

server_pid="" nbdkit_pid="" work=""
cleanup() {
	# nbdkit first: its session closes while the server is still there.
	for pid in $nbdkit_pid $server_pid; do
		kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
	done
	[ -z "$work" ] || rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# start LOG READY COMMAND...: run in the background; return when READY is a file that is not empty.
start() {
	local log=$1 ready=$2 deadline=$((SECONDS + 20))
	shift 2
	# In a session of its own, so that --keep survives the end of this terminal.
	setsid "$@" </dev/null >"$log" 2>&1 &
	started_pid=$!
	until [ -s "$ready" ]; do
		if ! kill -0 "$started_pid" 2>/dev/null || [ $SECONDS -gt $deadline ]; then
			cat "$log" >&2
			die "did not start: $*"
		fi
		sleep 0.05
	done
}

# timed_copy NAME BYTES COMMAND...: sets $mb_per_s.
timed_copy() {
	local name=$1 bytes=$2 begin end
	shift 2
	printf '$ %s\n' "$*"
	begin=$(date +%s%N)
	"$@" || die "$name failed; log of rtrs-server: $(tail -n 5 "$work/rtrs-server.log")"
	end=$(date +%s%N)
	mb_per_s=$((bytes * 1000 / (end - begin + 1)))
}

# An ext4 image with programs of this machine as files; mke2fs -d needs no root and no mount.
make_image() {
	local dir=$work/files
	mkdir "$dir"
	find /usr/bin -maxdepth 1 -type f -readable -size -4096k -print0 | sort -z |
		while IFS= read -r -d '' file; do
			[ "$(du -sm "$dir" | cut -f1)" -lt 64 ] || break
			cp -- "$file" "$dir/"
		done
	cp -- "$top/README.md" "$dir/"
	mke2fs -q -F -t ext4 -L quickstart -d "$dir" "$1" 128M || die "mke2fs failed"
	printf '%s: ext4, %d files\n' "$1" "$(find "$dir" -type f | wc -l)"
	rm -rf "$dir"
}

heading "Build"
# shellcheck disable=SC2086 # lists of words
install_packages $packages_build $packages_quickstart
# shellcheck disable=SC2119 # no options
build_tree
[ "$(make_variable SANITIZERS)" = no ] || die "$build is a sanitizer build: remove it and try again"
echo "$build/rtrs-server"
echo "$build/.libs/nbdkit-rtrs-plugin.so"

work=$(mktemp -d "${TMPDIR:-/var/tmp}/nbdkit-rtrs.XXXXXX") || exit 1
# A unix socket's path must fit in 108 bytes.
[ ${#work} -lt 90 ] || die "TMPDIR is too long for a unix socket: $TMPDIR"

heading "Image"
if [ -n "$image" ]; then
	printf '%s\n' "$image"
else
	image=$work/image
	make_image "$image"
fi
size=$(stat -L -c %s -- "$image") || exit 1

heading "Start rtrs-server and nbdkit rtrs"
# RNBD counts in sectors of 512 bytes.
disk=$work/disk0.img
truncate -s $(((size + 511) / 512 * 512)) "$disk" || exit 1
# rtrs-server reports readiness on a descriptor once it listens.
start_server() {
	exec "$build/rtrs-server" --listen tcp://127.0.0.1:0 --ready-fd 9 "disk0=$disk_spec" 9>"$work/ready"
}
# In an export ',' ends PATH, and '\' keeps what follows.
disk_spec=${disk//\\/\\\\}
disk_spec=${disk_spec//,/\\,}
export build disk_spec work
export -f start_server
start "$work/rtrs-server.log" "$work/ready" bash -c start_server
server_pid=$started_pid
port=$(sed -n 's,.*tcp://127\.0\.0\.1:\([0-9]\{1\,5\}\).*,\1,p' "$work/rtrs-server.log" | head -n 1)
[ -n "$port" ] || die "rtrs-server does not say its port: $(cat "$work/rtrs-server.log")"
sed 's/^/rtrs-server: /' "$work/rtrs-server.log"
start "$work/nbdkit.log" "$work/nbdkit.pid" nbdkit -f -t 32 -U "$work/nbd.sock" \
	-P "$work/nbdkit.pid" "$build/.libs/nbdkit-rtrs-plugin.so" server=127.0.0.1:"$port" export=disk0
nbdkit_pid=$started_pid
uri="nbd+unix:///?socket=${work//%/%25}/nbd.sock"
uri=${uri// /%20}
printf '$ nbdinfo "%s"\n' "$uri"
nbdinfo "$uri" || die "nbdinfo failed"

heading "Copy in"
timed_copy "copy in" "$size" nbdcopy --progress --flush -- "$image" "$uri"
in=$mb_per_s
heading "Copy out"
timed_copy "copy out" "$size" nbdcopy --progress -- "$uri" "$work/out.img"
out=$mb_per_s

heading "Compare"
sum_image=$(sha256sum <"$image") && sum_out=$(head -c "$size" "$work/out.img" | sha256sum) || exit 1
printf 'sha256 of the image         %s\n' "${sum_image%% *}"
printf 'sha256 of what came back    %s\n' "${sum_out%% *}"
[ "$sum_image" = "$sum_out" ] || die "the copies differ"
echo "identical"
printf 'in  %5d MB/s\nout %5d MB/s   (%d bytes; holes of the image are not sent)\n' "$in" "$out" "$size"

cat <<EOT

== Use it
URI          $uri
as a disk    nbd-client -unix "$work/nbd.sock" /dev/nbd0     (root; modprobe nbd)
with QEMU    qemu-img info "$uri"
as a file    mkdir mnt && nbdfuse mnt "$uri"
EOT
if [ $keep = yes ]; then
	rm -f "$work/out.img" "$work/image"
	printf 'to stop      kill %d; sleep 1; kill %d; rm -r "%s"\n' "$nbdkit_pid" "$server_pid" "$work"
	printf 'logs         %s\n' "$work/rtrs-server.log" "$work/nbdkit.log"
	nbdkit_pid="" server_pid="" work=""
else
	echo "to stop      nothing: it stops now.  With --keep it goes on running and says how to stop it."
fi
