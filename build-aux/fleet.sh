#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The way of rtrs-guide(7) from two empty machines to units, by the guide's own commands, typed on the
# machine that the guide names.  ./check.sh --full=fleet runs this.
#
#	fleet.sh TARBALL DIR [GUIDE]
#
# REAL here: the packages, the units under systemd as process 1 of each machine, two networks, the
# programs, Prometheus, and IO with verify through all of it.  NOT REAL: a machine is a container of
# systemd-nspawn in a network namespace, on the kernel of this machine, without udev; and the archives
# of Debian's other packages are fetched beforehand, because no machine reaches a network but the two.
# The server is Debian 12 and the gateway Debian 13.
#
# machines.sh makes the machines.  Packages are taken from DIR/SUITE, where packages.sh leaves them, or
# built.  GUIDE is man/rtrs-guide.pod of this tree by default.  Status 77: this machine has no means
# for it, which the last line says.
set -eu -o pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=build-aux/chroots.sh
. "$top/build-aux/chroots.sh"
# shellcheck source=build-aux/machines.sh
. "$top/build-aux/machines.sh"

# Debian's python before any other: only that one has the nbd module that nbdsh needs.
PATH=/usr/bin:$PATH:/usr/sbin:/sbin

usage() {
	say "usage: ${0##*/} TARBALL DIR [GUIDE]"
	exit 2
}

on_exit() {
	local status=$?

	trap - EXIT
	set +e
	[ -z "${load-}" ] || kill "$load" 2>/dev/null
	[ $status -eq 0 ] || [ $status -eq 77 ] || journals
	end_machines
	exit $status
}

# packages_of SUITE: see that $dir/SUITE has the packages.
packages_of() {
	suite=$1
	[ ! -e "$dir/$suite/built" ] || return 0
	step "a chroot to build in" fresh "$suite" "$dir/$suite-build" &&
		step "build" build "$dir/$suite-build" "$dir/$suite" || return 1
	rm -rf --one-file-system "$dir/$suite-build"
}

# next_of SUITE: the folder "next" beside these packages gets the same ones as another Debian revision, for an
# upgrade.
next_of() {
	local deb from=$dir/$1 tree=$dir/unpacked version

	mkdir -p "$from/next"
	for deb in "$from"/*.deb; do
		version=$(dpkg-deb -f "$deb" Version)
		rm -rf "$tree"
		dpkg-deb -R "$deb" "$tree"
		sed -i "s/^Version: .*/&+next/" "$tree/DEBIAN/control"
		dpkg-deb --root-owner-group -b "$tree" "$from/next/$(basename "$deb")"
		[ "$(dpkg-deb -f "$from/next/$(basename "$deb")" Version)" = "$version+next" ] || return 1
	done
	rm -rf "$tree"
}

# ---- the walk ----

# typed MACHINE COMMAND: the output goes to $dir/out.
typed() {
	printf '%s# %s\n' "$1" "$2" >&2
	if ! on "$1" bash -c "$2" >"$dir/out" 2>&1; then
		cat "$dir/out" >&2
		fail "on the $1: $2"
	fi
	{ printf '%s# %s\n' "$1" "$2"; cat "$dir/out"; } >>"$dir/fleet.log"
}

# load_begins: IO with verify by a user of the gateway's first disk.
load_begins() {
	echo 0 >"$dir/stop.turns"
	STOP=$dir/stop nbdsh -u "nbd+unix:///?socket=$(live gateway)/run/nbd/disk0.sock" -c - \
		<"$top/tests/nbd-load.py" >"$dir/load.log" 2>&1 &
	load=$!
	load_goes_on
}

# load_goes_on: until two turns more have ended, so that one was begun since.
load_goes_on() {
	wait_until "IO to go on" 120 turns_above_or_ended $(($(cat "$dir/stop.turns") + 1))
	! ended "$load" || { cat "$dir/load.log" >&2; fail "IO has failed"; }
}

turns_above_or_ended() {
	ended "$load" || [ "$(cat "$dir/stop.turns")" -gt "$1" ]
}

load_ends() {
	load_goes_on
	: >"$dir/stop"
	wait "$load" || { cat "$dir/load.log" >&2; fail "IO has failed"; }
	load=''
	say "IO with verify: $(cat "$dir/stop.turns") turns"
}

# typed_late MACHINE COMMAND: a person is slower than the second path of a gateway.
typed_late() {
	wait_until "$2" 60 on "$1" bash -c "$2"
	typed "$@"
}

# What the guide promises of a command, when it has been typed.
promised() {
	local image word words

	case $2 in
	"rtrsctl export set "*)
		read -r -a words <<<"${2#rtrsctl export set }"
		for word in "${words[@]:1}"; do
			echo "${words[0]} ${word%=*} $(numfmt --from=iec "${word#*=}")" \
				>>"$dir/limits"
		done
		;;
	"nbdinfo --size "*)
		image=${2##*/} image=${image%.sock*}.img
		[ "$(cat "$dir/out")" = "$(on server stat -c %s "/var/lib/rtrs-server/$image")" ] ||
			fail "not the size of $image: $(cat "$dir/out")"
		;;
	"rtrsctl doctor") grep ' version: its file was replaced' "$dir/out" | sort >>"$dir/old.$1" || true ;;
	"rtrsctl check") grep -q '^RTRS OK - ' "$dir/out" || fail "not OK: $(cat "$dir/out")" ;;
	"systemctl enable --now "*) echo "$1 ${2##* }" >>"$dir/units" ;;
	esac
}

