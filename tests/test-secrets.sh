#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Who gets in, as rows: a program, the kind of its secret, what is wrong with it, and the line of
# either end.  What a reload changes: test-secrets-reload.sh; NBD clients: test-nbd-tls.sh.
. ./tests/functions.sh
. "$top_srcdir/tests/secrets.sh"
requires nbdcopy --version
requires curl --version

people alice bob alice/new
kind="tls-psk"
trusts alice bob alice/new
new_keys "$tmp/carol.psk" carol
new_keys "$tmp/wrong.psk" alice
printf 'dora:%064d\n' 0 >"$tmp/zero.psk"
random_file "$tmp/disk" $((8 << 20))
psk=$tmp/server.psk
auth=(--auth=require --auth-psk="$psk") tls=(--tls=require --tls-psk="$psk")
# serve OPTION...: on a port, and at unix:$tmp/a.sock
serve() {
	[ ! -e "$tmp/a.sock" ] || stop_process "$server_pid"
	start_server --listen tcp://127.0.0.1:0 --listen "unix:$tmp/a.sock" --log-level=debug \
		--metrics "unix:$tmp/metrics" --control "$tmp/control" "$@"
}
by_certificate() {
	serve --tls=require --tls-certificates="$tmp/$1" "${@:2}"
}
of_kind() {
	case $kind in
	auth-psk) serve "${auth[@]}" "$@" ;;
	tls-psk) serve "${tls[@]}" "$@" ;;
	tls-certificates) by_certificate live --tls-verify-peer "$@" ;;
	esac
}

# ---- IO over both transports: the plugin is alice, rtrs-nbd is bob ----

