#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# control= that cannot be used is an exit status, as a daemon and with --run, too, and leaves
# nothing behind.  What goes wrong after nbdkit has forked leaves a process that lives, refuses its
# clients, and mends itself.
. ./tests/functions.sh
requires_server; requires_plugin
requires nbdinfo --version

rtrsctl=$top_builddir/rtrsctl
truncate -s 8M "$tmp/disk" "$tmp/other"
start_server "disk=$tmp/disk"
plugin=("$RTRS_PLUGIN" "127.0.0.1:$server_port" export=disk)
preload=$(nbdkit_preload)
nbdkit=(env ${preload:+LD_PRELOAD="$preload"} nbdkit)

nothing_left() {
	for name in daemon.pid daemon.sock control.sock; do
		[ ! -e "$tmp/$name" ] || fail "$name is left: $1"
	done
}

# Cannot be bound, for one reason or the other: neither a pid file nor a socket says that it runs.
touch "$tmp/file"
for bad in "$tmp/none/control.sock" "$tmp/file" "$tmp/$(printf '%0108d' 0)"; do
	expect_failure 1 "nbdkit: error: control='?$bad'?: " "${nbdkit[@]}" -U "$tmp/daemon.sock" \
		-P "$tmp/daemon.pid" "${plugin[@]}" control="$bad"
	nothing_left "a daemon with control=$bad"
	# shellcheck disable=SC2016 # nbdkit's
	expect_failure 1 "nbdkit: error: control='?$bad'?: " "${nbdkit[@]}" -U - \
		"${plugin[@]}" control="$bad" --run 'nbdinfo --size "$uri"'
done

# nbdkit itself fails between the bind and the fork: the socket goes with it.
expect_failure 1 "$tmp/file: Address already in use" "${nbdkit[@]}" -U "$tmp/file" \
	"${plugin[@]}" control="$tmp/control.sock"
nothing_left "nbdkit that could not bind"

# A daemon: the one that it was forked from has ended, and the socket is there and serves.
"${nbdkit[@]}" -U "$tmp/daemon.sock" -P "$tmp/daemon.pid" \
	"${plugin[@]}" control="$tmp/control.sock" \
	</dev/null >"$tmp/daemon.log" 2>&1
wait_until "the daemon" test -s "$tmp/daemon.pid"
daemon=$(cat "$tmp/daemon.pid")
cleanup_fn stop_daemon "$daemon"
"$rtrsctl" --socket "$tmp/control.sock" list | grep -x "  pid  $daemon"
timeout "$TIMEOUT_S" nbdinfo --size "nbd+unix:///?socket=$tmp/daemon.sock"
expect_nbdkit_failure "control=$tmp/control.sock: process $daemon listens there" \
	"127.0.0.1:$server_port" \
	mode=ro export=disk control="$tmp/control.sock"
stop_daemon "$daemon"
rm "$tmp/daemon.sock" "$tmp/daemon.pid"
nothing_left "a daemon that was told to end"

# The same with --run; the process that waits for the command has the socket, too.
# shellcheck disable=SC2016 # nbdkit's shell
timeout "$TIMEOUT_S" "${nbdkit[@]}" -U - "${plugin[@]}" control="$tmp/control.sock" \
	--run "\"$rtrsctl\" --socket $tmp/control.sock list && nbdinfo --size \"\$uri\"" |
	tail -n 1 | grep -x 8388608
nothing_left "--run"

# The place by default cannot be used: said without -v, and no reason not to serve.
RUNTIME_DIRECTORY=$tmp/file start_nbdkit "${plugin[@]:1}"
wait_line "$nbdkit_log" \
	"rtrs: no control socket for rtrsctl: $tmp/file/nbdkit-$nbdkit_pid.sock: Not a directory; choose another place with control=PATH"
timeout "$TIMEOUT_S" nbdinfo --size "$uri"
stop_process "$nbdkit_pid"
RUNTIME_DIRECTORY=$tmp/file start_server "other=$tmp/other,readonly"
wait_line "$server_log" \
	"warning: no control socket for rtrsctl: $tmp/file/server-$server_pid.sock: Not a directory; choose another place with --control"

# After the fork nothing but threads and memory can be missing.  A user of nobody else, with few
# threads: that of the log, one for a client, and one of the session's two.
[ "$(id -u)" -eq 0 ] || skip "all passed but what needs root: a limit of threads"
requires_plain_build
user=$((100000 + $$))
chmod 777 "$tmp"
NBDKIT_PREFIX="prlimit --nproc=3:100" start_nbdkit --user="$user" --threads=1 \
	"${plugin[@]:1}" control="$tmp/control.sock"
wait_line "$nbdkit_log" \
	'error: cannot start a .*: Resource temporarily unavailable \(RLIMIT_NPROC is 3: .*: trying again when a client connects'
must_fail timeout "$TIMEOUT_S" nbdinfo --size "$uri"
wait_line "$nbdkit_log" 'connection refused: cannot start a .*: Resource temporarily unavailable'
# Only root of the whole machine may change the limits of other users.
setpriv --reuid="$user" --clear-groups prlimit --pid "$nbdkit_pid" --nproc=100:100
timeout "$TIMEOUT_S" nbdinfo --size "$uri"
wait_line "$nbdkit_log" 'rtrs: the session has started, for a new client'
"$rtrsctl" --socket "$tmp/control.sock" list | grep -x "  pid  $nbdkit_pid"