# copied MACHINE COMMAND: scp, which the machines have not: like scp it keeps the owner of a file that is there.
copied() {
	local from to word words

	printf '%s# %s\n' "$1" "$2" >&2
	read -r -a words <<<"$2"
	for word in "${words[@]:1}"; do
		case $word in
		-p) ;;
		192.0.2.20:*) to=$(root gateway)${word#*:} ;;
		/*) from=$(root "$1")$word ;;
		*) from=$(root "$1")/root/$word ;;
		esac
	done
	[ -f "$from" ] || fail "on the $1: $2: no such file: $from"
	if [ -e "$to" ]; then cat "$from" >"$to"; else cp -p "$from" "$to"; fi
}

# goes_back: the last commands of the guide, and what stays of it: the images.
goes_back() {
	local machine command

	[ "$(wc -l <"$dir/back")" -ge 5 ] || fail "the guide has no way back"
	while IFS=$'\t' read -r machine command <&3; do
		eval "command=$command"
		typed "$machine" "$command"
	done 3<"$dir/back"
	for machine in server gateway; do
		on "$machine" bash -c "systemctl daemon-reload; systemctl list-unit-files --state=enabled" >"$dir/out"
		! grep rtrs "$dir/out" || fail "units of the $machine stay enabled"
		! on "$machine" bash -c 'cat /proc/[0-9]*/comm' 2>/dev/null | grep -E '^(rtrs|nbdkit)' ||
			fail "processes of the $machine stay"
		! on "$machine" dpkg -l 'rtrs-*' 'nbdkit-plugin-rtrs' 2>/dev/null | grep -E '^(i|rc)' ||
			fail "packages of the $machine stay"
	done
	on server test -f /var/lib/rtrs-server/disk0.img || fail "an image went with the package"
}

walk() {
	local machine heading command

	while IFS=$'\t' read -r machine heading command <&3; do
		eval "command=$command"
		if [ "$heading" = "The way back" ]; then
			printf '%s\t%q\n' "$machine" "$command" >>"$dir/back"
			continue
		fi
		[ "$heading" != "Changes while the disk is used" ] || [ -n "${load-}" ] || load_begins
		case $command in
		"rtrsctl check" | "rtrsctl status") typed_late "$machine" "$command" ;;
		# Status 1: a warning.
		"rtrsctl doctor") typed "$machine" "$command || [ \$? -eq 1 ]" ;;
		"scp "*" 192.0.2.20:"*) copied "$machine" "$command" ;;
		*) typed "$machine" "$command" ;;
		esac
		promised "$machine" "$command"
		[ -z "${load-}" ] || load_goes_on
	done 3<"$dir/walk"
	[ -n "${load-}" ] || fail "the walk has no changes while the disk is used"
}

# ---- what is there at the end ----

# units_run: all that the guide has enabled, and nothing has failed.
units_run() {
	local machine unit

	[ "$(wc -l <"$dir/units")" -ge 5 ] || fail "only these units: $(cat "$dir/units")"
	while read -r machine unit <&3; do
		on "$machine" systemctl is-active "$unit" >/dev/null || fail "$unit is not active"
		on "$machine" systemctl is-enabled "$unit" >/dev/null || fail "$unit is not enabled"
	done 3<"$dir/units"
	for machine in server gateway; do
		on "$machine" systemctl is-system-running >/dev/null ||
			fail "units of the $machine: $(on "$machine" systemctl --failed)"
	done
}

# upgraded: by the packages.  Doctor has named all gateways at first, and then the one that was not restarted.
upgraded() {
	local count=(1 2 1) disk disks=(disk1 disk0 fast0) i machine

	for machine in server gateway; do
		on "$machine" dpkg-query -W 'rtrs-*' >"$dir/out"
		! grep -v '+next$' "$dir/out" || fail "packages of the $machine are not the new ones"
	done
	[ ! -s "$dir/old.server" ] || fail "servers run the old program: $(cat "$dir/old.server")"
	for i in "${!disks[@]}"; do
		disk=${disks[$i]}
		[ "$(grep -c "$disk:" "$dir/old.gateway")" -eq "${count[$i]}" ] ||
			fail "gateways that run the old program: $(cat "$dir/old.gateway")"
	done
}

# health MACHINE: level, sessions, paths and paths up, as rtrsctl knows them.
health() {
	on "$1" rtrsctl --json check | /usr/bin/python3 -c 'import json, sys
c = json.load(sys.stdin)
print(c["level"], c["sessions"], c["paths"], c["paths_up"])'
}

healthy() {
	[ "$(health server) $(health gateway)" = "OK 3 6 6 OK 3 6 6" ]
}

all_healthy() {
	wait_until "two paths for each disk" 120 healthy
	on server rtrsctl check
	on gateway rtrsctl check
}