peer='127\.0\.0\.1:[0-9]+' user='unix:pid=[0-9]+,uid=[0-9]+'
copies() {
	cmp "$tmp/disk" <(timeout "$TIMEOUT_S" nbdcopy "$uri" -)
}
for kind in auth-psk tls-psk tls-certificates; do
	of_kind "disk=$tmp/disk"
	lines=() host=() bob=()
	case $kind in
	auth-psk)
		bob=(auth=psk auth-psk="$psk" auth-username=bob)
		lines=("$peer: authenticated by the key alice"
			"$user: authenticated by the key bob") ;;
	tls-psk)
		bob=(tls=on tls-psk="$psk" tls-username=bob)
		lines=("tcp $peer: TLS 1\.3, AES-128-GCM, key of alice"
			"tcp $peer: TLS 1\.3, AES-128-GCM, key of bob"
			"tcp $user: TLS 1\.3, AES-128-GCM, key of bob") ;;
	tls-certificates) host=(tls-hostname=disks.test) ;;
	esac
	for server in "127.0.0.1:$server_port" "unix:$tmp/a.sock"; do
		client_is alice
		start_nbdkit "server=$server" export=disk control=none "${client[@]}" "${host[@]}"
		copies
		stop_process "$nbdkit_pid"
		client_is bob
		[ ${#bob[@]} -eq 0 ] || client=("${bob[@]}")
		start_gateway "server=$server" export=disk control=none "${client[@]}" "${host[@]}"
		copies
		stop_process "$gateway_pid"
	done
	for line in "${lines[@]}"; do
		wait_line "$server_log" "$line$"
	done
	[ "$kind" != tls-certificates ] || continue
	client_is alice
	ios 20000 --rw=randrw --verify --iodepth=32 --bs=64K --connections=5 "${client[@]/#/--}"
done

# ---- the wrong pair of ends: one line here, one there ----

of_auth='connection refused: authentication: '
of_tls="warning: tcp $peer: closed during the handshake: "
# refused CLIENT'S-LINE SERVER'S-LINE OPTION...: and no session is opened
refused() {
	local before
	before=$(wc -l <"$server_log")
	not_in "$1" "${@:3}"
	wait_until "the server's line" told "$before" "$2"
	must_fail told "$before" 'rtrs-bench-.*: session opened'
}
# told LINES REGEX: the log says it after its first LINES
told() {
	tail -n +$(($1 + 1)) "$server_log" | grep -q -E "$2"
}
# refused_again CLIENT'S-LINE SERVER'S-LINE OPTION...: the server has just written its line
refused_again() {
	local before
	before=$(grep -c -E "$2" "$server_log")
	not_in "$1" "${@:3}"
	[ "$(grep -c -E "$2" "$server_log")" -eq "$before" ] || fail "the same line twice"
}

kind="auth-psk"
of_kind "disk=$tmp/disk"
refused 'authentication as alice: the server has refused the key' \
	"${of_auth}wrong key, .*, claiming to be alice" --auth-psk="$tmp/wrong.psk"
refused 'authentication as carol: the server has refused the key' \
	"${of_auth}no key has this name, claiming to be carol" --auth-psk="$tmp/carol.psk"
refused_again 'the same for an unknown name and for a wrong key: "rtrsctl explain" at the' \
	'no key has this name, claiming to be carol' --auth-psk="$tmp/carol.psk"
demands='connection 0 was refused: the server requires authentication .auth-psk=FILE'
refused "$demands" 'connection refused: it does not authenticate, which --auth=require needs'
refused_again "$demands" 'connection refused: it does not authenticate' --auth=none \
	--auth-psk="$tmp/alice.psk"
counted() {
	curl --silent --fail --max-time "$TIMEOUT_S" --unix-socket "$tmp/metrics" \
		http://localhost/metrics |
		sed -n "s/^rtrs_server_refused_total{reason=\"$1\"} //p"
}
[ "$(counted auth)" -eq 5 ]
[ "$(counted identity)" -eq 0 ]
# The server that proves itself says which one it is, and the client may insist.
server_name=$(hostname)
ios 1 --auth-psk="$tmp/alice.psk" --auth-hostname="elsewhere,$server_name"
others="x$server_name,$server_name.x"
not_in "the server has proven to be $server_name, expected auth-hostname=$others" \
	--auth-psk="$tmp/alice.psk" --auth-hostname="$others"
start_gateway "server=127.0.0.1:$server_port" export=disk control="$tmp/gw.sock" mode=ro \
	auth-psk="$tmp/alice.psk" auth-hostname="$server_name"
# The gateway is ready before its path is up.
shows_name() {
	"$top_builddir/rtrsctl" --socket "$tmp/gw.sock" show |
		grep -x -E " +server_name +$server_name"
}
wait_until "the server's name" shows_name
stop_process "$gateway_pid"

kind="tls-psk"
of_kind "disk=$tmp/disk"
refused 'TLS: the peer refused the key of alice: ' "${of_tls}TLS: wrong key of 'alice'" \
	--tls-psk="$tmp/wrong.psk"
refused 'TLS: the peer refused the key of carol: ' "${of_tls}TLS: no key has the name 'carol'" \
	--tls-psk="$tmp/carol.psk"
# The key of a name that is not known is no key that somebody knows.
refused 'TLS: the peer refused the key of dora: ' "${of_tls}TLS: no key has the name 'dora'" \
	--tls-psk="$tmp/zero.psk"
refused 'the server requires TLS: expected tls=require and tls-psk=FILE' \
	"${of_tls}the peer does not speak TLS, which is required here"
refused_again 'the server requires TLS' 'the peer does not speak TLS' --tls=off \
	--tls-psk="$tmp/alice.psk"
# The alert of a wrong key is that of an unknown name: a stranger does not learn names.
alert() {
	{ ios 1 --tls-psk="$1" 2>&1 || true; } | sed -n 's/.*key of [a-z]*: //p'
}
[ -n "$(alert "$tmp/wrong.psk")" ]
[ "$(alert "$tmp/wrong.psk")" = "$(alert "$tmp/carol.psk")" ]

# The server proves itself, by its address or a name, ...
mkdir "$tmp/stranger"
cp "$tmp/pki/ca-cert.pem" "$tmp/stranger/"
authority "$tmp/other"
certificate "$tmp/other" client 'cn = "alice"' tls_www_client signing_key
cp -r "$tmp/other" "$tmp/mixed"
cp "$tmp/pki/ca-cert.pem" "$tmp/mixed/"
authority "$tmp/named" 'ou = "another"'
certificate "$tmp/named" client 'cn = "alice"' tls_www_client signing_key
cp "$tmp/pki/ca-cert.pem" "$tmp/named/"
# as DIR [OPTION...]: the options of who has this directory
as() {
	as=(--tls=require --tls-certificates="$tmp/$1" "${@:2}")
}
by_certificate live "disk=$tmp/disk"
as stranger
ios 10 "${as[@]}"
ios 10 "${as[@]}" --tls-hostname=disks.test
not_in "server's certificate is for disks.test.*, and not for 'elsewhere.test': .*tls-hostname=" \
	"${as[@]}" --tls-hostname=elsewhere.test
as other
not_in "TLS: the server's certificate is refused: its issuer is not in ca-cert.pem of this end" \
	"${as[@]}"
ios 10 "${as[@]}" --tls-verify-peer=false
# ... and the client, if asked.
kind="tls-certificates"
of_kind "disk=$tmp/disk"
as alice
ios 10 "${as[@]}"
as stranger
refused 'Certificate is required: expected client-cert.pem and client-key.pem in tls-cert' \
	"${of_tls}TLS: the client sends no certificate: expected client-cert.pem and client-key" \
	"${as[@]}"
# The authority that the server does not know may have the name of one that it knows, or not.
as mixed
refused 'it refuses the certificate of this end, and its log has the reason' \
	"handshake: TLS: the client.s certificate is refused: its issuer is not in" "${as[@]}"
as named
refused_again 'it refuses the certificate of this end, and its log has the reason' \
	"handshake: TLS: the client.s certificate is refused: its issuer is not in" "${as[@]}"
# A certificate is for one end, unless it has no purpose.
for name in swapped both; do
	cp -r "$tmp/pki" "$tmp/$name-server"
	cp -r "$tmp/pki" "$tmp/$name-client"
done
certificate "$tmp/swapped-server" server 'cn = "gw"' 'ip_address = 127.0.0.1' tls_www_client \
	signing_key
certificate "$tmp/swapped-client" client 'cn = "gw"' tls_www_server signing_key
certificate "$tmp/both-server" server 'cn = "any"' 'ip_address = 127.0.0.1' signing_key
certificate "$tmp/both-client" client 'cn = "any"' signing_key
by_certificate swapped-server "disk=$tmp/disk"
as stranger
not_in "TLS: the server's certificate is refused: it is not for a server" "${as[@]}"
by_certificate both-server --tls-verify-peer "disk=$tmp/disk"
as swapped-client
refused 'it refuses the certificate of this end' \
	'TLS: the client.s certificate is refused: it is not for a client' "${as[@]}"
as both-client
ios 10 "${as[@]}"

# ---- servers that leave the choice to their clients, or ask nobody ----

# A client that requires TLS ends, another one goes on and says so.
serve "disk=$tmp/disk"
refused 'the server has no TLS \(tls=off there\), which is required here' \
	"${of_tls}the peer wants TLS, which is off here" --tls=require --tls-psk="$tmp/alice.psk"
ios 10 --tls=on --tls-psk="$tmp/alice.psk" 2>"$tmp/plain.err"
grep -q -F 'the server has no TLS: continuing without (tls=require refuses this)' "$tmp/plain.err"
serve --tls=on --tls-psk="$psk" "disk=$tmp/disk"
ios 10
must_fail grep -q 'TLS 1.3' "$server_log"
ios 10 --tls-psk="$tmp/alice.psk"
grep -q 'TLS 1.3, AES-128-GCM, key of alice' "$server_log"
serve --auth=psk --auth-psk="$psk" "disk=$tmp/disk"
ios 10
ios 10 --auth-psk="$tmp/alice.psk"
refused 'the server has refused the key' "${of_auth}wrong key" --auth-psk="$tmp/wrong.psk"
serve --auth=none --auth-psk="$psk" "disk=$tmp/disk"
not_in 'the server does not authenticate, which auth=require needs' --auth-psk="$tmp/alice.psk"
ios 10 --auth=psk --auth-psk="$tmp/alice.psk"
# Each listener by itself.
serve --listen "unix:$tmp/b.sock,auth=none" --listen "unix:$tmp/c.sock,auth=psk" "${auth[@]}" \
	"disk=$tmp/disk"
b=("unix:$tmp/b.sock" disk) c=("unix:$tmp/c.sock" disk)
refused "$demands" 'it does not authenticate, which --auth=require needs'
timeout "$TIMEOUT_S" "$bench" --number-ios=1 "${b[@]}"
timeout "$TIMEOUT_S" "$bench" --number-ios=1 "${c[@]}"
timeout "$TIMEOUT_S" "$bench" --number-ios=1 --auth-psk="$tmp/alice.psk" "${c[@]}"
expect_failure 1 'the server does not authenticate' "$bench" --auth-psk="$tmp/alice.psk" "${b[@]}"
expect_failure 1 'the server has refused the key' "$bench" --auth-psk="$tmp/wrong.psk" "${c[@]}"

# ---- a proof in messages beside TLS ----

serve "${tls[@]}" "${auth[@]}" "disk=$tmp/disk"
of_alice=(--tls=require --tls-psk="$tmp/alice.psk")
ios 10 "${of_alice[@]}" --auth-psk="$tmp/alice.psk"
grep -q 'authenticated by the key alice' "$server_log"
# A label makes no other name, and the key of TLS alone is a proof, too.
ios 10 "${of_alice[@]}" --auth-psk="$tmp/alice-new.psk"
ios 10 "${of_alice[@]}"
refused 'the key of tls-psk= is of another identity than the key of auth-psk=' \
	'its TLS key belongs to psk:alice, but the client is psk:bob' "${of_alice[@]}" \
	--auth-psk="$tmp/bob.psk"

# ---- the name has rights, and rtrsctl reports the name ----

explains() {
	"$top_builddir/rtrsctl" --socket "$tmp/control" explain "$@" >"$tmp/said"
}
kind="auth-psk"
of_kind "disk=$tmp/disk,allow=psk:alice"
start_nbdkit "server=127.0.0.1:$server_port" export=disk control=none sessname=mine \
	auth-psk="$tmp/alice.psk"
shows_client() {
	"$top_builddir/rtrsctl" --socket "$tmp/control" clients |
		grep -E '^mine +127\.0\.0\.1 +psk:alice +tcp '
}
wait_until "the client" shows_client
not_in 'the server has no such export' --auth-psk="$tmp/bob.psk"
stop_process "$nbdkit_pid"

for name in spaces comma colon; do
	cp -r "$tmp/pki" "$tmp/$name"
done
certificate "$tmp/spaces" client 'cn = "alice two"' tls_www_client signing_key
certificate "$tmp/comma" client 'cn = "alice,other"' tls_www_client signing_key
certificate "$tmp/colon" client 'cn = "psk:alice"' tls_www_client signing_key
kind="tls-certificates"
of_kind "disk=$tmp/disk,allow=cert:alice" 'other=mem:1M,allow=cert:other,psk:alice'
as alice
ios 10 "${as[@]}"
explains disk cert:alice@127.0.0.1
grep -E "^passes +key +--tls-certificates=$tmp/live: a certificate is judged when it comes" \
	"$tmp/said"
grep -E '^passes +rights +allow = cert:alice names cert:alice$' "$tmp/said"
must_fail explains other cert:alice@127.0.0.1
grep -E '^refuses +rights +allow = cert:other, psk:alice; .*: no rule names cert:alice or' \
	"$tmp/said"
expect_failure 1 'other' "$bench" --number-ios=1 "${as[@]}" "127.0.0.1:$server_port" other
wait_line "$server_log" \
	'open of other as .* refused: .*its allow does not contain 127\.0\.0\.1, cert:alice$'
for name in spaces comma colon; do
	as $name
	not_in 'no such export' "${as[@]}"
done
must_fail grep -E 'cert:(alice.|psk)' "$server_log"
# A certificate that nobody verifies gives no name.
by_certificate live "disk=$tmp/disk,allow=cert:alice"
as alice
not_in 'no such export' "${as[@]}"
must_fail explains disk cert:alice@127.0.0.1
grep -E '^refuses +listener .*no certificate of a client is verified there' "$tmp/said"

# ---- a server that comes back under load, with TLS ----

kind="tls-psk"
of_kind "disk=$tmp/disk"
start_nbdkit "server=127.0.0.1:$server_port" export=disk control=none \
	tls=require tls-psk="$tmp/alice.psk"
port=$server_port
timeout "$TIMEOUT_S" nbdcopy "$uri" "$tmp/copy" &
copy=$!
kill_process "$server_pid"
start_server --listen "tcp://127.0.0.1:$port" "${tls[@]}" --control none "disk=$tmp/disk"
wait "$copy"
cmp "$tmp/disk" "$tmp/copy"
stop_process "$nbdkit_pid"
stop_process "$server_pid"

# ---- files, and options that do not go together: PROGRAM STATUS TEXT OPTION... ----

bad() {
	local program=("$bench") behind=()
	case $1 in
	rtrs-server)
		program=("$RTRS_SERVER" --listen tcp://127.0.0.1:0 --control none)
		behind=("disk=$tmp/disk") ;;
	rtrs-nbd)
		program=("$RTRS_NBD" -f -U "$tmp/bad.sock")
		behind=(server=127.0.0.1:1 export=disk) ;;
	rtrs-psk) program=("$top_builddir/rtrs-psk") ;;
	rtrs-bench) ;;
	nbdkit) expect_nbdkit_failure "$3" "${@:4}"; return ;;
	esac
	expect_failure "$2" "$3" "${program[@]}" "${@:4}" "${behind[@]}"
}
# Each kind of file: unit/test-psk.c.
chmod 640 "$tmp/alice.psk"
for kind in auth-psk tls-psk; do
	wrong="$kind=$tmp/alice.psk: expected mode 0600, not 0640"
	bad rtrs-server 2 "--$wrong" --$kind="$tmp/alice.psk"
	bad rtrs-bench 2 "$wrong" --$kind="$tmp/alice.psk" 127.0.0.1:1 disk
	bad nbdkit 1 "$wrong" server=127.0.0.1:1 $kind="$tmp/alice.psk"
