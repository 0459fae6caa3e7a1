# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# For tests that run in a guest (see run-tests.sh), on top of tests/functions.sh:
#
#	# guest: kernel=6.12 timeout=60
#	. ./tests/functions.sh
#	. "$top_srcdir/tests/guest/lib.sh"
#
# Modules that a test has loaded are unloaded after it.

[ -d /run/guest ] ||
	fail "this runs in a guest only: make check-guest GUEST_TESTS=tests/guest/${0##*/}"

# Addresses of the guest itself on its first interface.
# shellcheck disable=SC2034 # used by the tests
ip4=10.1.0.$GUEST_ID ip6=fd00:1::$GUEST_ID

# ---- the kernel's client ----

rnbd_ctl=/sys/devices/virtual/rnbd-client/ctl/map_device
rnbd_ip=$ip4
rtrs_sysfs=/sys/devices/virtual/rtrs-client

# rnbd_map SESSION EXPORT [KEY=VALUE...]: map it from rdma://$rnbd_ip:1234 and set dev.  Fails when
# the client does; one that hangs is killed by the test's limit, so that the kernel shows where it
# hangs.
rnbd_map() {
	local session=$1 export=$2 before name

	shift 2
	before=$(cd /sys/block && echo rnbd*)
	echo "map $export in session $session $*"
	echo "sessname=$session path=ip:$rnbd_ip@ip:$rnbd_ip device_path=$export $*" >$rnbd_ctl ||
		return 1
	dev=
	for name in $(cd /sys/block && echo rnbd*); do
		case " $before " in *" $name "*) ;; *) dev=/dev/$name ;; esac
	done
	[ -b "$dev" ] || fail "no device came of the map of $export"
	# Other policies give EIO there (doc/traps.md 41).
	! kernel_preempts || echo round-robin >"$rtrs_sysfs/$session/mpath_policy"
}

# kernel_preempts: whether tasks in the kernel are preempted: always since 7.
kernel_preempts() {
	case $(uname -r) in
	[1-6].*) return 1 ;;
	esac
}

# rnbd_unmap DEVICE [force]
rnbd_unmap() {
	echo "${2-normal}" >"/sys/block/${1#/dev/}/rnbd/unmap_device" || return 1
	wait_until "the end of $1" test ! -e "/sys/block/${1#/dev/}"
}

rnbd_state() {
	[ "$(cat "/sys/block/${1#/dev/}/rnbd/state")" = "$2" ]
}

# rnbd_path SESSION: the sysfs directory of its only path.
rnbd_path() {
	echo "$rtrs_sysfs/$1/paths/"*@*
}

rnbd_connected() {
	[ "$(cat "$(rnbd_path "$1")/state")" = connected ]
}

# tenths COMMAND...: how long it takes, whatever becomes of it, in tenths.
tenths() {
	local begin=${EPOCHREALTIME/./}

	"$@" >&2 || true
	echo $(((${EPOCHREALTIME/./} - begin) / 100000))
}

# load_until FILE URI: sixteen writes at a time all over the first 32 MiB, read back and compared,
# until FILE exists.  An error or other data ends it with another status than 0.  FILE.turns counts.
load_until() {
	echo 0 >"$1.turns"
	STOP=$1 nbdsh -u "$2" -c - <"$top_srcdir/tests/nbd-load.py"
}

# nbd_serve unix|tcp PLUGIN [KEY=VALUE]...: start nbdkit, at the same place each time; sets
# nbdkit_pid, nbdkit_log, and nbd_where for nbd_attach.  With NBD_FRONT=rtrs-nbd that program serves
# instead of our plugin.
nbd_serve() {
	local place preload='' front=(nbdkit "$2" -t 32)

	case $1 in
	unix) place=(-U "$tmp/nbd.sock") nbd_where=(-unix "$tmp/nbd.sock") ;;
	# No port is taken in a guest of our own.
	tcp) place=(-i 127.0.0.1 -p 10809) nbd_where=(127.0.0.1 10809) ;;
	esac
	# Those of one that was killed.
	rm -f "$tmp/nbd.sock" "$tmp/nbd.pid"
	nbdkit_log=$tmp/nbdkit$((++started)).log
	if [ "$2" = "$RTRS_PLUGIN" ] && [ "$NBD_FRONT" = rtrs-nbd ]; then
		front=("$RTRS_NBD")
	else
		preload=$(nbdkit_preload)
	fi
	env ${preload:+LD_PRELOAD=$preload} "${front[@]}" -f -P "$tmp/nbd.pid" "${place[@]}" \
		"${@:3}" \
		</dev/null >"$nbdkit_log" 2>&1 &
	nbdkit_pid=$!
	[ "${front[0]}" != nbdkit ] || nbdkits="$nbdkits$nbdkit_pid "
	cleanup_fn stop_process "$nbdkit_pid"
	wait_until "${front[0]}" nbdkit_ready_or_ended "$nbdkit_pid" "$tmp/nbd.pid"
	[ -s "$tmp/nbd.pid" ] || fail "${front[0]} did not start"
}

# nbd_gateway unix|tcp KEY=VALUE...: the front end of this run.
nbd_gateway() {
	nbd_serve "$1" "$RTRS_PLUGIN" "${@:2}"
}

# nbd_attach [NBD-CLIENT-OPTION...]: the gateway becomes /dev/nbd0.
nbd_attach() {
	[ -b /dev/nbd0 ] || modprobe nbd nbds_max=1
	nbd-client "${nbd_where[@]}" /dev/nbd0 "$@"
	wait_until "/dev/nbd0" nbd_attached
	cleanup_fn nbd_detach
}

nbd_attached() {
	[ -e /sys/block/nbd0/pid ] && [ "$(cat /sys/block/nbd0/size)" -gt 0 ]
}

nbd_detach() {
	nbd_attached || return 0
	# A test that fails may leave it mounted, and those after it would have no device.
	umount --all-targets /dev/nbd0 2>/dev/null || true
	nbd-client -d /dev/nbd0
	wait_until "the end of /dev/nbd0" nbd_detached
}

nbd_detached() {
	[ ! -e /sys/block/nbd0/pid ]
}

# load_goes_on WHAT FILE: until two turns more have ended, so that one was begun since.
load_goes_on() {
	wait_until "$1" turns_above "$2" $(($(cat "$2.turns") + 1))
}

turns_above() {
	[ "$(cat "$1.turns")" -gt "$2" ]
}
