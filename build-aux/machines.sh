# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Two machines with two cables, for fleet.sh, after chroots.sh: containers of systemd-nspawn in
# network namespaces, each with a systemd of its own as process 1.
#
#	empty_machine NAME; networks; boot NAME; on NAME COMMAND...; shut_down NAME
#	end_machines			in any state
#
# The machines are "server", Debian 12, and "gateway", Debian 13.  Cable 1 is net1 with 192.0.2.10 and
# 192.0.2.20, cable 2 net2 with 198.51.100.10 and 198.51.100.20.

declare -A suites=([server]=bookworm [gateway]=trixie)
declare -A hosts=([server]=10 [gateway]=20)
declare -A nspawns one

fail() {
	say "FAIL: $*"
	exit 1
}

# wait_until WHAT SECONDS COMMAND...
wait_until() {
	local what=$1 deadline=$((SECONDS + $2))
	shift 2
	until "$@" >"$dir/waited" 2>&1; do
		[ $SECONDS -lt $deadline ] ||
			{ cat "$dir/waited" >&2; fail "waited in vain for $what: $*"; }
		sleep 0.1
	done
}

# root NAME: the file system of a machine that is not up.
root() {
	echo "$dir/$1"
}

# live NAME: the same of a machine that is up, with its /run.
live() {
	echo "/proc/${one[$1]}/root"
}

# empty_machine NAME: Debian with systemd and nothing of ours but the packages in /root and /root/next.  Where
# needrestart is installed it restarts services after each upgrade; on servers of Ubuntu it asks nobody.
empty_machine() {
	local root command packages='' word

	root=$(root "$1") suite=${suites[$1]}
	step "an empty machine, the $1" fresh "$suite" "$root" --include=systemd-sysv,iproute2,needrestart
	echo "\$nrconf{restart} = 'a';" >"$root/etc/needrestart/conf.d/auto.conf"
	echo "$1" >"$root/etc/hostname"
	cp -r "$dir/$suite"/*.deb "$dir/$suite/next" "$root/root"
	# An upgrade needs no archive that was not there.
	grep -P "^$1\t[^\t]*\t'apt-get install " "$dir/walk" | grep -v -F /next/ >"$dir/installs"
	while IFS=$'\t' read -r _ _ command <&3; do
		eval "command=$command"
		# What was installed before this command is there when it is typed.
		step "archives for: $command" inside "$root" \
			sh -c "cd /root && $command $packages --download-only"
		for word in ${command#apt-get install}; do
			case $word in -*) ;; *) packages+=" $word" ;; esac
		done
	done 3<"$dir/installs"
}

net() {
	echo "rtrs-fleet-$$-$1"
}

# Two cables between the machines; an address ends in the machine's number.
networks() {
	local name

	for name in server gateway; do
		ip netns add "$(net $name)" || skip "${0##*/}: no network namespaces here"
		ip -n "$(net $name)" link set lo up
	done
	for name in net1 net2; do
		ip link add $name netns "$(net server)" type veth peer name $name netns "$(net gateway)"
	done
	for name in server gateway; do
		ip -n "$(net $name)" addr add "192.0.2.${hosts[$name]}/24" dev net1
		ip -n "$(net $name)" addr add "198.51.100.${hosts[$name]}/24" dev net2
		ip -n "$(net $name)" link set net1 up
		ip -n "$(net $name)" link set net2 up
	done
}

# nspawn NAME WORD...: a container with the file system and the network of a machine.
nspawn() {
	SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1 exec systemd-nspawn --quiet --directory="$(root "$1")" \
		--register=no --keep-unit --machine="$1" --console=pipe \
		--network-namespace-path="/run/netns/$(net "$1")" "${@:2}"
}

# boot NAME: returns when systemd has started all that is enabled, and nothing failed.
boot() {
	nspawn "$1" --boot </dev/null >>"$dir/$1-console.log" 2>&1 &
	nspawns[$1]=$!
	unset "one[$1]"
	wait_until "process 1 of the $1" 60 has_one "$1"
	wait_until "the start of the $1" 120 started "$1"
}

# Another child of systemd-nspawn comes and goes before.
has_one() {
	one[$1]=$(pgrep -x -P "${nspawns[$1]}" systemd)
}

started() {
	[ -e "$(live "$1")/run/systemd/private" ] && on "$1" systemctl is-system-running
}

# on NAME COMMAND...: as root of the machine, at its terminal in /root.
on() {
	timeout 300 nsenter --target "${one[$1]}" --all --root --wd env -i --chdir=/root \
		PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
		DEBIAN_FRONTEND=noninteractive "${@:2}" </dev/null
}

# shut_down NAME: as its administrator does.
shut_down() {
	[ -n "${nspawns[$1]-}" ] || return 0
	kill -TERM "${nspawns[$1]}"
	wait_until "the end of the $1" 120 ended "${nspawns[$1]}"
	wait "${nspawns[$1]}" || fail "the $1 ended with status $?"
	unset "nspawns[$1]"
}

ended() {
	[ ! -d "/proc/$1" ] || grep -q -E '^State:[[:space:]]+[ZX]' "/proc/$1/status"
}

# journals: the end of each, of machines that are up.
journals() {
	local name

	for name in "${!nspawns[@]}"; do
		[ -n "${one[$name]-}" ] || continue
		say "---- the end of the journal of the $name"
		on "$name" journalctl --no-pager -n 40 >&2
	done
}

end_machines() {
	local name

	for name in "${!nspawns[@]}"; do
		# The machine does not end with its systemd-nspawn.
		pkill -KILL -P "${nspawns[$name]}"
		kill -KILL "${nspawns[$name]}" 2>/dev/null
		wait "${nspawns[$name]}" 2>/dev/null
	done
	for name in server gateway; do
		ip netns del "$(net $name)" 2>/dev/null
		rm -rf --one-file-system "$(root $name)"
	done
}
