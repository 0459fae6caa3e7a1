#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Guess: with a pre-shared key of 256 bits TLS takes the same cipher as with certificates, AES-256-GCM.  With GnuTLS
# 3.7.9 and 3.8.9 a key goes with SHA-256 alone, and AES-256-GCM of TLS 1.3 with SHA-384.  So NORMAL takes its
# next choice, ChaCha20-Poly1305, also where the processor has instructions for AES, and a policy of AES-256-GCM
# alone fails with handshake_failure, which names neither key nor cipher.  AES-128-GCM has to be asked for.
. "$(dirname "$0")/common.sh"

cat >"$tmp/program" <<'END'
cd /tmp
tls13=-VERS-ALL:+VERS-TLS1.3
serve() {
	gnutls-serv --echo -p 5599 "$@" >serve.log 2>&1 &
	pid=$!
	for i in $(seq 100); do grep -qi 'listening on' serve.log && break; sleep 0.1; done
}
# the cipher, or the alert
connect() {
	echo hello | timeout 60 gnutls-cli -p 5599 127.0.0.1 "$@" 2>&1 |
		sed -n 's/^- Description: .*-(\(.*\))$/\1/p; s/^.*Received alert \[40\]: \(.*\)$/\1/p'
	kill $pid
	wait $pid
}
certtool --generate-privkey --outfile key.pem >/dev/null 2>&1
printf 'ip_address = 127.0.0.1\nsigning_key\ntls_www_server\n' >template
certtool --generate-self-signed --load-privkey key.pem --template template --outfile cert.pem >/dev/null 2>&1
psktool -u user -s 32 -p psk >/dev/null
serve --x509keyfile key.pem --x509certfile cert.pem --priority "NORMAL:$tls13"
connect --x509cafile cert.pem --priority "NORMAL:$tls13"
for how in "NORMAL:$tls13" "NORMAL:$tls13:-CIPHER-ALL:+AES-256-GCM" "NORMAL:$tls13:-CIPHER-ALL:+AES-128-GCM"; do
	serve --pskpasswd psk --priority "$how:-KX-ALL:+ECDHE-PSK"
	connect --pskusername user --pskkey "$(sed 's/^user://' psk)" --priority "$how:-KX-ALL:+ECDHE-PSK"
done
END
packages bookworm gnutls-bin=3.7.9-2+deb12u7
packages trixie gnutls-bin=3.8.9-3+deb13u4
for suite in bookworm trixie; do
	cp "$tmp/program" "$tmp/$suite/program"
	# A network of its own: the port is free, and nothing leaves it.
	expect "$suite: certificate; key; key and AES-256-GCM; key and AES-128-GCM" \
		"$(unshare --net bash -c "ip link set lo up && chroot '$tmp/$suite' bash /program" | paste -sd' ')" \
		"AES-256-GCM CHACHA20-POLY1305 Handshake failed AES-128-GCM"
done
