#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The promises of fabric.h, kept by the tcp provider over IPv4 and IPv6.
set -e
timeout 240 ./fab-conformance tcp
if [ -s /proc/net/if_inet6 ]; then
	FABRIC_ADDRESS='[::1]' timeout 240 ./fab-conformance tcp
else
	echo "no IPv6 on this machine: only IPv4 was tested"
fi