done
bad rtrs-nbd 2 "^rtrs-nbd: --$wrong" --tls-psk="$tmp/alice.psk"
chmod 400 "$tmp/alice.psk"
for program in rtrs-server rtrs-nbd; do
	bad $program 2 '--tls=require: expected tls-psk=FILE or tls-certificates=DIR' --tls=require
	bad $program 2 "--tls-psk=.* expected one of them" --tls-psk="$tmp/alice.psk" \
		--tls-certificates="$tmp"
	bad $program 2 'expected off, on or require' --tls=yes
	# Whoever wants peers verified does not serve everybody in clear.
	bad $program 2 '--tls-verify-peer: expected tls-certificates=DIR' --tls-verify-peer
	bad $program 2 "--tls-psk=$tmp/none: " --tls-psk="$tmp/none"
	bad $program 2 'ca-cert.pem: ' --tls-certificates="$tmp"
done
tcp=tcp://127.0.0.1:0
bad rtrs-server 2 '--auth=psk: expected auth-psk=FILE beside it' --auth=psk
bad rtrs-server 2 "--listen=tcp://127.0.0.2:0,auth=require: expected --auth-psk=FILE beside it" \
	--listen tcp://127.0.0.2:0,auth=require
bad rtrs-server 2 'expected auth=none, auth=psk or auth=require' --listen $tcp,auth=yes
bad rtrs-server 2 'expected none, psk or require' --auth=on
for kind in auth tls; do
	bad rtrs-bench 2 "has 3 keys: expected $kind-username=NAME" --$kind-psk="$psk" \
		127.0.0.1:1 disk
	bad rtrs-bench 2 'no key in .* has this name' --$kind-psk="$psk" --$kind-username=eve \
		127.0.0.1:1 disk
