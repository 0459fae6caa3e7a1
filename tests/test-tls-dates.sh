#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# "rtrsctl check" tells of certificates that end soon, or have ended, at both ends: the one that
# ends first of the own pair, the authorities and the revocation list.  So does the log at the
# start and at a reload.
. ./tests/functions.sh
. "$top_srcdir/tests/pki.sh"
requires_server; requires_gateway

rtrsctl=$top_builddir/rtrsctl
server_words=('cn = "disks"' 'ip_address = 127.0.0.1' tls_www_server signing_key)
past=('activation_date = "2020-01-01 00:00:00"' 'expiration_date = "2020-03-01 00:00:00"')
# days N: lines of a template, for a certificate that ends in N days.
days() {
	echo "expiration_days = $1"
}
# day N: the date in N days.
day() {
	date --utc --date="@$(($(date +%s) + $1 * 86400))" +%F
}
# check_is STATUS REGEX [ARGUMENT...]
check_is() {
	local want=$1 regex=$2 status=0
	shift 2
	"$rtrsctl" check "$@" >"$tmp/check" 2>&1 || status=$?
	cat "$tmp/check"
	[ $status -eq "$want" ] || fail "status $status instead of $want"
	grep -q -E -- "$regex" "$tmp/check" || fail "does not match '$regex'"
}
# Not check_is, which ends the test while the path is not up yet.
path_up() {
	"$rtrsctl" check >"$tmp/check" 2>&1 && grep -q '^RTRS OK - ' "$tmp/check"
}
reload() {
	"$rtrsctl" --server reload >"$tmp/reload" || fail "no reload"
}

# The server's own: far, then near, then over; each by a reload.
authority "$tmp/pki"
certificate "$tmp/pki" server "${server_words[@]}" "$(days 100)"
random_file "$tmp/disk" $((1 << 20))
start_server --tls=require --tls-certificates="$tmp/pki" "disk=$tmp/disk"
check_is 0 '^RTRS OK - '
"$rtrsctl" --json --server show >"$tmp/show"
/usr/bin/python3 - "$tmp/show" "$tmp/pki" <<'END'
import json, sys, time
shown = json.load(open(sys.argv[1]))
assert shown["tls_certificates"] == sys.argv[2], shown
end = shown["tls_certificates_end"]
assert end["file"] == "server-cert.pem", end
assert abs(end["time"] - time.time() - 100 * 86400) < 3600, end
END
"$rtrsctl" --server show >"$tmp/show"
grep -qx '  tls_certificates_end' "$tmp/show"
grep -qx '    file  server-cert.pem' "$tmp/show"
grep -qx "    time  $(day 100)" "$tmp/show"
certificate "$tmp/pki" server "${server_words[@]}" "$(days 13)"
reload
check_is 1 "WARNING - .*: rtrs-server .*: tls-certificates: server-cert.pem ends on $(day 13)( |;)"
must_fail grep 'has ended on' "$server_log"
certificate "$tmp/pki" server "${server_words[@]}" "${past[@]}"
reload
check_is 2 'CRITICAL - .*: tls-certificates: server-cert.pem has ended on 2020-03-01, peers that verify'
wait_line "$server_log" 'server-cert.pem has ended on 2020-03-01: peers that verify it refuse new'
certificate "$tmp/pki" server "${server_words[@]}" "$(days 15)"
reload
check_is 0 '^RTRS OK - '

# One that is for later: an administrator was early, or a clock is wrong.
future=('activation_date = "2100-01-02 00:00:00"' 'expiration_date = "2100-03-01 00:00:00"')
certificate "$tmp/pki" server "${server_words[@]}" "${future[@]}"
reload
not_yet='server-cert.pem is not valid before 2100-01-02'
check_is 2 \
	"CRITICAL - .*: rtrs-server .*: tls-certificates: $not_yet, peers that verify it refuse new"
wait_line "$server_log" "$not_yet: peers that verify it refuse new"
"$rtrsctl" --server show >"$tmp/show"
grep -qx '  tls_certificates_begin' "$tmp/show"
certificate "$tmp/pki" server "${server_words[@]}" "$(days 15)"
reload
check_is 0 '^RTRS OK - '

# Of several authorities the last one counts: the next one stands beside the one of today.
authority "$tmp/next" "$(days 10)"
cat "$tmp/next/ca-cert.pem" >>"$tmp/pki/ca-cert.pem"
reload
check_is 0 '^RTRS OK - '
cp "$tmp/next/ca-cert.pem" "$tmp/pki/one.pem"
cp "$tmp/pki/ca-cert.pem" "$tmp/both.pem"
cp "$tmp/next/ca-cert.pem" "$tmp/pki/ca-cert.pem"
reload
check_is 1 "tls-certificates: ca-cert.pem ends on $(day 10)"
cp "$tmp/both.pem" "$tmp/pki/ca-cert.pem"

