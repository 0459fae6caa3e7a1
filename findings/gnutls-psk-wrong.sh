#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Guess: a client of TLS with a pre-shared key learns what is wrong: unknown_psk_identity for its name, decrypt_error for
# its key, as TLS 1.3 has it.  With GnuTLS 3.8.9 both are one alert: illegal_parameter in TLS 1.3, and bad_record_mac in
# TLS 1.2, which sound like a fault of the program or of the network.  The client of nbdkit 1.42.3 gets no alert, but an
# end of the stream: nbdkit closes without one.
. "$(dirname "$0")/common.sh"

cat >"$tmp/program" <<'END'
cd /tmp
psktool -u user -s 32 -p good >/dev/null
psktool -u user -s 32 -p key >/dev/null
sed 's/^user/nobody/' good >name
# connect FILE VERSION: the alert
connect() {
	local prio="NORMAL:-VERS-ALL:+VERS-$2:-KX-ALL:+ECDHE-PSK" pid
	gnutls-serv --echo -p 5599 --pskpasswd good --priority "$prio" >serve.log 2>&1 &
	pid=$!
	for i in $(seq 100); do grep -qi 'listening on' serve.log && break; sleep 0.1; done
	echo hello | timeout 60 gnutls-cli -p 5599 127.0.0.1 --priority "$prio" \
		--pskusername "$(sed 's/:.*//' "$1")" --pskkey "$(sed 's/.*://' "$1")" 2>&1 |
		sed -n 's/^- Handshake was completed/connected/p; s/.*Received alert \[[0-9]*\]: /alert /p'
	kill $pid
	wait $pid
}
for version in TLS1.3 TLS1.2; do
	for file in good name key; do
		echo "$version, $file: $(connect $file $version)"
	done
done
END
cat >"$tmp/of_nbd" <<'END'
cd /tmp
for file in good name key; do
	nbdkit -U - --tls=require --tls-psk=/tmp/good memory 1M --run 'nbdinfo --size \
		"nbds+unix://'"$(sed 's/:.*//' $file)"'@/?socket=$unixsocket&tls-psk-file=/tmp/'$file'"' 2>&1 |
		sed -n "/^nbdkit/!s/.*gnutls_handshake: \([^(]*\)\. (.*/\1/; /^nbdkit/!s/^/nbdkit, $file: /p"
done
END
packages trixie gnutls-bin=3.8.9-3+deb13u4 nbdkit=1.42.3-1 libnbd-bin=1.22.2-1+b1
cp "$tmp/program" "$tmp/of_nbd" "$tmp/trixie"
# A network of its own: the port is free, and nothing leaves it.
expect "GnuTLS" "$(unshare --net bash -c "ip link set lo up && chroot '$tmp/trixie' bash /program")" \
"TLS1.3, good: connected
TLS1.3, name: alert Illegal parameter
TLS1.3, key: alert Illegal parameter
TLS1.2, good: connected
TLS1.2, name: alert Bad record MAC
TLS1.2, key: alert Bad record MAC"
expect "libnbd" "$(chroot "$tmp/trixie" bash /of_nbd)" \
"nbdkit, good: 1048576
nbdkit, name: The TLS connection was non-properly terminated
nbdkit, key: The TLS connection was non-properly terminated"
