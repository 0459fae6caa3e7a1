#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Guess: fio's engine nbd makes of sync=1 or sync=dsync a write with FUA, and of fdatasync=1 a FLUSH, as of fsync=1.
# It ignores sync= without a word, so a benchmark of durable writes measures a cache, and fdatasync=1 fails with
# EINVAL (fio 3.33 and 3.39).  fsync=1 sends FLUSH.
. "$(dirname "$0")/common.sh"

# sent SUITE OPTION: the status of fio, and the numbers of writes, of writes with FUA, and whether there was a FLUSH
sent() {
	local root=$tmp/$1
	rm -f "$root/log"
	# shellcheck disable=SC2016 # nbdkit sets it
	chroot "$root" nbdkit -U - --filter=log memory 1M logfile=/log --run 'fio --name=j --ioengine=nbd \
		--uri="nbd+unix:///?socket=$unixsocket" --rw=write --bs=64k --size=256k --'"$2" >/dev/null 2>&1 &&
		printf 'ok, ' || printf 'fails, '
	printf '%d writes, %d with FUA, ' "$(grep -c ' Write id' "$root/log")" "$(grep -c 'fua=1' "$root/log")"
	grep -q ' Flush id' "$root/log" && echo flushed || echo "not flushed"
}

packages bookworm fio=3.33-3 nbdkit=1.32.5-1
packages trixie fio=3.39-1 nbdkit=1.42.3-1
for suite in bookworm trixie; do
	expect "$suite, sync=1" "$(sent $suite sync=1)" "ok, 4 writes, 0 with FUA, not flushed"
	expect "$suite, sync=dsync" "$(sent $suite sync=dsync)" "ok, 4 writes, 0 with FUA, not flushed"
	expect "$suite, fdatasync=1" "$(sent $suite fdatasync=1)" "fails, 1 writes, 0 with FUA, not flushed"
	expect "$suite, fsync=1" "$(sent $suite fsync=1)" "ok, 4 writes, 0 with FUA, flushed"
done
