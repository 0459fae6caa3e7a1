#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A key that librados cannot read: the server names the keyring, and for an AES-256 key of a new
# Ceph the version of librbd and the one that is needed.  No Ceph runs.
. ./tests/functions.sh
requires_server
requires_plain_build
requires /usr/bin/python3 --version
"$RTRS_SERVER" x=rbd:none --check >"$tmp/out" 2>&1 || true
grep 'expected rbd:POOL' "$tmp/out" ||
	skip "rtrs-server was built without librbd-dev, or there is no librbd"

# key CIPHER BYTES: as Ceph writes it.
key() {
	/usr/bin/python3 -c 'import base64, struct, sys
cipher, n = map(int, sys.argv[1:])
print(base64.b64encode(struct.pack("<HIIH", cipher, 1, 2, n) + bytes(range(n))).decode())' "$@"
}
version=$(/usr/bin/python3 -c 'import ctypes
n = [ctypes.c_int() for _ in range(3)]
ctypes.CDLL("librbd.so.1").rbd_version(*map(ctypes.byref, n))
print("%d.%d" % (n[0].value, n[1].value))')

# refused WORDS: librados of Ceph 20.2 (librbd 1.20) reads an AES-256 key, leaves out a keyring with
# a broken one, and looks for a monitor in either case.
refused() {
	[ "${version#1.}" -lt 20 ] || set -- "is a monitor reachable from here"
	expect_failure 1 "export 'd': 'rbd:rbd/disk' cannot be opened: .*$1" "$RTRS_SERVER" \
		--strict --listen "unix:$tmp/sock" --control none \
			"d=rbd:rbd/disk,conf=$tmp/ceph.conf"
}

printf '%s\n' '[global]' 'mon host = [v2:127.0.0.1:1,v1:127.0.0.1:2]' \
	"keyring = $tmp/none.keyring,$tmp/keyring" 'client mount timeout = 1' >"$tmp/ceph.conf"
printf '[client.admin]\n\tkey = half\n' >"$tmp/keyring"
refused "librados cannot read the keyring '$tmp/keyring': is each key in it complete"
printf '[client.other]\n\tkey = %s\n[client.admin]\n\tkey = %s\n' "$(key 1 16)" "$(key 2 32)" \
	>"$tmp/keyring"
refused "the keyring '$tmp/keyring' has an AES-256 key \(\"Ag\.\.\.\"\), which librbd $version \
of this machine does not know: install librbd1 of Ceph 20\.2 or newer"
