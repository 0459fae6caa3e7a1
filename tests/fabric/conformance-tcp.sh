#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The promises of fabric.h, kept by the tcp provider over IPv4, IPv6 and a socket in the file
# system, and over TLS.
set -e
# shellcheck disable=SC2086 # words
run() {
	${VALGRIND_TESTS-} ./fab-conformance tcp
}
run
dir=$(mktemp -d /tmp/fab-unix.XXXXXX)
trap 'rm -r "$dir"' EXIT
FABRIC_ADDRESS=unix:$dir/sock run
(umask 077 && ./rtrs-psk conformance >"$dir/keys")
FABRIC_TLS_PSK=$dir/keys run
FABRIC_TLS_PSK=$dir/keys FABRIC_ADDRESS=unix:$dir/sock run
if [ -s /proc/net/if_inet6 ]; then
	FABRIC_ADDRESS='[::1]' run
else
	echo "no IPv6 on this machine: not tested over it"
fi
