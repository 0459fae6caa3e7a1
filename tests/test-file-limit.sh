#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A limit of the size of files (RLIMIT_FSIZE: LimitFSIZE= of systemd, limits.conf) ends no program:
# a write beyond the limit is ENOSPC at the NBD client, and what else a program writes fails by
# itself.
. ./tests/functions.sh
requires_server; requires_gateway; requires_plugin
requires nbdsh --version
requires prlimit --version

M=1048576
truncate -s 16M "$tmp/disk" "$tmp/direct"
truncate -s 8M "$tmp/fits"
SERVER_PREFIX="prlimit --fsize=$((8 * M))" start_server "disk=$tmp/disk" \
	"direct=$tmp/direct,direct" "fits=$tmp/fits"
must_fail grep 'fits: writes at' "$server_log"
grep -q '^Max file size  *8388608  *8388608 ' "/proc/$server_pid/limits"
for export in disk direct; do
	grep "warning: $export: writes at and after byte 8388608 will fail: " "$server_log"
done

beyond_the_limit() {
	nbdsh_run "$1" <<'END_OF_PYTHON'
M = 1 << 20

def enospc(what, call):
    must_fail(call, "ENOSPC", what + " succeeded beyond the limit")

h.pwrite(b"a" * M, 7 * M)
enospc("pwrite", lambda: h.pwrite(b"b" * 4096, 8 * M))
enospc("pwrite across", lambda: h.pwrite(b"c" * 2 * M, 7 * M))
enospc("pwrite FUA", lambda: h.pwrite(b"d" * 4096, 9 * M, nbd.CMD_FLAG_FUA))
enospc("large pwrite", lambda: h.pwrite(b"e" * (4 * M), 10 * M))
assert h.pread(M, 14 * M) == bytes(M)
h.pwrite(b"A" * M, 6 * M)
h.flush()
assert h.pread(M, 6 * M) == b"A" * M
END_OF_PYTHON
}
start_gateway "server=127.0.0.1:$server_port"
for export in disk direct; do
	beyond_the_limit "nbd+unix:///$export?socket=$sock"
	wait_line "$server_log" \
		"error: $export: WRITE of [0-9]+ bytes at byte [0-9]+ failed: File too large"
done
stop_process "$gateway_pid"
start_nbdkit "server=127.0.0.1:$server_port" export=disk
beyond_the_limit "$uri"
stop_process "$nbdkit_pid"

# The plugin is in a program of other people, which SIGXFSZ ends: its own file does not raise it.
NBDKIT_PREFIX="prlimit --fsize=4096" start_nbdkit "server=127.0.0.1:$server_port" export=disk \
	"metrics-file=$tmp/client.prom"
wait_line "$nbdkit_log" "client.prom.*File too large"
timeout "$TIMEOUT_S" nbdinfo --size "$uri"
# Signals of that program are for its own threads.
threads=0
for task in "/proc/$nbdkit_pid/task/"*; do
	# One of nbdkit's own may end meanwhile.
	name=$(cat "$task/comm" 2>/dev/null) || continue
	case $name in rtrs-*) ;; *) continue ;; esac
	threads=$((threads + 1))
	blocked=$((16#$(sed -n 's/^SigBlk:\s*//p' "$task/status")))
	for signal in TERM INT CHLD XFSZ; do
		((blocked >> $(kill -l $signal) - 1 & 1)) || fail "thread $name takes SIG$signal"
	done
done
[ $threads -ge 4 ] || fail "$threads threads of the plugin"
stop_process "$nbdkit_pid"
stop_process "$server_pid"

# Tools say what went wrong.
refused() {
	local want=$1 regex=$2 status=0 err
	shift 2
	err=$(prlimit --fsize=0 "$@" 2>&1 >"$tmp/out") || status=$?
	echo "$err"
	[ $status -eq "$want" ] || fail "status $status instead of $want: $*"
	[[ $err =~ $regex ]] || fail "does not match '$regex': $*"
}
case $SANITIZERS in
*thread*) echo "not tried: rtrs-psk and rtrsctl, for ThreadSanitizer writes a file before main()" ;;
*)
	refused 1 'the key cannot be written: File too large' ./rtrs-psk gw1
	refused 1 'rtrsctl: standard output: File too large' ./rtrsctl --help
	;;
esac

# The command of --run has the signal as everybody.
start_server "disk=$tmp/disk"
# shellcheck disable=SC2016 # the command's
timeout "$TIMEOUT_S" "$RTRS_NBD" -U - "server=127.0.0.1:$server_port" \
	--run 'sed -n "s/^SigIgn:[[:space:]]*//p" /proc/$$/status' >"$tmp/ignored"
ignored=$(cat "$tmp/ignored")
[ -n "$ignored" ] && [ $((0x$ignored & 1 << 24)) -eq 0 ] ||
	fail "the command of --run ignores SIGXFSZ: $ignored"
