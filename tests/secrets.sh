# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# What clients prove themselves with, and the rows about it; sourced after functions.sh.  $kind is
#
#	auth-psk		proofs in messages, with a key
#	tls-psk			TLS with a key
#	tls-certificates	TLS with certificates of the authority in $tmp/pki
#
#	people alice bob	each has a key, $tmp/NAME.psk, and certificates, $tmp/NAME
#	trusts alice		the server's files, $tmp/server.psk or $tmp/live, let her in alone
#	client_is alice		client: KEY=VALUE... by which rtrs-nbd is her; for rtrs-bench "--"
#				comes in front
. "$top_srcdir/tests/pki.sh"
requires_server; requires_plugin; requires_gateway

bench=$top_builddir/rtrs-bench
server_words=('cn = "disks"' 'ip_address = 127.0.0.1' 'ip_address = 127.0.0.2'
	'dns_name = "disks.test"' tls_www_server signing_key)
persons=()

# people NAME...: "carol/a" is a key more of carol, and no certificate
people() {
	local name
	authority "$tmp/pki"
	certificate "$tmp/pki" server "${server_words[@]}"
	live_files
	for name; do
		new_keys "$tmp/${name/\//-}.psk" "$name"
		case $name in */*) continue ;; esac
		client_files "$name"
		persons+=("$name")
	done
}
trusts() {
	local name revoked=() files=("${@/\//-}")
	if [ "$kind" = tls-certificates ]; then
		for name in "${persons[@]}"; do
			case " $* " in *" $name "*) ;; *) revoked+=("$name") ;; esac
		done
		revocations "$tmp/pki" "$tmp/live/ca-crl.pem" "crl_next_update = ${crl_days-100}" \
			"${revoked[@]}"
	else
		files=("${files[@]/#/$tmp/}")
		cat "${files[@]/%/.psk}" >"$tmp/server.psk.new"
		mv "$tmp/server.psk.new" "$tmp/server.psk"
	fi
}
client_is() {
	case $kind in
	auth-psk) client=(auth-psk="$tmp/$1.psk") ;;
	tls-psk) client=(tls=require tls-psk="$tmp/$1.psk") ;;
	tls-certificates) client=(tls=require tls-certificates="$tmp/$1") ;;
	esac
}

# ios N OPTION...: IO of rtrs-bench at the last server
ios() {
	timeout $((4 * TIMEOUT_S)) "$bench" --number-ios="$1" "${@:2}" "127.0.0.1:$server_port" disk
}
# not_in REGEX OPTION...: its line when it does not get in
not_in() {
	expect_failure 1 "$1" "$bench" --number-ios=1 "${@:2}" "127.0.0.1:$server_port" disk
}
