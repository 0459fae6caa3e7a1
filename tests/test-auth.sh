#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Authentication in messages, both ends: IO over tcp and a unix socket, who gets in by which key, a
# path into the session of another one, and what a pair of ends that does not fit is told.
. ./tests/functions.sh
requires_server; requires_plugin; requires_gateway
requires nbdcopy --version
requires curl --version

bench=$top_builddir/rtrs-bench
umask 077
new_keys "$tmp/server.psk" alice bob alice/new
grep ^alice: "$tmp/server.psk" >"$tmp/alice.psk"
grep ^alice/new: "$tmp/server.psk" >"$tmp/alice-new.psk"
grep ^bob: "$tmp/server.psk" >"$tmp/bob.psk"
new_keys "$tmp/stranger.psk" carol
new_keys "$tmp/wrong.psk" alice
random_file "$tmp/disk" $((8 << 20))

# ---- IO ----

secret=(--auth=require --auth-psk="$tmp/server.psk")
start_server --listen tcp://127.0.0.1:0 --listen "unix:$tmp/a.sock" "${secret[@]}" \
	--log-level=debug --control none --metrics "unix:$tmp/metrics" "disk=$tmp/disk"
for server in "127.0.0.1:$server_port" "unix:$tmp/a.sock"; do
	start_nbdkit "server=$server" export=disk control=none auth-psk="$tmp/alice.psk"
	cmp "$tmp/disk" <(timeout "$TIMEOUT_S" nbdcopy "$uri" -)
	stop_process "$nbdkit_pid"
	start_gateway "server=$server" export=disk control=none \
		auth=psk auth-psk="$tmp/server.psk" auth-username=bob
	cmp "$tmp/disk" <(timeout "$TIMEOUT_S" nbdcopy "$uri" -)
	stop_process "$gateway_pid"
done
grep -q -E '127\.0\.0\.1:[0-9]+: authenticated by the key alice$' "$server_log"
grep -q -E 'unix:pid=[0-9]+,uid=[0-9]+: authenticated by the key bob$' "$server_log"
timeout "$TIMEOUT_S" "$bench" --auth-psk="$tmp/alice.psk" --rw=randrw --verify \
	--number-ios=20000 --iodepth=32 --bs=64K --connections=5 "127.0.0.1:$server_port" disk

# ---- who does not get in: one line here, one there ----

# refused CLIENT'S-LINE SERVER'S-LINE OPTION...
refused() {
	local says=$1 told=$2 before
	shift 2
	before=$(wc -l <"$server_log")
	expect_failure 1 "$says" "$bench" --number-ios=1 "$@" "127.0.0.1:$server_port" disk
	wait_until "the server's line" told "$before" "$told"
	must_fail told "$before" 'rtrs-bench-.*: session opened'
}
# told LINES REGEX: the log says it behind its first LINES.
told() {
	tail -n +$(($1 + 1)) "$server_log" | grep -q -E "$2"
}
not_let_in='connection refused: authentication: '
refused 'authentication as alice: the server has refused the key' \
	"${not_let_in}wrong key, .*, claiming to be alice" --auth-psk="$tmp/wrong.psk"
refused 'authentication as carol: the server has refused the key' \
	"${not_let_in}no key has this name, claiming to be carol" --auth-psk="$tmp/stranger.psk"
# refused_again CLIENT'S-LINE SERVER'S-LINE OPTION...: the server has just written its line.
refused_again() {
	local says=$1 told=$2 before
	shift 2
	before=$(grep -c -E "$told" "$server_log")
	expect_failure 1 "$says" "$bench" --number-ios=1 "$@" "127.0.0.1:$server_port" disk
	[ "$(grep -c -E "$told" "$server_log")" -eq "$before" ] || fail "the same line twice"
}
refused_again 'the same for an unknown name and for a wrong key: "rtrsctl explain" at the' \
	'no key has this name, claiming to be carol' --auth-psk="$tmp/stranger.psk"
demands='connection 0 was refused: the server requires authentication .auth-psk=FILE'
refused "$demands" 'connection refused: it does not authenticate, which --auth=require needs'
refused_again "$demands" 'connection refused: it does not authenticate' --auth=none \
	--auth-psk="$tmp/alice.psk"
# The server that proves itself says which one it is, and the client may insist.
name=$(hostname)
timeout "$TIMEOUT_S" "$bench" --number-ios=1 --auth-psk="$tmp/alice.psk" \
	--auth-hostname="elsewhere,$name" "127.0.0.1:$server_port" disk
expect_failure 1 "the server has proven to be $name, expected auth-hostname=x$name,$name.x" \
	"$bench" --number-ios=1 --auth-psk="$tmp/alice.psk" --auth-hostname="x$name,$name.x" \
	"127.0.0.1:$server_port" disk
expect_failure "1|2" "auth-hostname=$name: expected auth-psk=FILE beside it, and auth=require" \
	"$bench" --number-ios=1 --auth=psk --auth-psk="$tmp/alice.psk" --auth-hostname="$name" \
	"127.0.0.1:$server_port" disk
start_gateway "server=127.0.0.1:$server_port" export=disk control="$tmp/gw.sock" mode=ro \
	auth-psk="$tmp/alice.psk" auth-hostname="$name"
# The gateway is ready before its path is up.
shows_name() {
	"$top_builddir/rtrsctl" --socket "$tmp/gw.sock" show | grep -x -E " +server_name +$name"
}
wait_until "the server's name" shows_name
stop_process "$gateway_pid"
counted() {
	curl --silent --fail --max-time "$TIMEOUT_S" --unix-socket "$tmp/metrics" \
		http://localhost/metrics |
		sed -n "s/^rtrs_server_refused_total{reason=\"$1\"} //p"
}
[ "$(counted auth)" -eq 5 ]
[ "$(counted identity)" -eq 0 ]
stop_process "$server_pid"

