# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Certificates for tests, sourced behind functions.sh: an authority in a directory, as
# tls-certificates= has it, and what this authority signs.  $tmp/certtool.log has certtool's words.
requires certtool --version
umask 077

# authority DIR [LINE...]: a new one, with more lines of certtool's template.
authority() {
	local dir=$1
	shift
	mkdir "$dir"
	printf '%s\n' 'cn = "test"' ca cert_signing_key "$@" >"$dir/ca.cfg"
	{
		certtool --generate-privkey --key-type=ecdsa --outfile "$dir/ca-key.pem"
		certtool --generate-self-signed --load-privkey "$dir/ca-key.pem" \
			--template "$dir/ca.cfg" --outfile "$dir/ca-cert.pem"
	} >>"$tmp/certtool.log" 2>&1
}

# certificate DIR NAME LINE...: NAME-cert.pem and NAME-key.pem of the authority in DIR.
certificate() {
	local dir=$1 name=$2
	shift 2
	printf '%s\n' "$@" >"$dir/$name.cfg"
	{
		certtool --generate-privkey --key-type=ecdsa --outfile "$dir/$name-key.pem"
		certtool --generate-certificate --load-privkey "$dir/$name-key.pem" \
			--load-ca-certificate "$dir/ca-cert.pem" \
			--load-ca-privkey "$dir/ca-key.pem" --template "$dir/$name.cfg" \
			--outfile "$dir/$name-cert.pem"
	} >>"$tmp/certtool.log" 2>&1
}

# revocations DIR OUT LINE NAME...: the list OUT of the authority in DIR with these certificates,
# and with LINE of certtool's template.
revocations() {
	local dir=$1 out=$2 name revoked=()
	printf '%s\n' "$3" >"$tmp/crl.cfg"
	shift 3
	for name; do
		cat "$dir/$name-cert.pem"
		revoked=(--load-certificate "$tmp/revoked.pem")
	done >"$tmp/revoked.pem"
	certtool --generate-crl --load-ca-privkey "$dir/ca-key.pem" \
		--load-ca-certificate "$dir/ca-cert.pem" "${revoked[@]}" \
		--template "$tmp/crl.cfg" --outfile "$out" 2>>"$tmp/certtool.log"
}

# client_files NAME...: certificates of clients by the authority in $tmp/pki, and $tmp/NAME with
# what the client has.
client_files() {
	local name
	for name; do
		certificate "$tmp/pki" "$name" "cn = \"$name\"" tls_www_client signing_key
		mkdir "$tmp/$name"
		cp "$tmp/pki/ca-cert.pem" "$tmp/$name/"
		cp "$tmp/pki/$name-cert.pem" "$tmp/$name/client-cert.pem"
		cp "$tmp/pki/$name-key.pem" "$tmp/$name/client-key.pem"
	done
}
# live_files: $tmp/live with what the server of $tmp/pki has, without a list of revocations.
live_files() {
	mkdir -p "$tmp/live"
	rm -f "$tmp/live/ca-crl.pem"
	cp "$tmp"/pki/server-*.pem "$tmp/pki/ca-cert.pem" "$tmp/live/"
}
