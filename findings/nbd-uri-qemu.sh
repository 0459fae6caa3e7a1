#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Guess: an NBD URI is one thing for all clients, and a client leaves alone a key of the query that it does not know.
# qemu-img 10.0.13 has no nbds://: TLS needs --image-opts and an object with the credentials there.  It refuses a URI
# with any key but socket= with "No valid URL specified".  So a URI that libnbd 1.22.2 takes, with tls-psk-file= for
# instance, may be none for QEMU.
. "$(dirname "$0")/common.sh"

packages trixie qemu-utils=1:10.0.13+ds-0+deb13u1 nbdkit=1.42.3-1 libnbd-bin=1.22.2-1+b1
root=$tmp/trixie
mkdir "$root/psk"
printf 'user:%s\n' "$(head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n')" >"$root/psk/keys.psk"

# with CLIENT SUFFIX [OPTION...]: of nbdkit; what CLIENT says of nbdkit's URI with SUFFIX, without the URI
with() {
	# shellcheck disable=SC2016 # nbdkit sets it
	chroot "$root" nbdkit -U - "${@:3}" memory 1M --run "$1"' "$uri'"$2"'" 2>&1' |
		sed -n "s/ '[^']*'//; s/^\(qemu-img: .*\)/\1/p; s/^file format: //p; /^[0-9]*$/p"
}
expect "plain, qemu-img" "$(with 'qemu-img info' '' | head -1)" raw
expect "another key, qemu-img" "$(with 'qemu-img info' '&key=value')" "qemu-img: Could not open: No valid URL specified"
expect "another key, nbdinfo" "$(with 'nbdinfo --size' '&key=value')" 1048576

# of_tls CLIENT: with a key
of_tls() {
	# shellcheck disable=SC2016 # nbdkit sets it
	chroot "$root" nbdkit -U - --tls=require --tls-psk=/psk/keys.psk memory 1M --run "$1"' \
		"nbds+unix://user@/?socket=$unixsocket&tls-psk-file=/psk/keys.psk" 2>&1' 2>/dev/null | sed "s/ '[^']*'//; /^nbdkit:/d"
}
expect "TLS, nbdinfo" "$(of_tls 'nbdinfo --size')" 1048576
expect "TLS, qemu-img" "$(of_tls 'qemu-img info')" "qemu-img: Could not open: Unknown protocol 'nbds+unix'"