# ---- a server that leaves the choice to its clients, and one that asks nobody ----

few_ios() {
	timeout "$TIMEOUT_S" "$bench" --number-ios=10 "$@" "127.0.0.1:$server_port" disk
}
start_server --auth=psk --auth-psk="$tmp/server.psk" --control none "disk=$tmp/disk"
few_ios
few_ios --auth-psk="$tmp/alice.psk"
refused 'the server has refused the key' "${not_let_in}wrong key" --auth-psk="$tmp/wrong.psk"
stop_process "$server_pid"
start_server --auth=none --auth-psk="$tmp/server.psk" --control none "disk=$tmp/disk"
expect_failure 1 'the server does not authenticate, which auth=require needs' \
	"$bench" --number-ios=1 --auth-psk="$tmp/alice.psk" "127.0.0.1:$server_port" disk
few_ios --auth=psk --auth-psk="$tmp/alice.psk"
stop_process "$server_pid"

# ---- each listener by itself ----

start_server --listen tcp://127.0.0.1:0 --listen "unix:$tmp/b.sock,auth=none" \
	--listen "unix:$tmp/c.sock,auth=psk" "${secret[@]}" --control none "disk=$tmp/disk"
refused "$demands" 'it does not authenticate, which --auth=require needs'
for at in b c; do
	timeout "$TIMEOUT_S" "$bench" --number-ios=1 "unix:$tmp/$at.sock" disk
done
expect_failure 1 'the server does not authenticate' "$bench" --number-ios=1 \
	--auth-psk="$tmp/alice.psk" "unix:$tmp/b.sock" disk
timeout "$TIMEOUT_S" "$bench" --number-ios=1 --auth-psk="$tmp/alice.psk" "unix:$tmp/c.sock" disk
expect_failure 1 'the server has refused the key' "$bench" --number-ios=1 \
	--auth-psk="$tmp/wrong.psk" "unix:$tmp/c.sock" disk
stop_process "$server_pid"

# ---- files, and options that do not go together ----

# bad STATUS TEXT OPTION...: of the server.
bad() {
	local status=$1 text=$2
	shift 2
	expect_failure "$status" "$text" "$RTRS_SERVER" --control none "$@" "disk=$tmp/disk"
}
tcp=tcp://127.0.0.1:0
chmod 644 "$tmp/alice.psk"
bad 2 "--auth-psk=$tmp/alice.psk: expected mode 0600, not 0644" --listen $tcp \
	--auth-psk="$tmp/alice.psk"
expect_failure 2 "auth-psk=$tmp/alice.psk: expected mode 0600, not 0644" \
	"$bench" --auth-psk="$tmp/alice.psk" 127.0.0.1:1 disk
expect_nbdkit_failure "auth-psk=$tmp/alice.psk: expected mode 0600, not 0644" \
	server=127.0.0.1:1 auth-psk="$tmp/alice.psk"
chmod 600 "$tmp/alice.psk"
bad 2 '--auth=psk: expected auth-psk=FILE beside it' --listen $tcp --auth=psk
bad 2 "--listen=$tcp,auth=require: expected --auth-psk=FILE beside it" --listen $tcp,auth=require
bad 2 'expected auth=none, auth=psk or auth=require' --listen $tcp,auth=yes
bad 2 'expected none, psk or require' --listen $tcp --auth=on
expect_failure 2 'has 3 keys: expected auth-username=NAME' \
	"$bench" --auth-psk="$tmp/server.psk" 127.0.0.1:1 disk
expect_failure 2 'no key in .* has this name' \
	"$bench" --auth-psk="$tmp/server.psk" --auth-username=eve 127.0.0.1:1 disk
expect_failure 2 'auth-username=eve: expected auth-psk=FILE' \
	"$bench" --auth-username=eve 127.0.0.1:1 disk

# ---- beside TLS ----

start_server --tls=require --tls-psk="$tmp/server.psk" "${secret[@]}" --log-level=debug \
	--control none "disk=$tmp/disk"
few_ios --tls=require --tls-psk="$tmp/alice.psk" --auth-psk="$tmp/alice.psk"
grep -q 'authenticated by the key alice' "$server_log"
# A label makes no other name, and the key of TLS alone is a proof, too.
few_ios --tls=require --tls-psk="$tmp/alice.psk" --auth-psk="$tmp/alice-new.psk"
few_ios --tls=require --tls-psk="$tmp/alice.psk"
refused 'the key of tls-psk= is of another identity than the key of auth-psk=' \
	'its TLS key belongs to psk:alice, but the client is psk:bob' \
	--tls=require --tls-psk="$tmp/alice.psk" --auth-psk="$tmp/bob.psk"
stop_process "$server_pid"

# ---- the name has rights, and rtrsctl tells the name ----

start_server "${secret[@]}" --control "$tmp/control" "disk=$tmp/disk,allow=psk:alice"
start_nbdkit "server=127.0.0.1:$server_port" export=disk control=none sessname=mine \
	auth-psk="$tmp/alice.psk"
shows_client() {
	"$top_builddir/rtrsctl" --socket "$tmp/control" clients |
		grep -E '^mine +127\.0\.0\.1 +psk:alice +tcp '
}
wait_until "the client" shows_client
expect_failure 1 'the server has no such export' "$bench" --number-ios=1 --auth-psk="$tmp/bob.psk" \
	"127.0.0.1:$server_port" disk
stop_process "$nbdkit_pid"
stop_process "$server_pid"
