# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Sourced by each finding: a temporary directory $tmp, and packages in it.
set -eu -o pipefail

here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
tmp=$(mktemp -d)
# Programs in a chroot have no such directory.
unset TMPDIR
undo=()
trap finish EXIT

# Commands of $undo, the last one first, and then the directory goes.
finish() {
	local i
	for ((i = ${#undo[@]} - 1; i >= 0; i--)); do
		eval "${undo[i]}" || true
	done
	rm -rf --one-file-system "$tmp"
}

say() {
	printf '%s\n' "$*"
}

skip() {
	say "skipped: $*"
	exit 77
}

# expect WHAT SEEN WANTED
expect() {
	say "$1: $2"
	[ "$2" = "$3" ] || { say "changed: expected '$3'"; exit 1; }
}

# filesystem KIND: a new one, mounted at $tmp/KIND until the end
filesystem() {
	[ "$(id -u)" -eq 0 ] || skip "a mount needs root"
	mkdir "$tmp/$1"
	if [ "$1" = tmpfs ]; then
		mount -t tmpfs -o size=64m tmpfs "$tmp/tmpfs" || skip "no tmpfs here"
	else
		command -v "mkfs.$1" >/dev/null || skip "mkfs.$1 is not installed"
		truncate -s 400M "$tmp/$1.image"
		"mkfs.$1" -q "$tmp/$1.image" >/dev/null
		mount -o loop "$tmp/$1.image" "$tmp/$1" || skip "no $1 here"
	fi
	undo+=("umount '$tmp/$1'")
}

# loop_of FILE [OPTION...]: $loop is a loop device of it until the end
loop_of() {
	[ "$(id -u)" -eq 0 ] || skip "a loop device needs root"
	loop=$(losetup -f --show "${@:2}" "$1") || skip "no loop device here"
	undo+=("losetup -d '$loop'")
}

# packages SUITE NAME=VERSION...: installed in $tmp/SUITE, beside Debian's smallest system, for chroot(1).
packages() {
	local suite=$1 names=("${@:2}") pin got
	names=("${names[@]%%=*}")

	command -v mmdebstrap >/dev/null || skip "mmdebstrap is not installed"
	[ "$(id -u)" -eq 0 ] || skip "chroots need root"
	# Its mounts are in a namespace of its own: a run that is killed leaves none.
	unshare --mount mmdebstrap --quiet --variant=minbase --dpkgopt=force-unsafe-io \
		--include="$(IFS=,; echo "${names[*]}")" "$suite" "$tmp/$suite" >"$tmp/mmdebstrap.log" 2>&1 ||
		{ cat "$tmp/mmdebstrap.log"; skip "$suite cannot be had"; }
	for pin in "${@:2}"; do
		got=$(dpkg-query --admindir="$tmp/$suite/var/lib/dpkg" -W -f '${Version}' "${pin%%=*}" )
		[ "$got" = "${pin#*=}" ] || skip "$suite has ${pin%%=*} $got instead of ${pin#*=}"
		say "$suite: ${pin%%=*} $got"
	done
}
