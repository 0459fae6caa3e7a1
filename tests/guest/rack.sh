# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Two guests and two cables, for a test that runs here ("# guest: host timeout=..."):
#
#	. ./tests/functions.sh
#	. "$top_srcdir/tests/guest/rack.sh"
#	rack_boot
#	rack_spawn A rping -s -a 10.1.0.1	the jobs of a guest run at the same time
#	rack_run B rping -c -a 10.1.0.1 -C 5	until it ends: its output, its status
#
# Guest A has 10.1.0.1 and fd00:1::1 at cable a, 10.2.0.1 and fd00:2::1 at cable b, B the same with
# 2 at the end; RDMA devices are rxe0 and rxe1.  Everything ends with the test, and an oops or a
# warning in a guest fails it.
#
# Nothing here gives up after some seconds: how long a guest takes depends on what else this machine
# does.  What waits does so while the guest is there, and the limit of the whole test (its line
# "guest:") ends it; the log says then what was waited for, and what the guests' consoles say.

# shellcheck source=tests/guest/qemu.sh
. "$top_srcdir/tests/guest/qemu.sh"
# shellcheck source=tests/guest/kernel-log.sh
. "$top_srcdir/tests/guest/kernel-log.sh"

# Short, because a unix socket's path is.
rack=$tmp/rack
declare -A rack_pid=()

# rack_boot [--kernel 7.3|6.12|6.1] [--smp N] [--mem SIZE]: both guests, until they take jobs.
rack_boot() {
	rack_kernel=6.12 rack_smp=2 rack_mem=1G
	while [ $# -gt 0 ]; do
		case $1 in
		--kernel) rack_kernel=$2 ;;
		--smp) rack_smp=$2 ;;
		--mem) rack_mem=$2 ;;
		*) fail "rack_boot: unknown option: $1" ;;
		esac
		shift 2
	done
	guest_prepare "$rack_kernel"
	cleanup_fn rack_end
	# B connects to A's cables, once: not before A is there to stay.
	rack_start A
	rack_booted A
	rack_start B
	rack_booted B
	rack_up A
	rack_up B
}

# rack_booted A|B: until its kernel is up; one that dies before is started again.
rack_booted() {
	rack_boots() {
		[ -e "$rack/$1/booted" ] || process_ended "${rack_pid[$1]}"
	}
	rack_until "guest $1" rack_boots "$1"
	guest_died_booting "$rack/$1" || return 0
	rack_start "$1"
}

# rack_start A|B: switch it on; rack_booted and then rack_up wait for it.  A guest B that was killed
# can be started again.  (A cable of QEMU has a listening end, A's, and one that connects once.)
rack_start() {
	local guest=$1 id=1 server=on dir=$rack/$1 options cable i=0

	[ "$guest" = A ] || id=2 server=off
	rm -rf "$dir"
	mkdir -p "$dir/jobs"
	mkfifo "$dir/monitor.in" "$dir/monitor.out"
	# shellcheck disable=SC2054 # QEMU's commas
	options=(-smp "$rack_smp" -m "$rack_mem" -chardev "pipe,id=monitor,path=$dir/monitor"
		-mon chardev=monitor,mode=control)
	for cable in a b; do
		i=$((i + 1))
		[ $server = on ] || rack_until "cable $cable" test -S "$rack/cable-$cable"
		options+=(-netdev \
			"stream,id=$cable,server=$server,addr.type=unix,addr.path=$rack/cable-$cable"
			-device "virtio-net-pci,netdev=$cable,mac=52:54:00:00:0$i:0$id,romfile=")
	done
	guest_start "$dir" "$id" 3600 "${options[@]}" -- "$guest_dir/agent.sh"
	rack_pid[$guest]=$guest_pid
	rack_monitor "$guest" '"qmp_capabilities"'
}

# rack_up A|B
rack_up() {
	rack_wait "$1" "$rack/$1/up"
}

rack_awaited=

# rack_until WHAT COMMAND...: poll until it succeeds.
rack_until() {
	{ local -; set +x; } 2>/dev/null
	rack_awaited=$1
	shift
	until "$@" >/dev/null 2>&1; do
		sleep 0.05
	done
	rack_awaited=
}

# rack_while A|B WHAT COMMAND...: poll until it succeeds, while the guest is there.
rack_while() {
	{ local -; set +x; } 2>/dev/null
	local guest=$1 what=$2

	shift 2
	rack_there_or() {
		"$@" || process_ended "${rack_pid[$guest]}"
	}
	rack_until "$what" rack_there_or "$@"
	# It may have come with the guest's last breath.
	"$@" >/dev/null 2>&1 ||
		{ rack_consoles; fail "guest $guest has ended without this: $what"; }
}

# rack_wait A|B FILE: until the file is there, while the guest is.
rack_wait() {
	rack_while "$1" "${2#"$rack"/}" test -e "$2"
}

