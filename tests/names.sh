# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Names of hosts that a test gives and changes, in a mount namespace of its own.  Sourced before
# functions.sh; behind that:
#
#	names_begin			or skips
#	names_are ADDR=NAME...		the resolver finds these addresses, and no others
#
# No name server is asked.

if [ -z "${NAMES_NAMESPACE-}" ]; then
	names_user=()
	[ "$(id -u)" -eq 0 ] || names_user=(--user --map-root-user)
	if unshare "${names_user[@]}" --mount true; then
		NAMES_NAMESPACE=yes exec unshare "${names_user[@]}" --mount bash "$0"
	fi
fi

names_begin() {
	[ -n "${NAMES_NAMESPACE-}" ] || skip "no mount namespaces here"
	printf 'hosts: files\n' >"$tmp/nsswitch.conf"
	: >"$tmp/hosts"
	mount --bind "$tmp/nsswitch.conf" /etc/nsswitch.conf &&
		mount --bind "$tmp/hosts" /etc/hosts ||
		skip "nothing can be mounted over /etc/hosts here"
}

names_are() {
	local name
	for name; do
		printf '%s %s\n' "${name%%=*}" "${name#*=}"
	done >"$tmp/hosts"
}
