#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What a server knows of syncs that failed, or did not end, outlives it: the next FLUSH of a client
# with unflushed writes fails once, whoever was told of the failure and however the server ended.
# Each NBD client of a gateway is told.
. ./tests/functions.sh
. "$top_srcdir/tests/storage.sh"
requires_server; requires_plugin; requires_root
requires nbdsh --version
requires mke2fs -V

client() {
	steps "$@" <<'END'
second = nbd.NBD()
second.connect_uri(sys.argv[1])
other = nbd.NBD()
if len(sys.argv) > 2 and sys.argv[2].startswith("nbd"):
    other.connect_uri(sys.argv[2])
holder = sync = None

def hold_flush():
    """A sync waits in the storage."""
    global holder, sync
    holder = socket.socket(socket.AF_UNIX)
    holder.connect(sys.argv[2])
    assert holder.recv(1) == b"H"
    sync = h.aio_flush()
    h.poll(0)
    return holder.recv(1).decode()

def release():
    holder.close()

def fails(call):
    try:
        call()
    except nbd.Error as e:
        if e.errno not in ("EIO", "ENOSPC"):
            raise
        return "failed"

def held_flush():
    def wait():
        while not h.aio_command_completed(sync):
            h.poll(-1)
    return fails(wait)

def write(mib="0"):
    for i in range(8):
        h.pwrite(os.urandom(1 << 20), int(mib) + i << 20)

def write_second(mib="0"):
    second.pwrite(os.urandom(1 << 20), int(mib) << 20)

def flush():
    return fails(h.flush)

def flush_second():
    return fails(second.flush)

def flush_of_another():
    return fails(other.flush)
END
}
client_ends() {
	steps_end
	stop_process "$nbdkit_pid"
	[ -z "${reader-}" ] || stop_process "$reader"
	stop_process "$server_pid"
}

# ---- a server that is killed while a sync is in the storage ----

truncate -s 16M "$tmp/held"
held_fs "$tmp/held"

start_server "disk=$tmp/mnt/disk"
port=$server_port
start_nbdkit "server=127.0.0.1:$port" export=disk "io-timeout=$((4 * TIMEOUT_S))"
client "$uri" "$tmp/held.sock"
ask write ok
ask hold_flush W
# It does not go before the storage has let go of its thread, and does nothing any more.
kill -KILL "$server_pid"
ask release ok
kill_process "$server_pid"
start_server --listen "tcp://127.0.0.1:$port" "disk=$tmp/mnt/disk"
grep -q "ended during a sync of '$tmp/mnt/disk'" "$server_log" ||
	fail "the next server does not say so"
ask held_flush failed
ask flush ok
ask flush_second failed
ask flush_second ok
# It was told; a restart without a loss is a pause.
ask write ok
kill_process "$server_pid"
start_server --listen "tcp://127.0.0.1:$port" "disk=$tmp/mnt/disk"
ask flush ok
ask write ok
stop_server "$server_pid"
start_server --listen "tcp://127.0.0.1:$port" "disk=$tmp/mnt/disk"
ask flush ok
# Without a place for what is to outlive it nobody knows.
ask write ok
stop_server "$server_pid"
RUNTIME_DIRECTORY=$tmp/no/such start_server --listen "tcp://127.0.0.1:$port" "disk=$tmp/mnt/disk"
grep -q "state directory '$tmp/no/such' cannot be used: No such file" "$server_log" ||
	fail "it does not say that it has no state directory"
ask flush failed
ask flush ok
client_ends

# ---- a failed sync that somebody else was told of ----

# A loop device that takes no more data, as in test-durability.sh.
ext4_in_tmpfs 100m 160M 64M "$tmp/full" -O ^has_journal -E lazy_itable_init=0,nodiscard

# expect_status STATUS COMMAND PATTERN: of rtrsctl, about the server.
expect_status() {
	local status=0
	"$top_builddir/rtrsctl" --pid "$server_pid" "$2" >"$tmp/told" || status=$?
	cat "$tmp/told"
	[ $status -eq "$1" ] || fail "$2 ends with $status instead of $1"
	grep -q -E -e "$3" "$tmp/told" || fail "$2 does not say '$3'"
}

at=0
for how in term kill; do
	for flags in "" ,direct; do
		start_server "disk=$tmp/full/disk$flags"
		port=$server_port
		start_nbdkit "server=127.0.0.1:$port" export=disk mode=ro
		reader=$nbdkit_pid other=$uri
		start_nbdkit "server=127.0.0.1:$port" export=disk "io-timeout=$((4 * TIMEOUT_S))"
		client "$uri" "$other"
		ask "write $at" ok
		ask flush ok
		head -c 128M /dev/zero >"$tmp/backing/ballast" 2>/dev/null || true
		# Acknowledged, and not to be had on the device.  A direct write would fail by
		# itself, so there somebody else has written.
		if [ "$flags" = "" ]; then
			ask "write $((at + 8))" ok
			ask "write_second $((at + 15))" ok
		else
			ask "write $at" ok
			dd if=/dev/urandom of="$tmp/full/disk" bs=1M seek=$((at + 8)) count=8 \
				conv=notrunc status=none
		fi
		# Monitoring hears of it from the server, until the server has gone.
		expect_status 0 check "RTRS OK - "
		ask flush_of_another failed
		expect_status 2 check ": disk sync failed, writes may be lost "
		expect_status 3 status "^disk .* sync failed "
		if [ $how = kill ]; then
			kill_process "$server_pid"
		else
			stop_process "$server_pid"
		fi
		rm "$tmp/backing/ballast"
		start_server --listen "tcp://127.0.0.1:$port" "disk=$tmp/full/disk$flags"
		ask flush_of_another ok		# it has written nothing
		ask flush failed
		ask flush ok
		ask flush_second failed
		ask flush_second ok
		client_ends
		at=$((at + 16))
	done
done
