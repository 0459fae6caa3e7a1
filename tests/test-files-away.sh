#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A file system that does not answer, as that of a dead server of NFS: a start and a reload give its
# files up and say so, a key that another file has lost is taken away all the same, other changes
# go on, and SIGTERM ends the server.
. ./tests/functions.sh
requires_server; requires_gateway; requires_root
requires_plain_build	# LeakSanitizer waits at the end for a thread that nobody can stop
[ -w /dev/fuse ] || skip "no /dev/fuse"

size=4096
mkdir "$tmp/mnt"
/usr/bin/python3 "$srcdir/tests/fuse-hole.py" "$tmp/mnt" $size </dev/null >"$tmp/fuse.log" 2>&1 &
fuse_pid=$!
mounted_or_ended() { grep -q '^mounted$' "$tmp/fuse.log" || process_ended "$fuse_pid"; }
wait_until "the file system" mounted_or_ended
grep -q '^mounted$' "$tmp/fuse.log" || skip "cannot mount FUSE here: $(cat "$tmp/fuse.log")"
cleanup_fn expect_exit "$fuse_pid" 0	# when it is unmounted
cleanup_umount "$tmp/mnt"
answer_again() { kill -CONT "$fuse_pid"; }
cleanup_fn answer_again

away=$tmp/mnt/disk
{ printf '%s\n' '[server]' 'listen = tcp://127.0.0.1:0' '[export "x"]' 'path = mem:1M'; yes ''; } |
	dd of="$away" conv=notrunc bs=$size count=1 iflag=fullblock status=none || true
for name in alice bob; do
	"$top_builddir/rtrs-psk" $name >"$tmp/$name.psk"
done
cat "$tmp/alice.psk" "$tmp/bob.psk" >"$tmp/keys"
chmod 600 "$tmp/keys"
start_server --control "$tmp/control" --auth-psk="$tmp/keys" --config "$away"
stop_all_threads "$fuse_pid"

ctl=(timeout "$TIMEOUT_S" "$top_builddir/rtrsctl" --socket "$tmp/control")
cat "$tmp/bob.psk" >"$tmp/keys"
reload_fails() {
	must_fail "${ctl[@]}" reload >"$tmp/out" 2>&1
	cat "$tmp/out"
	grep -F "$away: its file system $1" "$tmp/out"
}
reload_fails "has not answered for 10 s"
grep -F -e '-auth key alice' "$tmp/out"
grep -F "keys and certificates alone" "$server_log"
"${ctl[@]}" export add y=mem:1M
# Nothing waits twice for one name.
reload_fails "still has not answered"

# The names differ: a process that waits for a name for which another one waits cannot be killed.
for start in "$RTRS_SERVER --check --config @1" "$RTRS_NBD 127.0.0.1 config=@2" \
	"$RTRS_NBD 127.0.0.1 auth-psk=@3"; do
	# shellcheck disable=SC2086 # words
	must_fail timeout "$TIMEOUT_S" ${start/@/"$tmp/mnt/"} >"$tmp/out" 2>&1
	cat "$tmp/out"
	grep -E "$tmp/mnt/[123]: its file system has not answered for 10 s" "$tmp/out"
done
stop_server "$server_pid"
