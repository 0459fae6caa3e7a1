#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The promises of fabric.h, kept by the tcp provider over IPv4, IPv6 and a socket in the file
# system, and over TLS, by GnuTLS and by the kernel.
set -e
# shellcheck disable=SC2086 # words
run() {
	${VALGRIND_TESTS-} ./fab-conformance tcp
}
dir=$(mktemp -d /tmp/fab-unix.XXXXXX)
trap 'rm -r "$dir"' EXIT
# Each file of the suite is in the program.
all=$(cat "$(dirname "$0")"/cf-*.c | grep -c '^FAB_TEST')
{ run || true; } | tee "$dir/out"
grep -q -x "$all tests passed on tcp" "$dir/out"
FABRIC_ADDRESS=unix:$dir/sock run
(umask 077 && ./rtrs-psk conformance >"$dir/keys")
FABRIC_TLS_PSK=$dir/keys run
FABRIC_TLS_PSK=$dir/keys FABRIC_ADDRESS=unix:$dir/sock run
if grep -q -w tls /proc/sys/net/ipv4/tcp_available_ulp 2>/dev/null; then
	FABRIC_KTLS=1 FABRIC_TLS_PSK=$dir/keys run
else
	echo "NOT OVER kTLS: this kernel has no module tls, or has not loaded it" \
		"(tests/guest/test-ktls-fabric.sh has one)"
fi
if [ -s /proc/net/if_inet6 ]; then
	FABRIC_ADDRESS='[::1]' run
else
	echo "no IPv6 on this machine: not tested over it"
fi
