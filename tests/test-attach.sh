#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What rtrs-attach and rtrs-detach refuse, before they touch the kernel, with words that name the
# mistake.  Devices are made in guests: tests/guest/test-attach-nbd.sh and its neighbours.
. "$(dirname "$0")/own-namespace.sh" --mount
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

# States of devices, without any device.
[ "$IN_NAMESPACE" = yes ] || skip "the rest needs a mount namespace"
mount -t tmpfs -o size=1M tmpfs /run
states=/run/rtrs/attach
mkdir -p $states

# state NAME LINE...: what a process of NAME has left.
state() {
	printf '%s\n' driver=nbd server=192.0.2.1 export=disk ready=1 "${@:2}" >"$states/$1"
}

# listed NAME WORDS
listed() {
	"$RTRS_ATTACH" --list >"$tmp/list"
	cat "$tmp/list"
	grep "^$1 .* $2 .*192.0.2.1/disk$" "$tmp/list"
}

# A disk of that name is another program's: its users are nobody's concern, and its size neither.
disk=$(find /sys/block -mindepth 1 -printf '%f\n' -quit)
if [ -n "$disk" ]; then
	state other disk="$disk"
	listed other gone
	grep "^other  *-  *0 " "$tmp/list"
	"$RTRS_DETACH" other
	[ ! -e $states/other ] || fail "the state is left"
fi

# Disks of nbd.ko, which this kernel need not have: the longest names are read as a whole, so that a
# disk that is there is not taken for one that has gone, and its state stays.
mount -t tmpfs tmpfs /sys/block
mkdir /sys/block/nbd4242
echo 2048 >/sys/block/nbd4242/size
for sizes in 63:242 63:243 63:254; do
	name=$(printf '%0*d' ${sizes%:*} 0) export=$(printf '%0*d' ${sizes#*:} 0)
	echo "rtrs-attach:$name:$export" >/sys/block/nbd4242/backend
	state "$name" disk=nbd4242 "export=$export"
	"$RTRS_ATTACH" --list | grep "^$name nbd4242 .* waits for rtrs-attach .*192.0.2.1/$export$"
	"$RTRS_ATTACH" --udev=nbd4242 | grep "^RTRS_EXPORT=$export$"
	detach_refuses 1 "$name: .*nbd" "$name"
	[ -e "$states/$name" ] || fail "the state of a disk that is there is lost"
done
echo "another export has the NAME"
echo "rtrs-attach:$name:other" >/sys/block/nbd4242/backend
detach_refuses 1 "$name: /dev/nbd4242 is of another export than $states/$name has: remove" "$name"
[ -e "$states/$name" ] || fail "its state is lost"
echo "the kernel cannot be asked"
umount /sys/block
mount -t tmpfs tmpfs /sys
detach_refuses 1 "$name: /sys/block: No such file or directory$" "$name"
umount /sys
rm "$states/$name"

# A wish is a wish as long as a process is there.
state left wish=1 pid=$$
listed left gone
state left wish=2 pid=$$
listed left gone
"$RTRS_ATTACH" --list --json | with_json "
one, = a
assert (one['state'], one['pid'], one['size'], one['disk']) == ('gone', 0, 0, ''), one"

# A process that ended before it had a device, or a file that is damaged: there is none.
state early driver=
head -c 100 /dev/zero >$states/zeroes
must_fail grep -E 'early|zeroes' <("$RTRS_ATTACH" --list)
detach_refuses 1 "early: it is not attached$" early
[ ! -e $states/early ] || fail "its state is left"
detach_refuses 1 "zeroes: it is not attached$" zeroes

# The starter ignores the ends of its children: rtrs-detach has one, and its end is known.
state orphan
env --ignore-signal=CHLD "$RTRS_DETACH" orphan

# One file that cannot be read hides no other device.
head -c 5000 /dev/zero >$states/damaged
must_fail "$RTRS_ATTACH" --list 2>"$tmp/err" >"$tmp/list"
grep '^left ' "$tmp/list"
grep "^rtrs-attach: $states/damaged: .*: remove this file, and rtrs-attach finds" "$tmp/err"
must_fail "$RTRS_ATTACH" --list --json 2>"$tmp/err" >"$tmp/json"
python3 -c "
import json, sys
assert [one['name'] for one in json.load(open('$tmp/json'))] == ['left']"
detach_refuses 1 "damaged: $states/damaged: .*: remove this file" damaged
rm $states/damaged

# A helper does nothing for a process that has ended before the helper asks to end with it.
must_fail bash -c 'exec -a rtrs-attach-detach "$0" left 1' "$RTRS_ATTACH"
[ -e $states/left ] || fail "the helper has detached it"
bash -c 'exec -a rtrs-attach-detach "$0" left $PPID' "$RTRS_ATTACH"
[ ! -e $states/left ] || fail "the helper has not detached it"

# The process is the one that has the lock; the state may have the number of one that has ended,
# which is another program's by now.
cat >"$tmp/serve.sh" <<END
trap 'touch "$tmp/signal"' USR1
trap 'exit 0' TERM
umask 077
exec 5>$states/left.lock
flock 5
touch "$tmp/serves"
while sleep 0.1; do :; done 5>&-
END
bash "$tmp/serve.sh" &
serving=$!
cleanup_fn stop_process $serving
wait_until "the process" test -e "$tmp/serves"
sleep 1000 &
another=$!
cleanup_fn kill_process $another
state left pid=$another
"$RTRS_DETACH" --lazy left
wait_until "the signal" test -e "$tmp/signal"
kill -0 $another || fail "the signal went to a process that had the number"
listed left "goes when unused"

# A full /run keeps no device: the wish goes into the page that the state has.
state left pid=$serving
head -c 64M /dev/zero >/run/fill 2>/dev/null || true
must_fail cp $states/left /run/more 2>"$tmp/err"
grep 'No space left' "$tmp/err"
"$RTRS_DETACH" --lazy left
grep '^wish=2$' $states/left
listed left "goes when unused"
rm /run/fill /run/more

# A unit waits for what is missing at its start: it says so once, and reads its files again.
printf '%s\n' 'server = 127.0.0.1' 'export = disk' 'connect-timeout = forever' >"$tmp/unit.conf"
"$RTRS_ATTACH" --foreground config="$tmp/unit.conf" left 2>"$tmp/waits" &
waiter=$!
cleanup_fn stop_process $waiter
wait_line "$tmp/waits" "left is attached already, by another process .*; trying again$"
kill -HUP $waiter
echo 'colour = red' >>"$tmp/unit.conf"
wait_line "$tmp/waits" "unit.conf:4: .*colour"
expect_exit $waiter 2
[ "$(grep -c 'trying again' "$tmp/waits")" -eq 1 ] || fail "it does not say it once"

# The next process has the lock, and has not written anything.
kill_process $another
state left pid=$another
listed left "waits for server"
state left driver= pid=$serving
listed left "waits for server"
detach_refuses 1 "left: it is not attached yet: process $serving waits for the server" left
