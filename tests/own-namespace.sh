# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# own-namespace.sh --net|--mount...: a test sources this file first of all, and runs in namespaces
# of its own then, which go with it.  Who is not root needs a user namespace for that.
# $IN_NAMESPACE is "yes", or "no" where there can be none.
if [ -z "${IN_NAMESPACE-}" ]; then
	export IN_NAMESPACE=yes
	own_namespaces=("$@")
	[ "$(id -u)" -eq 0 ] || own_namespaces+=(--map-root-user)
	case " $* " in *" --mount "*) own_namespaces+=(--propagation slave) ;; esac
	if unshare "${own_namespaces[@]}" true 2>/dev/null; then
		exec unshare "${own_namespaces[@]}" "$BASH" "$0"
	fi
	export IN_NAMESPACE=no
fi