# rack_line JOB REGEX: until a line of what it prints matches.
rack_line() {
	local guest=${1#"$rack"/}

	rack_while "${guest%%/*}" "a line '$2' of ${1#"$rack"/}" grep -q -E -- "$2" "$1.out"
}

rack_consoles() {
	local guest

	for guest in A B; do
		echo "---- guest $guest"
		tail -n 100 "$rack/$guest/console.log" "$rack/$guest/qemu.log" || true
	done
}

# rack_monitor A|B QMP-COMMAND [ARGUMENTS]: as JSON; until QEMU has done it.
rack_monitor() {
	{ local -; set +x; } 2>/dev/null
	local line in out

	exec {in}<>"$rack/$1/monitor.in" {out}<>"$rack/$1/monitor.out"
	printf '{"execute": %s, "arguments": %s}\n' "$2" "${3:-{\}}" >&$in
	rack_awaited="the monitor of guest $1: $2"
	# Events and the greeting come in between, and nothing at all from one that has ended.
	while IFS= read -r -t 1 line <&$out || { line=; ! process_ended "${rack_pid[$1]}"; }; do
		case $line in
		'{"return"'*) break ;;
		'{"error"'*) fail "monitor of guest $1: $2 $3: $line" ;;
		esac
	done
	rack_awaited=
	exec {in}>&- {out}>&-
	[ -n "$line" ] || fail "monitor of guest $1 does not answer $2"
}

# rack_link CABLE on|off [A|B]: plug or pull; at one end only, or both.
rack_link() {
	local guest guests=${3:-A B} up=true

	[ "$2" = on ] || up=false
	for guest in $guests; do
		rack_monitor "$guest" '"set_link"' "{\"name\": \"$1\", \"up\": $up}"
	done
}

# A guest that stands still, and goes on.
rack_freeze() {
	rack_monitor "$1" '"stop"'
}

rack_thaw() {
	rack_monitor "$1" '"cont"'
}

# A power cut.
rack_kill() {
	kill_process "${rack_pid[$1]}"
	unset "rack_pid[$1]"
}

# rack_capture A|B CABLE FILE: what passes the guest's end of the cable, as pcap, until the guest or
# rack_capture_end with the same guest and cable ends it.
rack_capture() {
	rack_monitor "$1" '"object-add"' \
		"{\"qom-type\": \"filter-dump\", \"id\": \"dump-$2\", \"netdev\": \"$2\", \"file\": \"$3\"}"
}

rack_capture_end() {
	rack_monitor "$1" '"object-del"' "{\"id\": \"dump-$2\"}"
}

# rack_spawn A|B COMMAND [ARG...]: start it, in the current directory.  Sets rack_job; what it
# prints stands in $rack_job.out, for wait_line, and its status in $rack_job.status when it has
# ended.
rack_spawn() {
	{ local -; set +x; } 2>/dev/null
	local guest=$1

	shift
	rack_job=$(mktemp -u "$rack/$guest/jobs/XXXXXX")
	# shellcheck disable=SC2016 # the guest's
	printf 'echo $$ >"$1.pid"\nexec %s\n' "$(printf '%q ' "$@")" >"$rack_job.new"
	mv "$rack_job.new" "$rack_job.sh"
}

# rack_run A|B COMMAND [ARG...]
rack_run() {
	local job

	rack_spawn "$@"
	job=$rack_job
	rack_wait "$1" "$job.status"
	cat "$job.out"
	return "$(cat "$job.status")"
}

# rack_signal JOB SIGNAL: to one that rack_spawn has started.
rack_signal() {
	local guest=${1#"$rack"/}

	guest=${guest%%/*}
	rack_wait "$guest" "$1.pid"
	rack_run "$guest" kill "-$2" "$(cat "$1.pid")"
}

# rack_expect JOB STATUS: wait for it.
rack_expect() {
	local guest=${1#"$rack"/}

	rack_wait "${guest%%/*}" "$1.status"
	[ "$(cat "$1.status")" -eq "$2" ] ||
		{ cat "$1.out"; fail "ended with $(cat "$1.status") instead of $2"; }
}

# Jobs that still run end with their guest.
rack_end() {
	local guest status=0 job

	if [ -n "$rack_awaited" ]; then
		echo "FAIL: was still waiting for this: $rack_awaited"
		rack_consoles
		for job in "$rack"/[AB]/jobs/*.out; do
			[ ! -s "$job" ] || { echo "---- ${job#"$rack"/}"; tail -n 20 "$job"; }
		done
		for guest in "${!rack_pid[@]}"; do
			rack_kill "$guest"
		done
		return 1
	fi
	for guest in "${!rack_pid[@]}"; do
		touch "$rack/$guest/end"
	done
	for guest in "${!rack_pid[@]}"; do
		rack_until "the end of guest $guest" process_ended "${rack_pid[$guest]}"
		expect_exit "${rack_pid[$guest]}" 0 || status=1
	done
	for guest in A B; do
		[ -f "$rack/$guest/dmesg.log" ] || continue
		! kernel_complains <"$rack/$guest/dmesg.log" ||
			{ fail "the kernel of guest $guest complained"; status=1; }
	done
	return $status
}
