#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=6.12 timeout=300
# guest: kernel=6.1 timeout=300 full
# Persistent reservations (store-file-pr.h) on a device of two hosts, which is two SCSI disks here,
# A and B (shared-disk.sh).  The file behind the backstore is read by neither.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"
. "$top_srcdir/tests/guest/shared-disk.sh"
host=$top_builddir/tests/guest/pr-host
[ -x "$host" ] || skip "rtrs-server is not built"
requires dmsetup --version
requires setpriv --version
requires addpart --version
size=$((16 << 20)) block=4096

# no_udev COMMAND...: there is no udev here that dmsetup could wait for.
no_udev() {
	dmsetup "$@" --noudevrules --noudevsync
}

# The backstore is a file behind a map, which can be held.
file=$tmp/shared.img
truncate -s $size "$file"
modprobe -a loop dm_mod
loop=$(losetup --find --show "$file")
cleanup_fn losetup --detach "$loop"
no_udev create rtrs-slow --table "0 $((size / 512)) linear $loop 0"
cleanup_fn no_udev remove rtrs-slow
slow=/dev/dm-$(dmsetup info -c --noheadings -o minor rtrs-slow)
wait_until "$slow" test -b "$slow"
shared_target_up
shared_store shared "$slow" $size
store=$target/core/fileio_0/shared
shared_login 1
shared_login 2
A=${disks_of[1]% } B=${disks_of[2]% }
echo "A is $A, B is $B"

# says RESULT DEVICE KEY COMMAND...: what came of it is RESULT, "ok" or the name of an errno; sets
# words.
says() {
	local want=$1 out status=0

	shift
	out=$("$host" "$@") || status=$?
	words=${out#* }
	echo "$*: $out"
	[ $status -le 1 ] && [ "${out%% *}" = "$want" ] || fail "not $want"
}

# told TEXT: the last words have it.
told() {
	[[ $words == *"$1"* ]] || fail "the words lack: $1"
}

# stands BLOCK CHARACTER: read from the file behind both disks, the block consists of it.
stands() {
	dd if="$file" bs=$block skip="$1" count=1 status=none | tr -d "$2" >"$tmp/rest"
	[ ! -s "$tmp/rest" ] || fail "block $1 does not consist of $2"
}

# writes RESULT DEVICE CHARACTER BLOCK
writes() {
	says "$1" "$2" 0 write "$(printf %d "'$3")" $(($4 * block))
}

new_key() {
	"$host" "$1" new look | sed 's/.*key=//'
}
key_a=$(new_key "$A") key_b=$(new_key "$B")
[ "$key_a" != "$key_b" ]
says ok "$A" "$key_a" check
says ok "$A" "$key_a" look
told "free holder=0x0 registered=0"

echo "A registers, reserves, and writes; B does not"
says ENOKEY "$A" "$key_a" reserve
says ok "$A" "$key_a" register
says ok "$A" "$key_a" look
told "free holder=0x0 registered=1"
says ok "$A" "$key_a" reserve
says ok "$A" "$key_a" reserve
says ok "$A" "$key_a" look
told "ours holder=$key_a registered=1"
writes ok "$A" a 0
writes EBADE "$B" b 0
says ENOKEY "$B" "$key_b" reserve
says ok "$B" "$key_b" register
says EBUSY "$B" "$key_b" reserve
told "reserved by the host with key $key_a"
says ok "$B" "$key_b" release
says ok "$B" "$key_b" look
told "other holder=$key_a registered=1"
writes EBADE "$B" b 0
says EBADE "$B" 0 discard 0
stands 0 a

echo "a server of A that was killed comes again, with another key"
old=$key_a
key_a=$(new_key "$A")
says ok "$A" "$key_a" register
says ok "$A" "$key_a" look
told "ours holder=$key_a registered=1"
says EBUSY "$B" "$key_b" preempt "$old"
writes ok "$A" A 0

echo "B preempts, and waits for the end of a write of A that is in the device"
in_device() {
	grep -q fd_do_rw /proc/[0-9]*/stack
}
reserved_by_b() {
	grep -q 0x0000000000000002 "$store/pr/res_holder"
}
says EINVAL "$B" "$key_b" preempt 0
no_udev suspend --noflush --nolockfs rtrs-slow
cleanup_fn no_udev resume rtrs-slow
"$host" "$A" "$key_a" write 97 $((1 * block)) >"$tmp/stuck" &
stuck=$!
wait_until "a write in the device" in_device
"$host" "$B" "$key_b" preempt "$key_a" >"$tmp/preempt" &
preempting=$!
wait_until "the reservation of B" reserved_by_b
in_device || fail "the write of A was not held"
! process_ended $preempting || fail "B does not wait for the write of A"
no_udev resume rtrs-slow
wait $preempting
writes ok "$B" b 1
wait $stuck || true
echo "the write that was in the device: $(cat "$tmp/stuck")"
stands 1 b
says ok "$B" "$key_b" look
told "ours holder=$key_b registered=1"
writes EBADE "$A" a 1
says EBADE "$A" 0 discard 0
stands 0 A
stands 1 b

echo "what A learns, and that it comes back politely"
says ok "$A" "$key_a" look
told "other holder=$key_b registered=0"
says ENOKEY "$A" "$key_a" reserve
says ENOKEY "$A" "$key_a" preempt "$key_b"
says ok "$A" "$key_a" release
says ok "$A" "$key_a" unregister
says ok "$B" "$key_b" look
told "ours"
# Devices differ here: this one lets the FLUSH of a stranger through (store-file-pr.h).
says ok "$A" 0 flush
says ok "$A" "$key_a" register
says EBUSY "$A" "$key_a" reserve
says ok "$B" "$key_b" release
says ok "$B" "$key_b" look
told "free holder=0x0 registered=1"
says ok "$A" "$key_a" reserve
writes ok "$A" c 2
writes EBADE "$B" b 2
stands 2 c
says ok "$A" "$key_a" unregister
says ok "$A" "$key_a" look
told "free holder=0x0 registered=0"
says ok "$B" "$key_b" unregister
writes ok "$B" b 2
stands 2 b

echo "what cannot be shared"
says EOPNOTSUPP "$file" 1 check
told "'$file' is no block device"
modprobe null_blk nr_devices=1 gb=1
says EOPNOTSUPP /dev/nullb0 1 check
told "'/dev/nullb0' has no persistent reservations"
says EOPNOTSUPP /dev/nullb0 1 register
says EOPNOTSUPP "$loop" 1 check
no_udev create rtrs-test --table "0 1024 linear $A 0"
cleanup_fn no_udev remove rtrs-test
dm=/dev/dm-$(dmsetup info -c --noheadings -o minor rtrs-test)
wait_until "$dm" test -b "$dm"
says EOPNOTSUPP "$dm" 1 check
told "'$dm' is made by device-mapper"
addpart "$A" 1 2048 8192
wait_until "${A}1" test -b "${A}1"
says EOPNOTSUPP "${A}1" 1 check
told "'${A}1' is a partition"
delpart "$A" 1

echo "what the kernel asks for"
bare=$tmp/pr-host-without-capabilities
printf '#!/bin/sh\nexec setpriv --bounding-set=-all %q "$@"\n' "$host" >"$bare"
chmod +x "$bare"
host=$bare
says EPERM "$A" "$key_a" check
told "CAP_SYS_RAWIO"
case $(uname -r) in
6.1.*)
	says EPERM "$A" "$key_a" register
	told "CAP_SYS_ADMIN"
	;;
*)
	says ok "$A" "$key_a" register
	says ok "$A" "$key_a" unregister
	;;
esac
