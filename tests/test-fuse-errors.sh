#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A file system in user space that answers a write before it has failed (sshfs) reports the error
# to the description that wrote, once: FLUSH and FUA of the server fail with it, on any thread,
# buffered, direct and in the tail.
. ./tests/functions.sh
. "$top_srcdir/tests/storage.sh"
requires_server; requires_gateway; requires_root
requires nbdsh --version

export end=$(((4 << 20) + 512))
hole_fs $end blocks

cat >"$tmp/client.py" <<'END'
import os

lost = b"LOST" + bytes(508)
end = int(os.environ["end"])

def eio(what, call):
    must_fail(call, "EIO", what + " succeeded although a write was lost")

h.pwrite(b"x" * 512, 0)
h.flush()
h.pwrite(b"y" * 512, 0, nbd.CMD_FLAG_FUA)
at = end - 512 if os.environ["how"] == "tail" else 4096
if os.environ["how"] == "fua":
    eio("the write with FUA", lambda: h.pwrite(lost, at, nbd.CMD_FLAG_FUA))
else:
    h.pwrite(lost, at)
# Until all clients have closed the export; another connection is another thread.
other = nbd.NBD()
other.connect_uri(os.environ["uri"])
for client in h, other, h:
    eio("FLUSH", client.flush)
END

# Each client finds the export opened again.
for direct in '' ,direct; do
	start_server --threads 2 "disk=$tmp/mnt/disk$direct"
	start_gateway "server=127.0.0.1:$server_port" export=disk
	export uri how
	for how in plain fua tail; do
		nbdsh_run "$uri" <"$tmp/client.py"
	done
	stop_process "$gateway_pid"
	stop_server "$server_pid"
done
