#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=7.3 timeout=400 full
# guest: kernel=6.12 timeout=400 full
# A client process over RDMA that is killed again and again, and the next one, which goes on (kept-kernel):
# at rtrs-server, in both modes, and at the kernel's own server, which knows no lineage: with mode=rw it
# lets the next process in when it has noticed the death of the one before, and with mode=migration the
# client does not open.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"
requires_server
kernel=tests/server/kept-kernel
requires test -x "$kernel"
"$RTRS_SERVER" --version >/dev/null

# kills N FILE KEY=VALUE...
kills() {
	"$kernel" : : "$1" "$tmp/$2" "server=$ip4" transport=rdma control=none "${@:3}" \
		>"$tmp/$2.out" 2>"$tmp/$2.err"
}

# went_on N FILE: it has, and the requests of each process were answered.
went_on() {
	cat "$tmp/$2.out"
	grep -q -E "^[0-9]{2,} writes, $1 kills, [1-9][0-9]* requests again\$" "$tmp/$2.out"
}

truncate -s 1M "$tmp/rw" "$tmp/migration"
start_server --listen "rdma://$ip4:1234" "rw=$tmp/rw" "migration=$tmp/migration"
for mode in rw migration; do
	kills 4 "ours-$mode" "export=$mode" "mode=$mode" || { cat "$tmp/ours-$mode.err"; exit 1; }
	went_on 4 "ours-$mode"
done
stop_process "$server_pid"

modprobe brd rd_nr=1 rd_size=2048
modprobe rtrs-server
modprobe rnbd-server dev_search_path=/dev
kills 4 kernel-rw export=ram0 mode=rw || { cat "$tmp/kernel-rw.err"; exit 1; }
went_on 4 kernel-rw
must_fail kills 1 kernel-migration export=ram0 mode=migration
grep -F "the server does not end the session of a former process: a kernel's" \
	"$tmp/kernel-migration.err"
modprobe -r rnbd-server
modprobe -r rtrs-server
