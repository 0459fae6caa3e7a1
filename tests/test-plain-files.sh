#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Files of the administrator are regular files: a FIFO that nobody writes to, or a device, is
# refused at once, at the start of each program and in a reload, which takes keys away and is
# followed by other changes and the end as ever.
. ./tests/functions.sh
requires_server; requires_gateway; requires_plugin

mkfifo "$tmp/fifo"
refuses() {
	local file=$1
	shift
	local status=0
	timeout "$TIMEOUT_S" "$@" >"$tmp/out" 2>&1 || status=$?
	[ $status -ne 0 ] || fail "$* has taken it"
	[ $status -ne 124 ] || fail "$* waits for $file"
	grep -F "$file: expected a regular file" "$tmp/out"
}

preload=$(nbdkit_preload)
nbdkit=(env ${preload:+LD_PRELOAD="$preload"} nbdkit)
for file in "$tmp/fifo" /dev/zero; do
	refuses "$file" "$RTRS_SERVER" --config "$file" --check
	refuses "$file" "$RTRS_SERVER" --config "$file"
	refuses "$file" "$RTRS_NBD" 127.0.0.1 "config=$file"
	refuses "$file" "$RTRS_NBD" 127.0.0.1 "auth-psk=$file"
	refuses "$file" "${nbdkit[@]}" -f "$RTRS_PLUGIN" 127.0.0.1 "config=$file"
	refuses "$file" "$RTRS_SERVER" "--auth-psk=$file" x=mem:1M
done
mkdir "$tmp/certs"
ln -s /dev/zero "$tmp/certs/ca-cert.pem"
refuses "$tmp/certs/ca-cert.pem" "$RTRS_SERVER" "--tls-certificates=$tmp/certs" x=mem:1M

# In the directory of a server that runs.
printf '[export "x"]\npath = mem:1M\n' >"$tmp/conf"
mkdir "$tmp/conf.d"
start_server --control "$tmp/control" --config "$tmp/conf"
mv "$tmp/fifo" "$tmp/conf.d/fifo.conf"
ctl=(timeout "$TIMEOUT_S" "$top_builddir/rtrsctl" --socket "$tmp/control")
expect_failure 1 "$tmp/conf.d/fifo.conf: expected a regular file" "${ctl[@]}" reload
"${ctl[@]}" export add y=mem:1M
"${ctl[@]}" export remove y
stop_server "$server_pid"
