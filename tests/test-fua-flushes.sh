#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Each write with FUA reaches a sync of the storage, buffered and direct: on a file system that does
# not do what RWF_DSYNC says (FUSE), on a block device, and on ext4, XFS and btrfs, where the server
# relies on the flag.  The storage is ours and counts its syncs.  A sync that fails fails the write.
. ./tests/functions.sh
. "$top_srcdir/tests/storage.sh"
requires_server; requires_plugin; requires_root
requires nbdsh --version

truncate -s 512M "$tmp/disk"
mkdir "$tmp/fs"
held_fs "$tmp/disk"

cat >"$tmp/client.py" <<'END'
import os

def syncs():
    return open(os.environ["log"]).read().count("fsync\n")

def fua(i):
    """The syncs of one write with FUA."""
    before = syncs()
    h.pwrite(os.urandom(4096), i << 16, nbd.CMD_FLAG_FUA)
    return syncs() - before

def eio(what, call):
    must_fail(call, "EIO", what + " succeeded although its sync failed")

def fails():
    open(os.environ["fails"], "w").close()
    eio("a write with FUA", lambda: fua(0))
    os.unlink(os.environ["fails"])
    eio("a FLUSH behind it", h.flush)

got = [fua(i) for i in range(5)]
print("syncs of 5 writes with FUA:", got, flush=True)
assert all(got), got
END
export log=$tmp/held-fs.log fails=$tmp/disk.fails

# fua NAME [LINE]: the client, and one line more, with the export NAME of the server.
fua() {
	start_nbdkit "server=127.0.0.1:$server_port" export="$1"
	{ cat "$tmp/client.py"; echo "${2-}"; } | nbdsh_run "$uri"
	stop_process "$nbdkit_pid"
}

# ---- FUSE: the syncs are those of the writes, one of each description, and no others ----

for how in '' ,direct; do
	start_server "disk=$tmp/mnt/disk$how"
	fua disk 'assert got == [2] * 5, got'
	fua disk 'before = syncs(); h.pwrite(bytes(4096), 0); assert syncs() == before'
	fua disk 'fails()'
	fua disk		# opened anew
	stop_process "$server_pid"
done

# ---- a block device, and file systems on it ----

loop_device "$tmp/mnt/disk" --direct-io=on

for how in '' ,direct; do
	start_server "disk=$loop$how"
	fua disk
	fua disk 'fails()'
	fua disk
	stop_process "$server_pid"
done

untried=''
umount_if_mounted() { ! mountpoint -q "$tmp/fs" || umount_when_free "$tmp/fs"; }
cleanup_fn umount_if_mounted
for fs in 'ext4 -F -q -E nodiscard' 'xfs -f -q -K' 'btrfs -f -q -K'; do
	read -r type options <<<"$fs"
	# shellcheck disable=SC2086 # options are words
	if ! "mkfs.$type" $options "$loop" || ! mount -t "$type" "$loop" "$tmp/fs"; then
		untried="$untried $type"
		continue
	fi
	random_file "$tmp/fs/buffered" 1048576
	random_file "$tmp/fs/direct" 1048576
	sync -f "$tmp/fs"
	start_server "buffered=$tmp/fs/buffered" "direct=$tmp/fs/direct,direct"
	fua buffered
	fua direct
	stop_process "$server_pid"
	umount_when_free "$tmp/fs"
done
[ -z "$untried" ] || echo "NOT TRIED, no mkfs or no module of the kernel:$untried" >&2
