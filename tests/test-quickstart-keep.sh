#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# quickstart.sh --keep keeps, with either gateway: after the script has ended each command that the
# script prints works, the one that stops the servers at last.  A printed command that this test
# does not know is a failure.
. ./tests/functions.sh
requires_server; requires_plugin; requires_gateway; requires_plain_build
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
for gateway in nbdkit rtrs-nbd; do
	run_quickstart --gateway=$gateway "$tmp/image" >"$tmp/plain.log" 2>&1
	grep -x 'identical' "$tmp/plain.log"
	grep -x -E "== Start rtrs-server and $gateway( rtrs)?" "$tmp/plain.log"
	[ -z "$(ls -A "$tmp/work")" ]
done
expect_failure 1 "^quickstart.sh: --gateway 'qemu': expected nbdkit or rtrs-nbd$" \
	"$top_srcdir/quickstart.sh" --gateway=qemu

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

stop=""
stop_what_is_left() {
	[ -z "$stop" ] || bash -c "$stop"
}
cleanup_fn stop_what_is_left
cd "$tmp" || exit 1

# run_printed LABEL COMMAND
run_printed() {
	case $1 in
	'URI          ')
		# What the image was copied to.
		timeout "$TIMEOUT_S" nbdcopy "$2" "$tmp/back"
		cmp "$tmp/image" "$tmp/back"
		;;
	'as a disk    ')
		[[ $2 =~ ^nbd-client\ -unix\ \"[^\"]*\"\ /dev/nbd0$ ]] ||
			fail "not as in a guest: $2"
		guest_attaches /dev/nbd0
		;;
	'with QEMU    ') timeout "$TIMEOUT_S" bash -c "$2" ;;
	'as a file    ')
		if can_fuse; then
			fuse_run mnt/nbd bash -c "$2"
			cmp "$tmp/image" mnt/nbd
			fuse_stop mnt "$fuse_pid"
			rmdir mnt
		else
			not_run_here "$2" "$why"
		fi
		;;
	'to stop      ') ;;	# the last
	'log          ') grep 'listening on' "$2" ;;
	*) fail "quickstart.sh prints what no test runs: $1$2" ;;
	esac
}

# keep GATEWAY: who starts the script ends before anything is used, as a terminal does.
keep() {
	local line known=0 command gateway_pid server_pid

	run_quickstart --keep --gateway="$1" "$tmp/image" >"$tmp/keep.log" 2>&1
	sed '1,/^== Use it$/d' "$tmp/keep.log" >"$tmp/lines"
	[ -s "$tmp/lines" ]
	cat "$tmp/lines"
	stop=$(sed -n 's/^to stop  *//p' "$tmp/lines")
	[ -n "$stop" ]
	read -r gateway_pid <"$(echo "$tmp"/work/nbdkit*/gateway.pid)"
	while IFS= read -r line <&3; do
		# What follows the command is a remark.
		command=${line:13}
		run_printed "${line:0:13}" "${command%%   *}"
		known=$((known + 1))
	done 3<"$tmp/lines"
	[ $known -eq 6 ]

	# The gateway is the process of then, and "to stop" stops it.
	[ "$(cat "/proc/$gateway_pid/comm")" = "$1" ]
	server_pid=${stop##*; kill }
	server_pid=${server_pid%%;*}
	[ -d "/proc/$server_pid" ]
	bash -c "$stop"
	stop=""
	wait_until "the end of $1" process_ended "$gateway_pid"
	wait_until "the end of rtrs-server" process_ended "$server_pid"
	[ -z "$(ls -A "$tmp/work")" ]
}

keep nbdkit
keep rtrs-nbd
printed_commands_end
