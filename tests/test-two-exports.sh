#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Two exports of one server, each with its own nbdkit, and both through one nbdkit where the NBD
# client's export name chooses.
. ./tests/functions.sh
requires_server; requires_plugin
requires nbdcopy --version

random_file "$tmp/a" $((8 << 20))
random_file "$tmp/b" $((5 << 20))
truncate -s 8M "$tmp/disk a"
truncate -s 5M "$tmp/disk,b"
start_server "a=$tmp/disk a" "b=$tmp/disk\\,b"
server=server=127.0.0.1:$server_port

start_nbdkit "$server" export=a
a=$uri
start_nbdkit "$server" export=b
b=$uri b_pid=$nbdkit_pid
timeout "$TIMEOUT_S" nbdcopy "$tmp/a" "$a" &
copy=$!
timeout "$TIMEOUT_S" nbdcopy "$tmp/b" "$b"
expect_exit $copy 0
cmp "$tmp/a" "$(stored "$tmp/disk a")"
cmp "$tmp/b" "$(stored "$tmp/disk,b")"
stop_process "$b_pid"

# Without export= the client's name is opened; an empty one is refused with the way out named.
# The program has the name of its file.
echo "server = ${server#*=}" >"$tmp/all.conf"
start_nbdkit "config=$tmp/all.conf" mode=ro
timeout "$TIMEOUT_S" "$top_builddir/rtrsctl" --name all list
[ "$(timeout "$TIMEOUT_S" nbdinfo --size "nbd+unix:///b?socket=$sock")" = 5242880 ]
cmp "$tmp/b" <(timeout "$TIMEOUT_S" nbdcopy "nbd+unix:///b?socket=$sock" -)
[ "$(timeout "$TIMEOUT_S" nbdinfo --size "nbd+unix:///a?socket=$sock")" = 8388608 ]
must_fail timeout "$TIMEOUT_S" nbdinfo --size "nbd+unix:///?socket=$sock"
wait_line "$nbdkit_log" 'asks for no export: put the name into its URI .* or give export=NAME here'
must_fail timeout "$TIMEOUT_S" nbdinfo --size "nbd+unix:///nothing?socket=$sock"
wait_line "$nbdkit_log" 'nothing'
[ "$(timeout "$TIMEOUT_S" nbdinfo --size "nbd+unix:///a?socket=$sock")" = 8388608 ]
