#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The server's host reboots (its boot id changes) while a client has unflushed writes: the first
# FLUSH after the reconnect is EIO, the next ones are not.  With everything flushed, or with only
# the program restarted, no FLUSH fails.
. ./tests/functions.sh
. "$top_srcdir/tests/storage.sh"
requires_server; requires_plugin; requires_root
requires nbdsh --version
requires unshare --mount true

truncate -s 1M "$tmp/disk"
uuidgen_file() { /usr/bin/python3 -c 'import uuid; print(uuid.uuid4())' >"$1"; }
uuidgen_file "$tmp/boot.1"
uuidgen_file "$tmp/boot.2"
uuidgen_file "$tmp/boot.3"

# The server sees another boot id in a mount namespace of its own.
boot() {
	local id=$1
	shift
	SERVER_PREFIX="unshare --mount $tmp/in-boot $id" start_server "$@"
}
cat >"$tmp/in-boot" <<END
#!/bin/sh
set -e
mount --bind "\$1" /proc/sys/kernel/random/boot_id
shift
exec "\$@"
END
chmod +x "$tmp/in-boot"
unshare --mount "$tmp/in-boot" "$tmp/boot.1" true || skip "cannot bind over the boot id here"

boot "$tmp/boot.1" "disk=$tmp/disk"
port=$server_port
start_nbdkit "server=127.0.0.1:$port" export=disk "io-timeout=$TIMEOUT_S"

steps "$uri" <<'END'
writes = 0

def write():
    global writes
    writes += 1
    h.pwrite(bytes([writes]) * 512, writes * 512)

flush = h.flush
END

restart() {
	kill_process "$server_pid"
	boot "$1" --listen "tcp://127.0.0.1:$port" "disk=$tmp/disk"
}

ask write ok
ask flush ok

# Nothing unflushed: a reboot loses nothing.
restart "$tmp/boot.2"
ask flush ok

# The program restarts, the host does not: the page cache has it all.
ask write ok
restart "$tmp/boot.2"
ask flush ok

# A reboot with an unflushed write.
ask write ok
restart "$tmp/boot.3"
ask flush EIO
ask flush ok
ask write ok
ask flush ok
# And again: it is told each time.
ask write ok
restart "$tmp/boot.1"
ask write ok
ask flush EIO
ask flush ok

steps_end
