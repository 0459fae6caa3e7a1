# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Sourced by each finding: a temporary directory $tmp, and packages in it.
set -eu -o pipefail

here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
tmp=$(mktemp -d)
# Programs in a chroot have no such directory.
unset TMPDIR
trap 'rm -rf --one-file-system "$tmp"' EXIT

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
