#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The commands that rtrs-guide(7) prints, in their order, on a machine of their own as far as the
# network goes.  A command that this test does not know is a failure.  The words of messages in the
# guide are words of the programs.  The section that begins with two empty machines needs two:
# build-aux/fleet.sh runs its commands, and here the server reads the files that it writes.
. "$(dirname "$0")/guide-machine.sh"

# One command on each line, a here document within $'...'.
/usr/bin/python3 "$top_srcdir/tests/guide-commands.py" "$guide" rest "$tmp" >"$tmp/commands"
cat "$tmp/commands"

cd "$tmp" || exit 1
known=0
while IFS= read -r word <&3; do
	eval "command=$word"
	case $command in
	mkdir* | truncate* | cat* | printf* | rm* | cp* | nbdinfo* | nbdcopy* | qemu-img* | \
		"rtrs-server --config "*" --check")
		timeout "$TIMEOUT_S" bash -c "$command"
		;;
	"nbdkit -U - "*)
		# shellcheck disable=SC2154 # set by a command of the guide
		export disk0 look
		timeout "$TIMEOUT_S" bash -c "$command" | grep -q 'export-size: '
		;;
	disk0=* | look=*) eval "$command" ;;
	"(umask 077; rtrs-psk "*) bash -c "$command" ;;
	# The other machine is this one.
	"scp -p $tmp/"*" 192.0.2.20:$tmp/"*)
		command=${command/scp/cp}
		bash -c "${command/192.0.2.20:/}"
		;;
	"rtrs-server --config "* | "rtrs-server --listen tcp://"*) serves "$command" ;;
	"nbdkit -t 32 "* | "rtrs-nbd "*) started "$command" ;;
	"rtrsctl reload")
		timeout "$TIMEOUT_S" bash -c "$command" | tee -a "$tmp/reloads"
		;;
	"rtrsctl --gateway "*)
		RUNTIME_DIRECTORY=$tmp/client timeout "$TIMEOUT_S" bash -c "$command" |
			tee -a "$tmp/saves"
		;;
	"rtrsctl "*) timeout "$TIMEOUT_S" bash -c "$command" ;;
	"modprobe rdma_rxe" | "rdma link add rxe0 "* | "rtrs-server --listen rdma://"*)
		echo "guests run it, which have soft-RoCE"
		grep -r -q -F "${command%% rxe0*}" "$top_srcdir/tests/guest" ||
			grep -r -q -F "listen rdma://" "$top_srcdir/tests/guest"
		;;
	"systemctl enable --now rtrs-attach@disk0.service")
		# One process has the device: what was started by hand ends first.
		grep -B 1 -F "$command" "$tmp/commands" | grep -F "rtrs-detach disk0"
		;;
	"rtrs-attach "* | "rtrs-detach "* | "mkfs.ext4 /dev/rtrs/"* | "mount /dev/rtrs/"* | \
		"umount /mnt" | "echo /dev/rtrs/"*)
		echo "run in a guest: tests/guest/test-attach-nbd.sh, tests/guest/test-units.sh"
		;;
	"echo round-robin >/sys/devices/virtual/rtrs-client/disk0/mpath_policy")
		echo "guests run it, which have the kernel's client"
		# shellcheck disable=SC2016 # as it is written there
		grep -q -F 'echo round-robin >"$rtrs_sysfs/$session/mpath_policy"' \
			"$top_srcdir/tests/guest/lib.sh"
		;;
	*) fail "rtrs-guide(7) prints a command that no test runs: $command" ;;
	esac
	known=$((known + 1))
done 3<"$tmp/commands"
[ $known -eq "$(wc -l <"$tmp/commands")" ]
[ $known -ge 35 ]

# What the guide says of its commands.
diff -u - "$tmp/reloads" <<END
+disk1=$tmp/srv/disk1.img
disk0 10G -> 20G
-disk1
END
diff -u - "$tmp/saves" <<<"saved path tcp://203.0.113.10:1234"
qemu-img compare -f raw -F raw "$tmp/srv/disk0-backup.img" "$tmp/srv/copy.img"

# The way from two empty machines.
/usr/bin/python3 "$top_srcdir/tests/guide-commands.py" "$guide" walk >"$tmp/walk"
[ "$(wc -l <"$tmp/walk")" -ge 30 ]
mkdir -p "$tmp/machine/etc/rtrs-server"
files=0
while IFS=$'\t' read -r machine _ word <&3; do
	eval "command=$word"
	case $command in
	"cat > /etc/rtrs-server"*)
		[ "$machine" = server ]
		file=${command#cat > } file=${file%% <<END*}
		bash -c "${command/ \/etc/ $tmp/machine/etc}"
		"$RTRS_SERVER" --config "$tmp/machine$file" --check
		files=$((files + 1))
		;;
	esac
done 3<"$tmp/walk"
[ $files -eq 2 ]

# Messages.
sed -n 's/^=item C<\(.*\)>$/\1/p' "$guide" >"$tmp/messages"
[ "$(wc -l <"$tmp/messages")" -ge 5 ]
while IFS= read -r message <&3; do
	for part in "${message%...*}" "${message#*...}"; do
		part=${part#[: ]}
		part=${part% }
		case $part in
		*": No space left on device" | *": File too large") part=${part%: *} ;;
		esac
		grep -r -q -F -- "$part" "$top_srcdir/src" || fail "no program says '$part'"
	done
done 3<"$tmp/messages"