# A list of revocations without a successor keeps everybody out (RFC 5280, 6.3.3).
cp -r "$tmp/pki" "$tmp/signer"
certtool --outfile "$tmp/signer/ca-cert.pem" -i <"$tmp/both.pem" >>"$tmp/certtool.log" 2>&1
certificate "$tmp/signer" gw 'cn = "gw"' tls_www_client signing_key
revocations "$tmp/signer" "$tmp/pki/ca-crl.pem" 'crl_next_update = 3' gw
reload
check_is 1 "tls-certificates: ca-crl.pem ends on $(day 3)"
revocations "$tmp/signer" "$tmp/pki/ca-crl.pem" 'crl_next_update = 100' gw
reload
check_is 0 '^RTRS OK - '

# A client with a pair of its own.
cp -r "$tmp/signer" "$tmp/client"
certificate "$tmp/client" client 'cn = "gw"' tls_www_client signing_key "$(days 7)"
start_gateway "server=127.0.0.1:$server_port" export=disk tls=require \
	tls-certificates="$tmp/client"
check_is 1 "rtrs-nbd .*: tls-certificates: client-cert.pem ends on $(day 7)" --gateway
stop_process "$gateway_pid"

# The file of keys of either end and either kind: the next reload would fail.
"$top_builddir/rtrs-psk" gw >"$tmp/keys"
stop_process "$server_pid"
start_server --tls=on --tls-psk="$tmp/keys" --auth=psk --auth-psk="$tmp/keys" "disk=$tmp/disk"
cp "$tmp/keys" "$tmp/own-keys"
start_gateway "server=127.0.0.1:$server_port" export=disk tls=require tls-psk="$tmp/own-keys" \
	auth=require auth-psk="$tmp/own-keys"
wait_until "the path" path_up
chmod 640 "$tmp/own-keys"
for option in tls-psk auth-psk; do
	check_is 1 "rtrs-nbd .*: $option=$tmp/own-keys: expected mode 0600" --gateway
done
check_is 0 '^RTRS OK - ' --server
# A client in the background has left the directory of its start, in which a relative name is; links
# of this directory lead elsewhere later.
stop_process "$gateway_pid"
mkdir "$tmp/v1" "$tmp/v2"
cp "$tmp/keys" "$tmp/v1/own-keys"
cp "$tmp/keys" "$tmp/v2/own-keys"
chmod 640 "$tmp/v2/own-keys"
ln -s v1 "$tmp/live"
(cd "$tmp/live" && "$RTRS_NBD" -U "$tmp/away.sock" -P "$tmp/away.pid" \
	"server=127.0.0.1:$server_port" export=disk tls=require tls-psk=own-keys \
	auth-psk=../live/own-keys)
cleanup_fn stop_daemon "$(cat "$tmp/away.pid")"
wait_until "the path" path_up
ln -sfn v2 "$tmp/live"
check_is 1 "rtrs-nbd .*: tls-psk=$tmp/live/own-keys: expected mode 0600" --gateway
check_is 1 "rtrs-nbd .*: auth-psk=$tmp/live/\.\./live/own-keys: expected mode 0600" --gateway
stop_daemon "$(cat "$tmp/away.pid")"

# Those of rtrs-nbd for NBD clients: options of its command line.
cp "$tmp/keys" "$tmp/nbd-keys"
session=("server=127.0.0.1:$server_port" export=disk tls=require tls-psk="$tmp/keys")
start_gateway --tls=on --tls-psk="$tmp/nbd-keys" "${session[@]}"
wait_until "the path" path_up
"$rtrsctl" --gateway show >"$tmp/show"
grep -qx '  nbd' "$tmp/show"
grep -qx '    tls      on' "$tmp/show"
grep -qx "    tls_psk  $tmp/nbd-keys" "$tmp/show"
chmod 640 "$tmp/nbd-keys"
check_is 1 "WARNING - .*: rtrs-nbd .*: --tls-psk=$tmp/nbd-keys: expected mode 0600" --gateway
stop_process "$gateway_pid"
authority "$tmp/nbd"
certificate "$tmp/nbd" server "${server_words[@]}" "$(days 100)"
start_gateway --tls=require --tls-certificates="$tmp/nbd" "${session[@]}"
wait_until "the path" path_up
certificate "$tmp/nbd" server "${server_words[@]}" "$(days 5)"
"$rtrsctl" --gateway reload
check_is 1 "WARNING - .*: rtrs-nbd .*: --tls-certificates: server-cert.pem ends on $(day 5)( |;)" \
	--gateway
certificate "$tmp/nbd" server "${server_words[@]}" "${past[@]}"
"$rtrsctl" --gateway reload
check_is 2 'CRITICAL - .*: --tls-certificates: server-cert.pem has ended on 2020-03-01, peers that verify' \
	--gateway
stop_process "$gateway_pid"

echo nonsense >"$tmp/keys"
for option in tls-psk auth-psk; do
	check_is 1 "rtrs-server .*: $option=$tmp/keys: " --server
done
