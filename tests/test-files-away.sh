#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A file system that does not answer, as that of a dead server of NFS: a start and a reload give its
# files up and say so, a key that another file has lost is taken away all the same, other changes
# go on.  Metrics that cannot be written or removed are a line in the log.  SIGTERM ends the server,
# at once if the server reads.
. ./tests/functions.sh
requires_server; requires_gateway; requires_root
requires_plain_build	# LeakSanitizer waits at the end for a thread that nobody can stop
[ -w /dev/fuse ] || skip "no /dev/fuse"

size=4096
fuse_pids=()
# mount_fuse DIR: adds to fuse_pids.
mount_fuse() {
	mkdir "$1"
	/usr/bin/python3 "$srcdir/tests/fuse-hole.py" "$1" $size </dev/null >"$1.log" 2>&1 &
	fuse_pid=$!
	wait_until "the file system" mounted_or_ended "$1"
	grep -q '^mounted$' "$1.log" || skip "cannot mount FUSE here: $(cat "$1.log")"
	cleanup_fn expect_exit "$fuse_pid" 0	# when it is unmounted
	cleanup_umount "$1"
	cleanup_fn let_go_on "$fuse_pid"
	fuse_pids+=("$fuse_pid")
}
mounted_or_ended() { grep -q '^mounted$' "$1.log" || process_ended "$fuse_pid"; }

# Who changes a directory keeps others out of it, so each program has its own for its metrics.
for dir in mnt server-metrics gateway-metrics; do
	mount_fuse "$tmp/$dir"
done
away=$tmp/mnt/disk
{ printf '%s\n' '[server]' 'listen = tcp://127.0.0.1:0' '[export "x"]' 'path = mem:1M'; yes ''; } |
	dd of="$away" conv=notrunc bs=$size count=1 iflag=fullblock status=none || true
for name in alice bob; do
	"$top_builddir/rtrs-psk" $name >"$tmp/$name.psk"
done
cat "$tmp/alice.psk" "$tmp/bob.psk" >"$tmp/keys"
chmod 600 "$tmp/keys"
start_server --control "$tmp/reads.ctl" --config "$away"
reads_pid=$server_pid reads_log=$server_log
start_gateway "server=127.0.0.1:$server_port" export=x \
	"metrics-file=$tmp/gateway-metrics/client.prom"
start_server --control "$tmp/control" --auth-psk="$tmp/keys" --config "$away" \
	--metrics-file "$tmp/server-metrics/server.prom"
wait_until "the metrics of the server" test -s "$tmp/server-metrics/server.prom"
wait_until "the metrics of rtrs-nbd" test -s "$tmp/gateway-metrics/client.prom"
stop_all_threads "${fuse_pids[@]}"

# The name that a program removes at its end is given up after 10 s: see below.
kill -TERM "$gateway_pid"

# SIGTERM does not wait for what is read: not that of a start, and not that of a reload, which has
# as long as the start before.
reads() { cat "/proc/$1/task/"*/comm | grep -x rtrs-file; }
"$RTRS_SERVER" --check --config "$tmp/mnt/0" >"$tmp/start.log" 2>&1 &
start_pid=$!
wait_until "a start that reads" reads "$start_pid"
timeout "$TIMEOUT_S" "$top_builddir/rtrsctl" --socket "$tmp/reads.ctl" reload >"$tmp/out" 2>&1 &
reload_pid=$!
wait_until "a reload that reads" reads "$reads_pid"
stop_server "$reads_pid"
kill -TERM "$start_pid"
expect_exit "$start_pid" 143
expect_exit "$reload_pid" 1
# It reads its keys behind the threads' start.
"$RTRS_SERVER" --listen tcp://127.0.0.1:0 --control "$tmp/keys.ctl" --auth-psk "$tmp/mnt/4" \
	x=mem:1M >"$tmp/keys.log" 2>&1 &
keys_pid=$!
wait_until "a start that reads keys" reads "$keys_pid"
kill -TERM "$keys_pid"
expect_exit "$keys_pid" 1
must_fail grep 'has not answered' "$tmp/start.log" "$tmp/keys.log" "$tmp/out" "$reads_log"

ctl=(timeout "$TIMEOUT_S" "$top_builddir/rtrsctl" --socket "$tmp/control")
cat "$tmp/bob.psk" >"$tmp/keys"
reload_fails() {
	must_fail "${ctl[@]}" reload >"$tmp/out" 2>&1
	cat "$tmp/out"
	grep -E "$away: its file system $1" "$tmp/out"
}
reload_fails "has not answered for 10? s"
grep -F -e '-auth key alice' "$tmp/out"
grep -F "only keys and certificates changed" "$server_log"
"${ctl[@]}" export add y=mem:1M
# Nothing waits twice for one name.
reload_fails "still has not answered"

# Each waits by itself, so they do at the same time.  The names differ: a process that waits for a
# name for which another one waits cannot be killed.
starts=()
for start in "$RTRS_SERVER --check --config @1" "$RTRS_NBD 127.0.0.1 config=@2" \
	"$RTRS_NBD 127.0.0.1 auth-psk=@3"; do
	# shellcheck disable=SC2086 # words
	timeout "$TIMEOUT_S" ${start/@/"$tmp/mnt/"} >"$tmp/out.${#starts[@]}" 2>&1 &
	starts+=($!)
done
for i in "${!starts[@]}"; do
	must_fail wait "${starts[i]}"
	cat "$tmp/out.$i"
	grep -E "$tmp/mnt/$((i + 1)): its file system has not answered for 10 s" "$tmp/out.$i"
done

stop_process "$gateway_pid"
grep -F "cannot remove the metrics '$tmp/gateway-metrics/client.prom': its file system has not" \
	"$gateway_log"

# The server has tried to write meanwhile, and does not try twice to reach one name.
prom=$tmp/server-metrics/server.prom
wait_line "$server_log" "cannot write metrics to '$prom': its file system has not answered"
stop_server "$server_pid"
grep -F "cannot remove the metrics '$prom': its file system still has not" "$server_log"
