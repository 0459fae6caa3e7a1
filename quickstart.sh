#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A disk image goes NBD client -> gateway -> RTRS/RNBD -> rtrs-server -> file and back, on this
# machine, and is compared.  The gateway is nbdkit rtrs or rtrs-nbd.  See README.md.

usage() {
	cat <<'USAGE'
usage: ./quickstart.sh [--keep] [--gateway=NAME] [--build DIR] [IMAGE]

Install what is missing (Debian packages; with sudo when you are not root),
build, start rtrs-server and a gateway on this machine, copy IMAGE through
them and back, and compare.  IMAGE is only read; without one a small ext4 image
with real files is made.

  --gateway=nbdkit    nbdkit with the plugin: has filters and TLS (default)
  --gateway=rtrs-nbd  rtrs-nbd: has no thread for each request
  --keep              leave the servers running at the end, with the image on
                      the disk
  --build DIR         take what is built in DIR: nothing is installed or built
  --help              show this

TMPDIR       where the copies are kept, up to three times IMAGE [/var/tmp]
USAGE
}

set -u
top=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd) || exit 1
# shellcheck source=build-aux/setup.sh
. "$top/build-aux/setup.sh"

keep=no image="" built="" gateway=nbdkit
while [ $# -gt 0 ]; do
	case $1 in
	--keep) keep=yes ;;
	--gateway) [ $# -ge 2 ] || die "--gateway: expected nbdkit or rtrs-nbd"; gateway=$2; shift ;;
	--gateway=*) gateway=${1#*=} ;;
	--build) [ $# -ge 2 ] || die "--build needs a directory"; built=$2; shift ;;
	-h | --help) usage; exit 0 ;;
	--) shift; break ;;
	-*) usage >&2; die "unknown option: $1" ;;
	*) break ;;
	esac
	shift