# reaches NAME MEGABYTE: a megabyte goes through the gateway of the disk to the image, at that place.
reaches() {
	head -c 1M /dev/urandom >"$dir/image"
	IMAGE=$dir/image MEGABYTE=$2 nbdsh \
		-u "nbd+unix:///?socket=$(live gateway)/run/nbd/$1.sock" -c - <<'END'
import os
h.pwrite(open(os.environ["IMAGE"], "rb").read(), int(os.environ["MEGABYTE"]) << 20)
h.flush()
END
	dd if="$(root server)/var/lib/rtrs-server/$1.img" bs=1M skip="$2" count=1 status=none |
		cmp - "$dir/image" || fail "not what was written to $1"
}

# ask WORD...: Prometheus on the gateway, see there.
ask() {
	ip netns exec "$(net gateway)" /usr/bin/python3 "$top/tests/prometheus-ask.py" \
		http://127.0.0.1:9090 "$@"
}

limit_is() {
	[ "$(ask value "rtrs_server_export_limit{export=\"$1\",limit=\"$2\"}")" = "$3" ]
}

# watched: Prometheus has both programs, the limits that the guide has set, and all that its rules
# ask for.
watched() {
	local disk key value

	wait_until "both targets" 120 ask targets 2
	wait_until "the rules" 120 ask rules "$top/contrib/alerts.yml"
	while read -r disk key value <&3; do
		wait_until "the limit of $disk" 120 limit_is "$disk" "$key" "$value"
	done 3<"$dir/limits"
}

says_degraded() {
	on gateway rtrsctl check >"$dir/degraded" && return 1
	grep -q '^RTRS WARNING - .* without 198\.51\.100\.10:1234' "$dir/degraded"
}

# A pulled cable is a warning and an alarm, and no error.  The gateway sees it by its heartbeats.
cable_is_pulled() {
	ip -n "$(net server)" link set net2 down
	wait_until "the loss of a path" 120 says_degraded
	cat "$dir/degraded" >&2
	wait_until "an alarm" 120 ask alert RtrsClientPathDown
	load_goes_on
	ip -n "$(net server)" link set net2 up
	all_healthy
	load_goes_on
}

# journal_has MACHINE MESSAGE FIELD=VALUE...: systemd's journal has an entry for an alarm to find.
journal_has() {
	local id
	id=$(sed -n "s/^\tROW($2, \"\([0-9a-f]*\)\".*/\1/p" "$top/src/common/base/log.h")
	[ ${#id} -eq 32 ] || fail "no id of $2"
	on "$1" journalctl -q -o cat "MESSAGE_ID=$id" "${@:3}" >"$dir/out"
	[ -s "$dir/out" ] || fail "the journal of the $1 has no $*"
}

journals_tell() {
	journal_has server STARTED _SYSTEMD_UNIT=rtrs-server.service PRIORITY=6
	journal_has server EXPORT_ADDED EXPORT=disk1 SYSLOG_IDENTIFIER=rtrs-server
	journal_has gateway PATH_DOWN SYSLOG_IDENTIFIER=rtrs-nbd PRIORITY=4
}

# An upgrade of the server is a pause, and what was saved comes back.
server_restarts() {
	on server systemctl restart rtrs-server
	load_goes_on
	all_healthy
	on server rtrsctl list >"$dir/out"
	grep -q 'export  *disk1' "$dir/out" || fail "what was saved is gone: $(cat "$dir/out")"
}

# All comes up at boot.
machines_reboot() {
	shut_down gateway
	shut_down server
	boot server
	boot gateway
	units_run
	all_healthy
}

[ $# -ge 2 ] && [ $# -le 3 ] || usage
tarball=$1 dir=$2 guide=${3-$top/man/rtrs-guide.pod}
[ -f "$tarball" ] || { say "${0##*/}: $tarball: no such tarball; make dist makes one"; exit 2; }
needs_chroots
for tool in systemd-nspawn nbdsh ip; do
	command -v $tool >/dev/null || skip "${0##*/}: $tool is not installed"
done
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
"$top/tests/guide-commands.py" "$guide" walk >"$dir/walk"
rm -f "$dir/stop" "$dir/units" "$dir/limits" "$dir/back" "$dir"/old.* "$dir/fleet.log"
trap on_exit EXIT
trap 'exit 143' TERM INT HUP
for name in server gateway; do
	packages_of "${suites[$name]}"
	step "the same packages for an upgrade" next_of "${suites[$name]}"
	empty_machine $name
done
networks
(nspawn server true) </dev/null >"$dir/nspawn.log" 2>&1 ||
	skip "${0##*/}: no containers here: $(tail -n 1 "$dir/nspawn.log")"
boot server
boot gateway
walk
upgraded
units_run
all_healthy
reaches disk0 15000
reaches disk1 4000
reaches fast0 500
watched
cable_is_pulled
journals_tell
server_restarts
load_ends
machines_reboot
reaches disk0 16000
reaches disk1 4001
reaches fast0 501
goes_back
shut_down gateway
shut_down server
say "fleet: passed"
