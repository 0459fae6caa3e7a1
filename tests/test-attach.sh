#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What rtrs-attach and rtrs-detach refuse, before they touch the kernel, with words that name the
# mistake.  Devices are made in guests: tests/guest/test-attach-nbd.sh and its neighbours.
. ./tests/functions.sh
requires_attach

# refuses REGEX ARGUMENT...
refuses() {
	expect_failure 2 "^rtrs-attach: $1" "$RTRS_ATTACH" "${@:2}"
}

conf=$("$RTRS_ATTACH" --help | sed -n 's/^ *(\(.*\)\/NAME.conf)$/\1/p')
refuses "expected HOST/EXPORT, or a NAME whose parameters are in $conf/NAME.conf$"
refuses "$conf/no-such-disk.conf: No such file or directory: create it" no-such-disk
refuses "'127.0.0.1/': expected HOST/EXPORT$" 127.0.0.1/
refuses "'/disk': expected HOST/EXPORT$" /disk
refuses "'unix:/srv/disk': .* give server=unix:PATH export=EXPORT$" unix:/srv/disk
refuses "'two': there is a NAME already, 'one'$" 127.0.0.1/disk one two
refuses "'127.0.0.2/disk': there is a server already, '127.0.0.1'; path= is one more way to it$" \
	127.0.0.1/disk 127.0.0.2/disk
refuses "NAME 'n.lock': expected .* and not '.lock', .* as the end$" 127.0.0.1/disk n.lock
refuses "NAME '..': expected at most 63 letters" 127.0.0.1/disk ..
refuses "the export 'a/b' is no NAME of a device: give a NAME, too$" 127.0.0.1/a/b
refuses "no export: expected HOST/EXPORT, or export=NAME$" server=127.0.0.1 disk
refuses "--via 'tape': expected auto, ublk or nbd$" --via=tape 127.0.0.1/disk
refuses "unknown parameter 'exprot' .did you mean export=." 127.0.0.1/disk exprot=disk
refuses "connections=1 with --queues=2: expected a connection for each queue" \
	--queues=2 127.0.0.1/disk connections=1
refuses "--json: expected with --list$" --json
refuses "'disk': expected no further word with --list$" --list disk

# A file: each mistake, with its line.
printf '%s\n' 'server = 127.0.0.1' 'export = disk' 'via = tape' 'unix = /run/sock' >"$tmp/d.conf"
status=0
"$RTRS_ATTACH" --check config="$tmp/d.conf" disk >"$tmp/out" 2>&1 || status=$?
cat "$tmp/out"
[ $status -eq 2 ] || fail "status $status"
grep "d.conf:3: via 'tape': expected auto, ublk or nbd$" "$tmp/out"
grep "d.conf:4: .*unix" "$tmp/out"
printf '%s\n' 'server = 127.0.0.1' 'export = disk' 'via = nbd' 'foreground = yes' >"$tmp/d.conf"
"$RTRS_ATTACH" --check config="$tmp/d.conf" disk

detach_refuses() {
	expect_failure "$1" "^rtrs-detach: $2" "$RTRS_DETACH" "${@:3}"
}

detach_refuses 2 "expected NAME, or --all$"
detach_refuses 2 "--all with a NAME: give one or the other$" --all disk
detach_refuses 2 "--force with --lazy: give one or the other$" -f -l disk
detach_refuses 2 "'a/b' is no NAME of a device$" a/b
detach_refuses 1 "no-such-disk: it is not attached$" no-such-disk