done
bad rtrs-bench 2 'auth-username=eve: expected auth-psk=FILE' --auth-username=eve 127.0.0.1:1 disk
bad rtrs-bench "1|2" \
	"auth-hostname=$server_name: expected auth-psk=FILE beside it, and auth=require" --auth=psk --auth-psk="$tmp/alice.psk" --auth-hostname="$server_name" 127.0.0.1:1 disk
# Two files that have changed their names.
cp -r "$tmp/alice" "$tmp/crossed"
cp "$tmp/alice/client-key.pem" "$tmp/crossed/client-cert.pem"
cp "$tmp/alice/client-cert.pem" "$tmp/crossed/client-key.pem"
as crossed
bad rtrs-bench 2 'client-key.pem: expected a certificate in the first file, and its key in the' \
	"${as[@]}" 127.0.0.1:1 disk
# RDMA has no TLS, and is not used instead.
# Keys alone mean that nobody gets in without a proof; over RDMA that is a proof in messages.
no_tls='there is no TLS over RDMA: expected (--)?auth=require'
for rdma in rdma://127.0.0.1:0 rdma://127.0.0.1:0,auth=psk; do
	bad rtrs-server 2 "--listen=rdma://127.0.0.1:0 and --tls-psk: $no_tls" --listen "$rdma" \
		--tls-psk="$psk" --auth-psk="$psk" --auth=psk
