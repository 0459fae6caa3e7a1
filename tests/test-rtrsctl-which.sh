#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Which program a command is for: each has a name, and rtrsctl chooses by the name, the number of
# the process and the end; a wrong choice is told, and nothing is done then.
. ./tests/functions.sh
requires_server; requires_plugin; requires_gateway
requires nbdinfo --version

rtrsctl=$top_builddir/rtrsctl

# programs_are NAMES [OPTION...]: those of the programs that list finds.
programs_are() {
	local want=$1 names
	shift
	names=$("$rtrsctl" "$@" list |
		sed -n -E 's/^(rtrs-server|rtrs-nbd|nbdkit-rtrs-plugin) //p' | sort | tr '\n' ' ')
	[ "$names" = "$want" ] || fail "programs are '$names' instead of '$want'"
}

truncate -s 8M "$tmp/disk" "$tmp/other"
start_server "disk=$tmp/disk" "other=$tmp/other"
server1=$server_pid
# The name is the one of the start, whatever is exported later.
"$rtrsctl" export remove disk
"$rtrsctl" export add "disk=$tmp/disk"
"$rtrsctl" --name disk list
start_server --name "rack 7" --no-lock "disk=$tmp/disk,readonly"
server2=$server_pid
port=$(server_port "$tmp/server1.log")
start_nbdkit "127.0.0.1:$port" export=disk transport=tcp
nbdkit1=$nbdkit_pid
start_gateway "127.0.0.1:$port" name=gate transport=tcp
start_gateway "127.0.0.1:$port" sessname=vm transport=tcp
gateway2=$gateway_pid

programs_are "disk disk gate rack 7 vm "
programs_are "disk rack 7 " --server
programs_are "disk gate vm " --gateway
programs_are "disk disk " --name disk
programs_are "disk " --name disk --server
programs_are "rack 7 " --name "rack 7"
programs_are "vm " --pid "$gateway2"
programs_are "disk " --pid "$nbdkit1" --name disk
"$rtrsctl" --json list >"$tmp/list"
[ "$(grep -c '"program":"rtrs-nbd","name":"vm"' "$tmp/list")" -eq 1 ]

# A question to several, each under its name; and a command for one of them.
"$rtrsctl" --gateway status >"$tmp/status"
grep -x -E "(rtrs-nbd|nbdkit-rtrs-plugin) disk, process $nbdkit1" "$tmp/status"
grep -x -E "rtrs-nbd vm, process $gateway2" "$tmp/status"
"$rtrsctl" --name vm policy round-robin
[ "$("$rtrsctl" --name vm policy)" = "policy  round-robin" ]
[ "$("$rtrsctl" --name gate policy)" = "policy  min-inflight" ]
"$rtrsctl" --pid "$server2" log-level debug
[ "$("$rtrsctl" --name "rack 7" log-level)" = "log_level  debug" ]
[ "$("$rtrsctl" --pid "$server1" log-level)" = "log_level  info" ]
# Of both programs with this name one has the command.
[ "$("$rtrsctl" --name disk policy)" = "policy  min-inflight" ]

# A choice that is none.
status=0
"$rtrsctl" --gateway policy min-latency 2>"$tmp/several" || status=$?
[ $status -eq 2 ] || fail "status $status"
# Of the two programs called disk one has the command.
for name in disk gate vm; do
	grep -x "  rtrsctl --name=$name policy min-latency" "$tmp/several"
done
[ "$(grep -c '^  rtrsctl ' "$tmp/several")" -eq 3 ]
[ "$("$rtrsctl" --name gate policy)" = "policy  min-inflight" ]
# choice_is LINE WORD...: a line of the choice has all that was typed.
choice_is() {
	local line=$1 status=0
	shift
	"$rtrsctl" "$@" 2>"$tmp/several" || status=$?
	[ $status -eq 2 ] || fail "status $status"
	grep -x -F -e "  rtrsctl $line" "$tmp/several" || fail "$(cat "$tmp/several")"
}
choice_is "--name=disk export kick disk vm" export kick disk vm
choice_is "--name=disk explain disk psk:gw1" explain disk psk:gw1
choice_is "--name=disk export snapshot disk 'its '\\''name'\\'''" export snapshot disk "its 'name'"
choice_is "--name=disk --force export set disk iops=5 bps=1M" export set disk iops=5 --force bps=1M
# One program of each kind is called disk.
choice_is "--server --name=disk --force reload" --server reload --force
choice_is "--socket=$RUNTIME_DIRECTORY/server-$server2.sock --force reload" --server reload --force
expect_failure 1 \
	"^rtrsctl: --name 'dsk': no program that runs has this name \(did you mean disk\?\): see rtrsctl" \
	"$rtrsctl" --name dsk stats reset
expect_failure 1 \
	"^rtrsctl: --name 'gate': no rtrs-server that .* name: see rtrsctl list, and rtrsctl doctor " \
	"$rtrsctl" --name gate --server list
expect_failure 1 "^rtrsctl: --pid 1: this process is no program with a control socket: see" \
	"$rtrsctl" --pid 1 list
for pid in 0 x -1 4194305; do
	expect_failure 2 "^rtrsctl: --pid '$pid': expected a number from 1 to 4194304\$" \
		"$rtrsctl" --pid=$pid list
done
expect_failure 2 "^rtrsctl: --name '': expected the name of a program\$" "$rtrsctl" --name= list
expect_failure 2 "^rtrsctl: --server and --gateway: give one, or none for both kinds\$" \
	"$rtrsctl" --server --gateway list
expect_failure 2 "^rtrsctl: --socket names the program: --server, --gateway, --pid and --name are" \
	"$rtrsctl" --socket "$RUNTIME_DIRECTORY/server-$server1.sock" --name disk list
RUNTIME_DIRECTORY=$tmp/none expect_failure 1 \
	"^rtrsctl: no rtrs-server with a control socket in $tmp/none: is its unit running" \
	"$rtrsctl" --server list

# A gateway has the name of its file, as its unit has, whatever the name of its export.
printf 'server = 127.0.0.1:%s\nexport = disk\nmode = ro\n' "$port" >"$tmp/moved.conf"
start_gateway config="$tmp/moved.conf" transport=tcp
programs_are "moved " --name moved
programs_are "disk " --name disk --gateway

# A name is text.
for name in "" $'a\ab' $'\377' "$(printf %0256d 0)"; do
	expect_failure 2 "^rtrs-server: error: --name '.*': expected 1 to 255 bytes of UTF-8" \
		"$RTRS_SERVER" --name="$name" "disk=$tmp/disk"
	expect_nbdkit_failure "name=.*: expected 1 to 255 bytes of UTF-8 without control char" \
		"127.0.0.1:$port" name="$name"
done
