#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The promises of fabric.h, kept by the tcp provider over IPv4 and IPv6.
set -e
# shellcheck disable=SC2086 # words
run() {
	${VALGRIND_TESTS-} ./fab-conformance tcp
}
run
if [ -s /proc/net/if_inet6 ]; then
	FABRIC_ADDRESS='[::1]' run
else
	echo "no IPv6 on this machine: only IPv4 was tested"
fi