done
case $gateway in
nbdkit) gateway_file=.libs/nbdkit-rtrs-plugin.so gateway_name="nbdkit rtrs" ;;
rtrs-nbd) gateway_file=rtrs-nbd gateway_name=rtrs-nbd ;;
*) die "--gateway '$gateway': expected nbdkit or rtrs-nbd" ;;
esac
[ $# -le 1 ] || { usage >&2; die "one IMAGE at most, not $#: $*"; }
if [ $# -eq 1 ]; then
	[ -f "$1" ] && [ -r "$1" ] || die "IMAGE is not a file that can be read: $1"
	[ -s "$1" ] || die "IMAGE is empty: $1"
	image=$(realpath -- "$1") || exit 1
fi

heading() {
	printf '\n== %s\n' "$*"
}

server_pid="" gateway_pid="" nbdkit_wanted=no work=""

# nbdkit is a daemon: started with -f it would be sent SIGTERM at the end of the thread that started
# it (version 1.32 asks the kernel for that, whatever its options), and --keep would keep nothing.
# It writes its pid some time after the command has returned, when it accepts connections.
nbdkit_wait() {
	local deadline=$((SECONDS + 30))
	until [ -s "$work/gateway.pid" ]; do
		[ $SECONDS -lt $deadline ] || return 1
		sleep 0.1
	done
	gateway_pid=$(cat "$work/gateway.pid")
}

# The gateways are daemons: each goes on when the terminal has gone.
start_nbdkit() {
	setsid --wait nbdkit -t 32 -U "$work/nbd.sock" -P "$work/gateway.pid" \
		"$build/.libs/nbdkit-rtrs-plugin.so" "$@" \
		</dev/null >"$work/gateway.log" 2>&1 ||
		die "nbdkit did not start: $(cat "$work/gateway.log")"
	nbdkit_wanted=yes
	nbdkit_wait || die "nbdkit ended, or does not accept connections; the system log may say why"
}

# rtrs-nbd has written its pid and accepts connections when the command has returned.
start_rtrs_nbd() {
	"$build/rtrs-nbd" -U "$work/nbd.sock" -P "$work/gateway.pid" "$@" \
		</dev/null >"$work/gateway.log" 2>&1 ||
		die "rtrs-nbd did not start: $(cat "$work/gateway.log")"
	gateway_pid=$(cat "$work/gateway.pid")
}

cleanup() {
	[ $nbdkit_wanted = no ] || [ -n "$gateway_pid" ] || nbdkit_wait
	# The gateway first: its session closes while the server is still there.
	for pid in $gateway_pid $server_pid; do
		kill "$pid" 2>/dev/null
		while kill -0 "$pid" 2>/dev/null; do
			sleep 0.05
		done
	done
	[ -z "$work" ] || rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

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

# What a path needs to be part of a URI.
percent_encode() {
	local LC_ALL=C i c
	for ((i = 0; i < ${#1}; i++)); do
		c=${1:i:1}
		case $c in
		[A-Za-z0-9/._~-]) printf %s "$c" ;;
		*) printf '%%%02X' "'$c" ;;
		esac
	done
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

if [ -n "$built" ]; then
	build=$(realpath -- "$built") || exit 1
	for file in rtrs-server "$gateway_file"; do
		[ -x "$build/$file" ] || die "--build $built: expected $file there"
	done
else
	heading "Build"
	# shellcheck disable=SC2086 # lists of words
	install_packages $packages_build $packages_quickstart
	# shellcheck disable=SC2086 # lists of words
	( install_packages $packages_wanted ) || say "The build does without: $packages_wanted"
	# shellcheck disable=SC2119 # no options
	build_tree
fi
[ "$(make_variable SANITIZERS)" = no ] || die "$build is a sanitizer build: remove it and try again"
echo "$build/rtrs-server"
echo "$build/$gateway_file"

work=$(mktemp -d "${TMPDIR:-/var/tmp}/nbdkit-rtrs.XXXXXX") ||
	die "TMPDIR=${TMPDIR:-/var/tmp}: expected a directory where files can be made"
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
if [ $((size % 512)) -ne 0 ]; then
	# RNBD counts in sectors, and nbdcopy does not send a part of one.
	echo "$size bytes are no multiple of 512: zeroes are added to a copy"
	cp --sparse=always --reflink=auto -- "$image" "$work/padded" ||
		die "TMPDIR=${TMPDIR:-/var/tmp}: expected room for a copy of $image, $size bytes"
	image=$work/padded
	truncate -s %512 "$image" || exit 1
	size=$(stat -c %s "$image") || exit 1
fi

heading "Start rtrs-server and $gateway_name"
disk=$work/disk0.img
truncate -s "$size" "$disk" || exit 1
# In an export ',' ends PATH, and '\' keeps what follows.
spec=${disk//\\/\\\\}
spec=${spec//,/\\,}
# In a session of its own, so that --keep survives the end of this terminal.  It writes a line to
# the descriptor, and closes it, when it listens.
mkfifo "$work/ready"
setsid "$build/rtrs-server" --listen=tcp://127.0.0.1:0 --ready-fd=9 "disk0=$spec" \
	</dev/null >"$work/rtrs-server.log" 2>&1 9>"$work/ready" &
server_pid=$!
disown
read -r -t 20 _ <"$work/ready" || die "rtrs-server did not start: $(cat "$work/rtrs-server.log")"
port=$(sed -n 's,^listening on tcp://127\.0\.0\.1:,,p' "$work/rtrs-server.log")
sed 's/^/rtrs-server: /' "$work/rtrs-server.log"
"start_${gateway/-/_}" server=127.0.0.1:"$port" export=disk0
uri="nbd+unix:///?socket=$(percent_encode "$work/nbd.sock")"
printf '$ nbdinfo "%s"\n' "$uri"
nbdinfo "$uri" || die "nbdinfo failed"

heading "Copy in"
timed_copy "copy in" "$size" nbdcopy --progress --flush -- "$image" "$uri"
in=$mb_per_s
heading "Copy out"
timed_copy "copy out" "$size" nbdcopy --progress -- "$uri" "$work/out.img"
out=$mb_per_s

heading "Compare"
sum_image=$(sha256sum <"$image") && sum_out=$(sha256sum <"$work/out.img") || exit 1
printf 'sha256 of the image         %s\n' "${sum_image%% *}"
printf 'sha256 of what came back    %s\n' "${sum_out%% *}"
[ "$sum_image" = "$sum_out" ] || die "the copies differ"
echo "identical"
printf 'in  %5d MB/s\nout %5d MB/s   (%d bytes; holes of the image are not sent)\n' "$in" "$out" \
	"$size"

cat <<EOT

== Use it
URI          $uri
as a disk    nbd-client -unix "$work/nbd.sock" /dev/nbd0     (root; modprobe nbd)
with QEMU    qemu-img info "$uri"
as a file    mkdir mnt && nbdfuse mnt "$uri"
EOT
if [ $keep = yes ]; then
	rm -f "$work/out.img" "$work/image" "$work/padded"
	printf 'to stop      kill %d; sleep 1; kill %d; rm -r "%s"\n' "$gateway_pid" "$server_pid" \
		"$work"
	printf 'log          %s   (%s writes to the system log)\n' "$work/rtrs-server.log" "$gateway"
	gateway_pid="" nbdkit_wanted=no server_pid="" work=""
else
	echo "to stop      nothing: it stops now.  With --keep it goes on running and says how to stop it."
fi
