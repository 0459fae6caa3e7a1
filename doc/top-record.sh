#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Records what doc/top.svg shows: "rtrsctl top" on a client's machine, while one of two cables is
# pulled and put back.
#
#	top-record.sh FILE [PULL PLUG END]	seconds; in the top build directory
#
# The machines and cables are those of tests/wires.sh, the terminal is tmux.  FILE has each second's
# screen as "tmux capture-pane -e" writes it, behind a line "@ SECONDS WORDS" about the cables.
. ./tests/functions.sh
. "$top_srcdir/tests/wires.sh"
recording=$(realpath "$1")
pull_s=${2:-4} plug_s=${3:-10} end_s=${4:-17}
columns=92 lines=9
requires_server; requires_plugin
requires fio --enghelp=nbd
requires tmux -V
# How long requests take is on the screen.
requires_plain_build
HEARTBEAT_MS=200

terminal() {
	LC_ALL=C.UTF-8 TERM=xterm-256color tmux -f /dev/null -S "$tmp/tmux" "$@"
}

wires_up
truncate -s 16M "$tmp/disk"
serve "disk=$tmp/disk"
connect export=disk sessname=vm1
(cd "$tmp" && exec fio --name=load --ioengine=nbd --uri="$uri" --rw=randrw --bs=4k --size=16M \
	--iodepth=8 --rate_iops=4000,4000 --time_based --runtime=1h --eta=never \
	--output-format=json --output=load.json) >"$tmp/load.log" 2>&1 &
load=$!
cleanup_fn load_kill "$load"
carries 1
carries 2

# shows PATTERN: a line of the screen
shows() {
	terminal capture-pane -p >"$tmp/screen" && grep -q -E -- "$1" "$tmp/screen"
}
see() {
	wait_until "a screen with $1" shows "$1" || { cat "$tmp/screen"; exit 1; }
}

cleanup_fn terminal kill-server
terminal new-session -d -x $columns -y $lines \
	"$(printf '%q ' "$top_builddir/rtrsctl" --gateway top); read -r"
see '^   .*10\.77\.1\.2:1234 +connected +[1-9]'
see '^   .*10\.77\.2\.2:1234 +connected +[1-9]'

# A frame for each second; what happens at a second happens behind its frame.  The seconds before 0
# fill the curves.
words='both cables are in' begin_us=$((${EPOCHREALTIME/./} + 6000000))
for ((s = -6; s < end_s; s++)); do
	left_us=$((begin_us + s * 1000000 - ${EPOCHREALTIME/./}))
	[ $left_us -le 0 ] ||
		pause "$(printf '%d.%06d' $((left_us / 1000000)) $((left_us % 1000000)))"
	[ "$s" -ge 0 ] || continue
	# A busy machine is late.
	case $s in
	"$plug_s") see 'degraded 1/2' ;;
	"$((end_s - 1))") see '^   .*10\.77\.1\.2:1234 +connected +[1-9]' ;;
	esac
	echo "@ $s $words" >>"$tmp/frames"
	terminal capture-pane -e -p >>"$tmp/frames"
	case $s in
	"$pull_s") pull 1; words='cable 1 is pulled' ;;
	"$plug_s") plug 1; words='cable 1 is back in' ;;
	esac
done
see '^   .*10\.77\.1\.2:1234 +connected +[1-9]'
terminal send-keys q
load_end $((2 * (DETECT_MS + SLACK_MS)))
mv "$tmp/frames" "$recording"
