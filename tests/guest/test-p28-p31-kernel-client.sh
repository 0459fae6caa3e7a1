#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=7.3 timeout=90 full
# guest: kernel=6.12 timeout=90
# guest: kernel=6.1 timeout=90
# What a kernel client would wait for, and what it does not tell: the answer to its disconnect
# request (30 s without), and a dest_port= behind the path= that it was meant for.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"
requires_server

truncate -s 8M "$tmp/disk"
modprobe rnbd-client
ctl=/sys/devices/virtual/rnbd-client/ctl/map_device
start_server --listen "rdma://$ip4:4321" disk="$tmp/disk"

echo "== p31: the port counts for the paths behind it"
must_fail bash -c "echo sessname=late path=ip:$ip4@ip:$ip4 device_path=disk dest_port=4321 >$ctl"
echo "sessname=early dest_port=4321 path=ip:$ip4@ip:$ip4 device_path=disk" >$ctl
wait_until "the device" test -b /dev/rnbd0
wait_line "$server_log" "session early"

echo "== p28: a disconnect is answered"
path=$(echo /sys/devices/virtual/rtrs-client/early/paths/*@*)
begin=$SECONDS
echo 1 >"$path/disconnect"
[ $((SECONDS - begin)) -lt 10 ] || fail "disconnecting took $((SECONDS - begin)) s"
echo 1 >"$path/reconnect"
[ "$(cat "$path/state")" = connected ] || fail "not connected again"
begin=$SECONDS
echo normal >/sys/block/rnbd0/rnbd/unmap_device
wait_until "the end of the device" test ! -e /sys/block/rnbd0
wait_until "the end of the session" test ! -e /sys/devices/virtual/rtrs-client/early
[ $((SECONDS - begin)) -lt 10 ] || fail "unmapping took $((SECONDS - begin)) s"
