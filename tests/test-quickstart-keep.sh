#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# quickstart.sh --keep keeps: after it has ended each command that it prints works, the one that
# stops what it started at last.  A command that it prints and this test does not know is a failure.
. ./tests/functions.sh
requires_server; requires_plugin; requires_plain_build
requires nbdcopy --version
requires qemu-img --version
[ -f "$top_srcdir/quickstart.sh" ] || skip "quickstart.sh is not part of this source"

random_file "$tmp/image" $((3 << 20))
mkdir "$tmp/work"
run_quickstart() {
	TMPDIR=$tmp/work timeout $((4 * TIMEOUT_S)) "$top_srcdir/quickstart.sh" \
		--build "$top_builddir" "$@"
}

# Without --keep nothing is left.
run_quickstart "$tmp/image" >"$tmp/plain.log" 2>&1
grep -x 'identical' "$tmp/plain.log"
[ -z "$(ls -A "$tmp/work")" ]

# No place for copies, and no room.
status=0
TMPDIR=$tmp/none "$top_srcdir/quickstart.sh" --build "$top_builddir" "$tmp/image" >"$tmp/none.log" \
	2>&1 || status=$?
[ $status -eq 1 ] &&
	grep -x "quickstart.sh: TMPDIR=$tmp/none: expected a directory where files can be made" \
		"$tmp/none.log"
random_file "$tmp/odd" 200001
status=0
(ulimit -f 64; run_quickstart "$tmp/odd" >"$tmp/room.log" 2>&1) || status=$?
[ $status -eq 1 ] &&
	grep -x "quickstart.sh: TMPDIR=$tmp/work: expected room for a copy of $tmp/odd, 200001 bytes" "$tmp/room.log"
[ -z "$(ls -A "$tmp/work")" ]

# Who starts it ends before anything is used, as a terminal does.
run_quickstart --keep "$tmp/image" >"$tmp/keep.log" 2>&1
sed '1,/^== Use it$/d' "$tmp/keep.log" >"$tmp/lines"
[ -s "$tmp/lines" ]
cat "$tmp/lines"

read -r nbdkit_pid <"$(echo "$tmp"/work/nbdkit*/nbdkit.pid)"
stop=""
stop_what_is_left() {
	[ -z "$stop" ] || bash -c "$stop"
}
cleanup_fn stop_what_is_left
stop=$(sed -n 's/^to stop  *//p' "$tmp/lines")
uri=$(sed -n 's/^URI  *//p' "$tmp/lines")
[ -n "$stop" ] && [ -n "$uri" ]

cd "$tmp" || exit 1
known=0
while IFS= read -r line <&3; do
	label=${line:0:13} command=${line:13}
	# What follows the command is a remark.
	command=${command%%   *}
	case $label in
	'URI          ')
		# What the image was copied to.
		timeout "$TIMEOUT_S" nbdcopy "$command" "$tmp/back"
		cmp "$tmp/image" "$tmp/back"
		;;
	'as a disk    ')
		[[ $command =~ ^nbd-client\ -unix\ \"[^\"]*\"\ /dev/nbd0$ ]] ||
			fail "not as in a guest: $command"
		guest_attaches /dev/nbd0
		;;
	'with QEMU    ')
		timeout "$TIMEOUT_S" bash -c "$command"
		;;
	'as a file    ')
		if can_fuse; then
			fuse_run mnt/nbd bash -c "$command"
			cmp "$tmp/image" mnt/nbd
			fuse_stop mnt "$fuse_pid"
		else
			not_run_here "$command" "$why"
		fi
		;;
	'to stop      ') ;;	# the last
	'log          ')
		grep 'listening on' "$command"
		;;
	*) fail "quickstart.sh prints what no test runs: $line" ;;
	esac
	known=$((known + 1))
done 3<"$tmp/lines"
[ $known -eq 6 ]

# It is the nbdkit of then, and "to stop" stops it.
[ -d "/proc/$nbdkit_pid" ]
server_pid=${stop##*; kill }
server_pid=${server_pid%%;*}
[ -d "/proc/$server_pid" ]
bash -c "$stop"
stop=""
wait_until "the end of nbdkit" process_ended "$nbdkit_pid"
wait_until "the end of rtrs-server" process_ended "$server_pid"
[ -z "$(ls -A "$tmp/work")" ]
printed_commands_end
