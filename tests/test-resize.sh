#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A file grows while it is exported and a client has it open: the next client has the new size and
# can use all of it, the first one goes on with the size it was told.  One that shrinks is not given
# to anybody new while somebody has it open.
. ./tests/functions.sh
requires_server; requires_plugin
requires nbdsh --version

rtrsctl=$top_builddir/rtrsctl
mib=$((1 << 20))

# json EXPRESSION PROGRAM: of the answer, a
json() {
	"$rtrsctl" --json --socket "$2" show | with_json "print($1)"
}

# resizes FLAG: the same with a server that exports with ",FLAG"
resizes() {
	local control=$tmp/nbdkit.sock
	random_file "$tmp/disk" 64M
	start_server "disk=$tmp/disk$1"
	# Grown before anybody has it open.
	truncate -s 65M "$tmp/disk"
	start_nbdkit "server=127.0.0.1:$server_port" export=disk control="$control"
	export tmp mib uri control server_pid
	nbdsh_run "$uri" <<'END'
import json, os, subprocess

mib = 1 << 20
disk = os.environ["tmp"] + "/disk"

def connect():
    other = nbd.NBD()
    other.set_strict_mode(0)
    other.connect_uri(os.environ["uri"])
    return other

def told(socket):
    out = subprocess.run(["./rtrsctl", "--json", "--socket", socket, "show"], stdout=subprocess.PIPE, check=True).stdout
    return json.loads(out)

def sizes():
    server = told("%s/server-%s.sock" % (os.environ["RUNTIME_DIRECTORY"], os.environ["server_pid"]))
    plugin = told(os.environ["control"])
    return server["exports"][0]["size"], plugin["exports"][0]["size"]

def refused(call):
    try:
        call()
    except nbd.Error as e:
        return e.errno
    raise SystemExit("it succeeded")

first = connect()
assert first.get_size() == 65 * mib, first.get_size()
assert sizes() == (65 * mib, 65 * mib), sizes()
first.pwrite(b"a" * 4096, 65 * mib - 4096)

os.truncate(disk, 1025 * mib)
second = connect()
assert second.get_size() == 1025 * mib, second.get_size()
assert sizes() == (1025 * mib, 1025 * mib), sizes()
# All of it, by any operation.
assert second.pread(4096, 1025 * mib - 4096) == bytes(4096)
assert second.pread(8192, 65 * mib - 4096) == b"a" * 4096 + bytes(4096)
second.pwrite(b"b" * 4096, 1025 * mib - 4096, nbd.CMD_FLAG_FUA)
second.pwrite(b"c" * 8192, 65 * mib - 4096)
second.pwrite(b"d" * 100, 1025 * mib - 100)
second.zero(65536, 512 * mib)
second.trim(65536, 513 * mib)
second.flush()
assert second.pread(4096, 1025 * mib - 4096) == b"b" * 3996 + b"d" * 100
# The first one is where it was.
assert first.pread(8192, 65 * mib - 8192)[4096:] == b"c" * 4096
assert refused(lambda: first.pread(512, 65 * mib)) == "EINVAL"
first.pwrite(b"e" * 512, 0)
first.flush()

# Smaller: the log says so, and there is no new client; what is left goes on, what is gone fails.
os.truncate(disk, 32 * mib)
for attempt in range(2):
    refused(connect)
assert sizes() == (32 * mib, 1025 * mib), sizes()
assert first.pread(512, 0) == b"e" * 512
second.pwrite(b"f" * 512, 32 * mib - 512)
for client in first, second:
    assert refused(lambda: client.pread(512, 32 * mib)) == "EIO"
    assert refused(lambda: client.pread(1024, 32 * mib - 512)) == "EIO"
    assert refused(lambda: client.pwrite(b"g" * 512, 64 * mib)) == "EIO"
    assert refused(lambda: client.zero(65536, 64 * mib)) == "EIO"
    client.flush()
assert os.stat(disk).st_size == 32 * mib

# As large as it was, or larger: as if nothing had been.
os.truncate(disk, 1026 * mib)
third = connect()
assert third.get_size() == 1026 * mib, third.get_size()
second.pwrite(b"h" * 512, 1025 * mib - 512)
assert third.pread(512, 1025 * mib - 512) == b"h" * 512
END
	wait_line "$server_log" \
		"disk: '$tmp/disk' has grown: $((1025 * mib)) bytes instead of $((65 * mib))"
	wait_line "$server_log" \
		"disk: '$tmp/disk' has shrunk: $((32 * mib)) bytes instead of $((1025 * mib)); requests"
	wait_line "$nbdkit_log" \
		"disk: export has grown: $((1025 * mib)) bytes instead of $((65 * mib))"
	wait_line "$nbdkit_log" \
		"disk: export has shrunk: $((32 * mib)) bytes instead of $((1025 * mib)): no other client can open it"
	wait_line "$nbdkit_log" \
		"export 'disk' of server=.*: shrunk, or with .* than its users here have opened"

	# Nobody has it open: whoever opens it then takes it as it is.
	truncate -s 16M "$tmp/disk"
	closed() {
		[ "$(json "a['exports'][0]['users']" \
			"$RUNTIME_DIRECTORY/server-$server_pid.sock")" = 0 ]
	}
	wait_until "the close of the device" closed
	nbdsh_run "$uri" <<<"assert h.get_size() == 16 << 20, h.get_size()"
	stop_process "$nbdkit_pid"
	stop_process "$server_pid"
}

resizes ""
resizes ",direct"
