#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Both front ends take their parameters from a file: the same file, and the same words for mistakes.
. ./tests/functions.sh
requires_server; requires_plugin; requires_gateway
requires nbdinfo --version

truncate -s 4M "$tmp/disk"
start_server "disk=$tmp/disk"
conf=$tmp/disk.conf
printf '%s\n' "# the gateway's" "server = 127.0.0.1:$server_port" 'export = disk' \
	'mode = ro' >"$conf"
start_nbdkit "config=$conf"
nbdinfo "$uri" | grep -q 'is_read_only: true'
start_gateway "config=$conf"
nbdinfo "$uri" | grep -q 'is_read_only: true'
start_gateway "config=$conf" mode=rw
nbdinfo "$uri" | grep -q 'is_read_only: false'

printf '%s\n' "server = 127.0.0.1:$server_port" 'exprt = disk' 'connections = 0' >"$conf"
preload=$(nbdkit_preload)
for front in nbdkit rtrs-nbd; do
	case $front in
	nbdkit) command=(env ${preload:+LD_PRELOAD="$preload"} nbdkit "$RTRS_PLUGIN") ;;
	*) command=("$RTRS_NBD") ;;
	esac
	must_fail timeout "$TIMEOUT_S" "${command[@]}" -f -U "$tmp/none" "config=$conf" \
		2>"$tmp/mistakes"
	grep -q "$conf:2: 'exprt' is no option .*did you mean export?" "$tmp/mistakes"
	grep -q "$conf:3: connections '0': expected a number from 1 to 4095" "$tmp/mistakes"
done
