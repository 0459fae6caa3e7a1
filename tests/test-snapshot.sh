#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# "rtrsctl export snapshot": a file beside the exported one that has all writes which were answered,
# each as a whole, while a client writes on.  What cannot have a snapshot is refused by name, and
# nothing is left behind.
. ./tests/functions.sh
requires_server; requires_plugin
requires nbdsh --version
requires mkfs.xfs -V
[ "$(id -u)" -eq 0 ] || skip "only root mounts a file system with reflinks"

truncate -s 400M "$tmp/xfs"
mkfs.xfs -q -m reflink=1 "$tmp/xfs"
mkdir "$tmp/mnt"
mount -o loop "$tmp/xfs" "$tmp/mnt" 2>/dev/null ||
	skip "no loop device for a file system with reflinks"
# The kernel may have files of the ended server for a moment more.
cleanup_fn wait_until "the end of its use" umount "$tmp/mnt"
truncate -s 16M "$tmp/mnt/disk" "$tmp/plain"
chmod 640 "$tmp/mnt/disk"
start_server "disk=$tmp/mnt/disk" "plain=$tmp/plain" mem=mem:1M disk,other=mem:1M
start_nbdkit "127.0.0.1:$server_port" export=disk
snapshot() {
	"$top_builddir/rtrsctl" --socket "$RUNTIME_DIRECTORY/server-$server_pid.sock" export \
		snapshot "$@"
}

# The writer counts in the first block, and behind it in the last one.
cat >"$tmp/writer.py" <<'END'
import os
tmp = os.environ["tmp"]
n = 0
while not os.path.exists(tmp + "/stop"):
    n += 1
    h.pwrite(n.to_bytes(8, "big") * 64, 0)
    h.pwrite(n.to_bytes(8, "big") * 64, (16 << 20) - 512)
    if n == 100:
        open(tmp + "/wrote", "w").close()
END
export tmp
nbdsh_run "$uri" <"$tmp/writer.py" &
writer=$!
wait_until "writes" test -e "$tmp/wrote"
for i in 1 2 3 4 5; do
	is=$(snapshot disk "s$i")
	[ "$is" = "disk: snapshot $tmp/mnt/disk.s$i" ] || fail "$is"
done
touch "$tmp/stop"
expect_exit $writer 0
/usr/bin/python3 - "$tmp/mnt/disk" <<'END'
import sys
def counts(path):
    with open(path, "rb") as f:
        data = f.read()
    assert len(data) == 16 << 20, len(data)
    first, last = data[:512], data[-512:]
    assert first == first[:8] * 64 and last == last[:8] * 64, path
    return [int.from_bytes(block[:8], "big") for block in (first, last)]
before = 100
for i in range(1, 6):
    first, last = counts("%s.s%d" % (sys.argv[1], i))
    print(first, last)
    assert last >= before and first in (last, last + 1), (first, last)
    before = last
assert counts(sys.argv[1])[0] >= before
END
[ "$(stat -c %a "$tmp/mnt/disk.s1")" = 640 ]

# What is written afterwards is not in it, and it is an export of its own.
nbdsh_run "$uri" <<<'h.pwrite(b"x" * 4096, 0); h.flush()'
must_fail cmp -n 4096 "$tmp/mnt/disk" "$tmp/mnt/disk.s5"
"$top_builddir/rtrsctl" --socket "$RUNTIME_DIRECTORY/server-$server_pid.sock" \
	export add "backup=$tmp/mnt/disk.s5,readonly"
# Without a name the time is the name.
snapshot disk | grep -E "^disk: snapshot $tmp/mnt/disk\.20[0-9]{6}T[0-9]{6}Z$"

# Refusals.
refused() {
	expect_failure 1 "$1" "$top_builddir/rtrsctl" --socket \
		"$RUNTIME_DIRECTORY/server-$server_pid.sock" export snapshot "${@:2}"
}
refused "export 'disk': no snapshot: '$tmp/mnt/disk.s1': a file has this name already" disk s1
refused "export 'plain': no snapshot: '$tmp/plain.x': its file system shares no blocks between files: expected XFS or btrfs" \
	plain x
[ ! -e "$tmp/plain.x" ] || fail "a file is left behind"
refused "export 'mem': no snapshot: its storage is memory" mem
long=$(printf 'a%.0s' {1..64})
# A comma is a part of the name, and of no other export's snapshot.
refused "export 'disk,other': no snapshot: its storage is memory" disk,other
refused "there is no export 'aaaa" "$long$long$long$long$long$long$long"
# Nor is the longest name one that begins with it.
most=$(printf 'm%.0s' {1..254})
"$top_builddir/rtrsctl" --socket "$RUNTIME_DIRECTORY/server-$server_pid.sock" export add \
	"$most=mem:1M"
refused "export '$most': no snapshot: its storage is memory" "$most"
refused "there is no export '${most}m' whose storage is open" "${most}m"
refused "there is no export 'disk,s1' whose storage is open" disk,s1
refused "there is no export 'none' whose storage is open" none
snapshot disk "$long"
for name in "a$long" "$long$long$long$long" .hidden ../up a/b 'a b' a@b "$(printf 'a\tb')"; do
	refused "a snapshot '.*': expected a name of at most 64 letters, digits, '\.', '_' and '-', and no '\.' in front" \
		disk "$name"
done
ln -s "$tmp/elsewhere" "$tmp/mnt/disk.link"
refused "'$tmp/mnt/disk.link': a file has this name already" disk link
[ ! -e "$tmp/elsewhere" ]
# A directory that is closed to the user of the server: who that is, and what to do.
if setpriv --reuid=65534 --regid=65534 --clear-groups true 2>/dev/null; then
	mkdir -m 755 "$tmp/mnt/closed"
	truncate -s 1M "$tmp/mnt/closed/disk"
	chown 65534 "$tmp/mnt/closed/disk"
	chmod 755 "$tmp" "$tmp/mnt"
	mkdir -m 777 "$tmp/theirs"
	others=$server_pid
	SERVER_PREFIX="setpriv --reuid=65534 --regid=65534 --clear-groups" \
		start_server --control "$tmp/theirs/ctl" --state-dir "$tmp/theirs" \
		"closed=$tmp/mnt/closed/disk"
	closed="Permission denied: user 65534 .*may not write to this directory: chown"
	expect_failure 1 "closed/disk.s': $closed" \
		"$top_builddir/rtrsctl" --socket "$tmp/theirs/ctl" export snapshot closed s
	stop_server "$server_pid"
	server_pid=$others
fi
# A full file system: whole or not at all.
fallocate -l 300M "$tmp/mnt/fill" || true
if snapshot disk full; then
	cmp "$tmp/mnt/disk" "$tmp/mnt/disk.full"
else
	[ ! -e "$tmp/mnt/disk.full" ]
fi

# A server that is killed meanwhile leaves nothing with the name of a snapshot.
thaw() { fsfreeze -u "$tmp/mnt" 2>/dev/null || true; }
rm -f "$tmp/mnt/fill"
fsfreeze -f "$tmp/mnt" 2>/dev/null ||
	skip "all but a server that is killed: fsfreeze does not work here"
cleanup_fn thaw
snapshot disk killed >"$tmp/killed" 2>&1 &
asking=$!
is_in_storage() { grep -q '^State:.*D' "/proc/$server_pid/task/"*/status; }
wait_until "the snapshot in the storage" is_in_storage
kill -KILL "$server_pid"
thaw
kill_process "$server_pid"
expect_exit $asking 1
[ ! -e "$tmp/mnt/disk.killed" ] || fail "half a snapshot has its name"