done
bad rtrs-server 1 'cannot listen on rdma://127\.0\.0\.1:0: [^-]*$' --listen rdma://127.0.0.1:0 \
	--tls-psk="$psk" --auth-psk="$psk"
# --check refuses what the start refuses.
for check in --control=none --check; do
	no_tls_at_all='--tls=require: there is no TLS over RDMA: expected --tls=on'
	bad rtrs-server 2 "--listen=rdma://127.0.0.1:0 and $no_tls_at_all" \
		--tls=require --listen rdma://127.0.0.1:0 --tls-psk="$psk" --auth-psk="$psk" $check
done
bad nbdkit 1 "tls-psk=.* and server=rdma://127.0.0.1:1: $no_tls" \
	server=rdma://127.0.0.1:1 tls-psk="$tmp/alice.psk"
bad nbdkit 1 'tls=require and transport=rdma: there is no TLS over RDMA' \
	server=127.0.0.1:1 transport=rdma tls=require tls-psk="$tmp/alice.psk"
bad rtrs-bench 2 "tls-psk=.* and transport=rdma: $no_tls" --transport=rdma \
	--tls-psk="$tmp/alice.psk" 127.0.0.1:1 disk
bad rtrs-bench 2 'there is no TLS over RDMA' --tls=require --tls-psk="$tmp/alice.psk" \
	rdma://127.0.0.1:1 disk
