#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=6.12 timeout=300 full
# guest: kernel=6.1 timeout=300 full
# The fabric's promises over TLS in the kernel, and a peer with GnuTLS and all of its ends.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"

umask 077
./rtrs-psk conformance >"$tmp/keys"
modprobe -a tls gcm ctr ghash_generic chacha20poly1305
export FABRIC_KTLS=1
./test-tcp-tls
FABRIC_TLS_PSK=$tmp/keys ./fab-conformance tcp
