#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# One writer at a time: a second one is refused with a clear error, when nbdkit starts or when an
# NBD client comes, and the server's log names the first; mode=ro and mode=migration are not
# refused, and when the writer has gone the next one gets in.
. ./tests/functions.sh
requires_server; requires_plugin
requires nbdsh --version

truncate -s 1M "$tmp/disk"
start_server "disk=$tmp/disk" "same=$tmp/disk"
server=server=127.0.0.1:$server_port

# The export is held while an NBD client is connected.
start_nbdkit "$server" export=disk sessname=holder
first_uri=$uri
cat >"$tmp/holder.py" <<'END'
import nbd, sys
h = nbd.NBD()
h.connect_uri(sys.argv[1])
print("held", flush=True)
sys.stdin.read()
h.pwrite(b"f" * 512, 0)
h.flush()
h.shutdown()
END
coproc holder { timeout $((8 * TIMEOUT_S)) /usr/bin/python3 "$tmp/holder.py" "$first_uri"; }
holder_pid=$holder_PID
read -r -t "$TIMEOUT_S" word <&"${holder[0]}"
[ "$word" = held ]

# nbdkit asks for the mode that it will use.
for name in disk same; do
	expect_nbdkit_failure \
		"export '$name'.*open for writing by another session.*rtrsctl clients.*mode=" \
		"$server" export=$name sessname=second
	# It asks for 5 seconds, and is told of once.
	wait_line "$server_log" \
		"second-probe: open of $name as rw refused: .*; holder/127\\.0\\.0\\.1@[^ ]* has it open as rw"
	[ "$(grep -c "second-probe: open of $name as rw" "$server_log")" -eq 1 ]
done

# Where clients choose the export they are refused.
start_nbdkit "$server"
second_uri="nbd+unix:///disk?socket=$sock"
must_fail timeout "$TIMEOUT_S" nbdinfo --size "$second_uri"
wait_line "$nbdkit_log" "disk.*open for writing.*mode="

start_nbdkit "$server" export=disk mode=ro
[ "$(timeout "$TIMEOUT_S" nbdinfo --size "$uri")" = 1048576 ]

start_nbdkit "$server" export=disk mode=migration
nbdsh_run "$uri" <<END
h.pwrite(b"m" * 512, 512)
h.flush()
import subprocess
said = subprocess.run(["$top_builddir/rtrsctl", "--server", "check"], stdout=subprocess.PIPE)
assert said.returncode == 1, said
assert b"disk has two writers (mode=migration)" in said.stdout, said
END
wait_line "$server_log" "disk: .* is the second writer \(mode=migration\)"
# Another connection of the first session is no second writer.
[ "$(timeout "$TIMEOUT_S" nbdinfo --size "$first_uri")" = 1048576 ]

# The holder writes once more and leaves; then the next writer gets in.
# A gateway that starts in this moment waits for that.
late=""
if [ "$SANITIZERS" = no ] && [ -z "${VALGRIND_TESTS-}" ]; then
	nbdkit -f -U "$tmp/late.sock" -P "$tmp/late.pid" "$RTRS_PLUGIN" \
		"$server" export=disk sessname=late \
		</dev/null >"$tmp/late.log" 2>&1 &
	late=$!
	cleanup_fn stop_process $late
	wait_line "$server_log" "late-probe: open of disk as rw refused"
fi
eval "exec ${holder[1]}>&-"
expect_exit "$holder_pid" 0
[ -z "$late" ] || wait_until "the late gateway" test -s "$tmp/late.pid"
wait_until "the export to be free" timeout 5 nbdinfo --size "$second_uri"
nbdsh_run "$second_uri" <<'END'
assert h.pread(1024, 0) == b"f" * 512 + b"m" * 512
h.pwrite(b"s" * 512, 0)
END

# A client that has gone is a moment later gone for the server, too.
none_open() {
	[ "$(grep -c 'device [0-9]* opened: ' "$server_log")" -eq \
		"$(grep -c 'device [0-9]* closed: ' "$server_log")" ]
}
wait_until "the end of all devices" none_open

# Two names of one file in one session: each is answered, and they are one as far as writers go.
start_nbdkit "$server"
SOCK=$sock nbdsh_run "nbd+unix:///disk?socket=$sock" <<'END'
import os
def open_same():
    other = nbd.NBD()
    other.set_export_name("same")
    other.connect_unix(os.environ["SOCK"])
    return other
try:
    open_same()
    assert False, "a second writer"
except nbd.Error as ex:
    print(ex)
h.pwrite(b"h" * 512, 0)
END
wait_line "$nbdkit_log" "same.*open for writing.*mode="
start_nbdkit "$server" mode=ro
SOCK=$sock nbdsh_run "nbd+unix:///disk?socket=$sock" <<'END'
import os
other = nbd.NBD()
other.set_export_name("same")
other.connect_unix(os.environ["SOCK"])
assert other.pread(512, 0) == h.pread(512, 0) == b"h" * 512
END