# A file and the line of it are named.
printf '[server]\ntls-psk = %s\nlisten = rdma://127.0.0.1:0\n[export "x"]\npath = mem:1M\n' "$psk" \
	>"$tmp/rdma.conf"
expect_failure 2 "$tmp/rdma.conf:3: --listen=rdma://127.0.0.1:0 and --tls-psk: $no_tls" \
	"$RTRS_SERVER" --config="$tmp/rdma.conf" --auth-psk="$psk" --auth=psk
printf '%s\n' "tls-psk = $tmp/alice.psk" 'export = disk' 'server = rdma://127.0.0.1:1' \
	>"$tmp/rdma.conf"
bad nbdkit 1 "$tmp/rdma.conf:3: tls-psk=.* and server=rdma://127.0.0.1:1: $no_tls" \
	config="$tmp/rdma.conf"
printf '%s\n' 'export = disk' 'transport = rdma' "tls-psk = $tmp/alice.psk" \
	'server = 127.0.0.1:1' >"$tmp/rdma.conf"
bad nbdkit 1 "$tmp/rdma.conf:2: tls-psk=.* and transport=rdma: $no_tls" config="$tmp/rdma.conf"
bad rtrs-psk 2 "NAME 'a:b': expected a name" a:b
bad rtrs-psk 2 "NAME '': expected a name" ''
[[ $("$top_builddir/rtrs-psk" x) =~ ^x:[0-9a-f]{64}$ ]]
[ "$("$top_builddir/rtrs-psk" x)" != "$("$top_builddir/rtrs-psk" x)" ]

# ---- the same file for nbdkit, QEMU and psktool ----

if nbdkit --dump-config | grep -q '^tls=yes'; then
	nbdkit -f --exit-with-parent -U "$tmp/other.sock" -P "$tmp/other.pid" "${tls[@]}" \
		memory 1M >"$tmp/other.log" 2>&1 &
	other=$!
	wait_until "nbdkit" test -s "$tmp/other.pid"
	timeout "$TIMEOUT_S" nbdinfo --size \
		"nbds+unix://alice@/?socket=$tmp/other.sock&tls-psk-file=$tmp/server.psk" |
		grep -x 1048576
	if qemu-img --version >/dev/null 2>&1; then
		mkdir "$tmp/qemu"
		cp "$tmp/server.psk" "$tmp/qemu/keys.psk"
		creds=tls-creds-psk,id=tls0,endpoint=client,username=bob,dir=$tmp/qemu
		at=driver=nbd,path=$tmp/other.sock,tls-creds=tls0,tls-hostname=localhost
		timeout "$TIMEOUT_S" qemu-img info --object "$creds" --image-opts "$at" |
			grep -F '1 MiB'
	fi
	kill "$other"
	wait "$other" || true
else
	echo "nbdkit has no TLS: not tried with our file"
fi
if psktool --version >/dev/null 2>&1; then
	psktool -u frank -p "$tmp/frank.psk"
	chmod 600 "$tmp/frank.psk"
	start_server --tls=require --tls-psk="$tmp/frank.psk" --control none "disk=$tmp/disk"
	ios 10 --tls=require --tls-psk="$tmp/frank.psk"
	stop_process "$server_pid"
else
	echo "no psktool: not tried with its file"
fi
