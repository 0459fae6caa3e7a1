#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The configuration file is read again, by SIGHUP and by rtrsctl, while fio verifies an export that
# stays: exports and listeners come and go, files with mistakes change nothing, and the difference
# is told.
. ./tests/functions.sh
requires_server; requires_plugin
requires fio --enghelp=nbd
requires nbdinfo --version

truncate -s 16M "$tmp/disk"
truncate -s 4M "$tmp/a" "$tmp/b" "$tmp/c"
mkdir "$tmp/conf.d"
conf=$tmp/conf
write_conf() {
	printf '%s\n' '[server]' "listen = unix:$tmp/sock" "allow = uid:$(id -u)" "$@" >"$conf"
}
always='[export "disk"]
path = '$tmp/disk
write_conf "$always" '[export "a"]' "path = $tmp/a"
start_server --strict --control "$tmp/control" --state-dir "$tmp/state" --config "$conf" \
	"line=mem:1M"
ctl=(timeout "$TIMEOUT_S" "$top_builddir/rtrsctl" --socket "$tmp/control")
[ "$(exports)" = "a disk line " ]

start_nbdkit "server=unix:$tmp/sock" export=disk
disk=$uri disk_log=$nbdkit_log
timeout $((8 * TIMEOUT_S)) fio --name=all --ioengine=nbd --uri="$disk" --rw=randwrite --bs=4k \
	--size=16M --iodepth=16 --verify=crc32c --verify_state_save=0 --verify_fatal=1 \
	--verify_backlog=256 --loops=1000 --fsync=64 --output="$tmp/fio.log" &
fio=$!

# reload_says LINE...: rtrsctl reload prints these lines.
reload_says() {
	"${ctl[@]}" reload >"$tmp/reload.out"
	printf '%s\n' "$@" | diff -u - "$tmp/reload.out"
}
printf '%s\n' '[export "b"]' "path = $tmp/b" 'mode = ro' >"$conf.d/b.conf"
reload_says "+b=$tmp/b,readonly"
"${ctl[@]}" reload >"$tmp/reload.out"
[ ! -s "$tmp/reload.out" ]
truncate -s 8M "$tmp/b"
write_conf "$always" '[export "c"]' "path = $tmp/c" 'direct = no'
printf '%s\n' '[server]' 'queue-depth = 64' 'log-level = debug' >"$conf.d/server.conf"
reload_says "-a" "+c=$tmp/c" "--log-level: changed" "--queue-depth changed: takes effect after a restart" \
	"b 4M -> 8M"
[ "$(exports)" = "b c disk line " ]
flock -n "$tmp/a" true || fail "what is not exported any more is still locked"
rm "$conf.d/server.conf"

# A listener cannot demand keys that the server would read after a restart alone.
"$top_builddir/rtrs-psk" gw1 >"$tmp/keys"
chmod 600 "$tmp/keys"
write_conf "auth-psk = $tmp/keys" "$always"
sed -i 's/^listen = .*/&,auth=require/' "$conf"
must_fail "${ctl[@]}" reload 2>"$tmp/mistakes"
grep -F -e "--listen=unix:$tmp/sock,auth=require: the keys of --auth-psk take effect after a" \
	"$tmp/mistakes"

# By SIGHUP, too; the log tells.
write_conf "$always" '[export "a"]' "path = $tmp/a"
kill -HUP "$server_pid"
wait_line "$server_log" "reload: -c"
wait_line "$server_log" "$conf was read again"
[ "$(exports)" = "a b disk line " ]

# A file with mistakes changes nothing, and tells them all.
write_conf "$always" 'dirrect = yes' '[export "new"]' "path = $tmp/c" '[export "b"]' 'path = /b'
must_fail "${ctl[@]}" reload 2>"$tmp/mistakes"
grep -q "$conf:6: 'dirrect' is no option .*did you mean direct?" "$tmp/mistakes"
grep -q "^rtrsctl: $conf.d/b.conf:1: export name .b. is given twice: first in $conf:9" \
	"$tmp/mistakes"
# However many there are.
write_conf "$always" "$(printf 'dirrect%d = yes\n' {1..40})"
must_fail "${ctl[@]}" reload 2>"$tmp/mistakes"
[ "$(grep -c "is no option" "$tmp/mistakes")" -eq 40 ]
write_conf "$always" "$(printf 'dirrect%d = yes\n' {1..1000})"
must_fail "${ctl[@]}" reload 2>"$tmp/mistakes"
told=$(grep -c "is no option of this section" "$tmp/mistakes")
[ "$told" -gt 40 ]
grep -x "rtrsctl: and $((1000 - told)) lines more" "$tmp/mistakes"
not_used() { grep -c "$conf rejected, configuration unchanged" "$server_log"; }
not_used_again() { [ "$(not_used)" -gt "$1" ]; }
# The log has it for rtrsctl, too.
write_conf "$always" 'dirrect = yes'
before=$(not_used || true)
kill -HUP "$server_pid"
wait_until "the end of the reload by SIGHUP" not_used_again "$before"
write_conf "$always" '[export "new"]' "path = $tmp/c" '[export "none"]' "path = $tmp/none"
expect_failure 1 "export 'none': .* cannot be opened: No such file" "${ctl[@]}" reload
[ "$(exports)" = "a b disk line " ]

# Who has an export open keeps it, and --force takes it away.
write_conf "$always" '[export "a"]' "path = $tmp/a" '[export "c"]' "path = $tmp/c"
reload_says "+c=$tmp/c"
start_nbdkit "server=unix:$tmp/sock" export=c sessname=gw-c
c_pid=$nbdkit_pid
write_conf "$always" '[export "a"]' "path = $tmp/a"
nbdsh_run "$uri" <<END &
open("$tmp/open", "w").close()
while True:
    try:
        h.pread(4096, 0)
    except nbd.Error:
        break
END
nbdsh=$!
wait_until "an open export" test -e "$tmp/open"
reload_says "-c (in use by gw-c: removed when closed; --force kicks)"
kill -0 "$nbdsh" || fail "the export was taken away"
must_fail flock -n "$tmp/c" true
write_conf "$always" '[export "a"]' "path = $tmp/a" '[export "c"]' "path = $tmp/b" 'mode = ro'
reload_says "+c=$tmp/b,readonly"
write_conf "$always" '[export "a"]' "path = $tmp/a"
"${ctl[@]}" --force reload >"$tmp/reload.out"
printf '%s\n' "-c" "-c (taken from gw-c)" | diff -u - "$tmp/reload.out"
wait "$nbdsh"
wait_until "the end of the lock" flock -n "$tmp/c" true
stop_process "$c_pid"
expect_failure 2 "force belongs to reload, export remove, .*export set and export break" \
	"${ctl[@]}" --force list

# Listeners come and go; connections live on.  What cannot be had leaves the rest as it was.
write_conf "listen = unix:$tmp/sock2" "$always"
reload_says "-a" "+listen unix:$tmp/sock2"
start_nbdkit "server=unix:$tmp/sock2" export=disk mode=ro
nbdinfo --size "$uri" >/dev/null
stop_process "$nbdkit_pid"
write_conf "listen = unix:$tmp/nowhere/sock" "$always"
expect_failure 1 "cannot listen on unix:$tmp/nowhere/sock: .*the directory is missing" \
	"${ctl[@]}" reload
[ -S "$tmp/sock2" ]
sed -i "s#^listen = .*nowhere.*#allow = uid:1#; s#^listen = .*/sock#&3#" "$conf"
sed -i "s#^allow = uid:$(id -u)##" "$conf"
reload_says "-listen unix:$tmp/sock" "-listen unix:$tmp/sock2" "+listen unix:$tmp/sock3" \
	"--allow: changed"
[ ! -e "$tmp/sock" ]
[ ! -e "$tmp/sock2" ]
[ -S "$tmp/sock3" ]
start_nbdkit "server=unix:$tmp/sock3" export=disk connect-timeout=forever
wait_line "$server_log" "connection refused: this user is in no --allow rule"
stop_process "$nbdkit_pid"
write_conf "$always"
"${ctl[@]}" reload

# A listener moves from one address to all: the port is set free first, and taken again where the
# move fails.
random_port() {
	/usr/bin/python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])'
}
port=$(random_port)
write_conf "listen = 127.0.0.1:$port" 'allow = 127.0.0.1' "$always"
reload_says "+listen tcp://127.0.0.1:$port" "--allow: changed"
write_conf "listen = 0.0.0.0:$port" 'allow = 127.0.0.1' "$always"
reload_says "-listen tcp://127.0.0.1:$port" "+listen tcp://0.0.0.0:$port"
write_conf "listen = 127.0.0.1:$port" "listen = unix:$tmp/sock4" \
	"listen = unix:$tmp/nowhere/sock" "$always"
expect_failure 1 "cannot listen on unix:$tmp/nowhere/sock" "${ctl[@]}" reload
[ ! -e "$tmp/sock4" ]
start_nbdkit "server=127.0.0.1:$port" export=disk mode=ro
stop_process "$nbdkit_pid"
write_conf "$always"
reload_says "-listen tcp://0.0.0.0:$port" "--allow: changed"

# What comes during a change waits for its turn, in its order, and the log says for what: here for
# the lock that the change waits for.
lock "$tmp/c"
"${ctl[@]}" export add "c=$tmp/c" >"$tmp/add.out" &
add=$!
wait_line "$server_log" "'$tmp/c' is locked by"
printf '%s\n' '[export "hup"]' 'path = mem:1M' >"$conf.d/hup.conf"
kill -HUP "$server_pid"
waits="another change is being carried out: export 'c' .* comes"
wait_line "$server_log" "SIGHUP waits: $waits"
"${ctl[@]}" export add "late=mem:1M" >"$tmp/late.out" &
late=$!
wait_line "$server_log" "export add waits: $waits"
# The file that is saved is newer than the reload behind it, which came earlier than the file.
"${ctl[@]}" save >"$tmp/save.out" &
save=$!
wait_line "$server_log" "save waits: $waits"
"${ctl[@]}" reload >"$tmp/again.out" &
again=$!
wait_line "$server_log" "reload waits: $waits"
kill -0 "$add"
[ ! -s "$tmp/late.out" ]
unlock
wait "$add"
wait "$late"
wait "$save"
wait "$again"
must_fail grep '^-late' "$tmp/again.out"
[ "$(cat "$tmp/late.out")" = "+late=mem:1M" ]
[ "$(grep -c "reload: [+]hup=mem:1M" "$server_log")" -eq 1 ] || fail "the later change was first"
# SIGHUP's files do not have what was added behind them.
"${ctl[@]}" list | grep -q 'export late'
rm "$conf.d/hup.conf" "$conf.d/rtrsctl-saved.conf"
reload_says "-hup" "-late"

# What was added at run time, and is in no file, goes with the next reading.
"${ctl[@]}" export add "more=mem:1M" | grep -q '^+more=mem:1M$'
reload_says "-more"
truncate -s 8M "$tmp/a"
"${ctl[@]}" export add "a=$tmp/a" >/dev/null
truncate -s 12M "$tmp/a"
[ "$("${ctl[@]}" export resize a)" = "a 8M -> 12M" ]
[ "$("${ctl[@]}" export resize a)" = "a 12M as before" ]
expect_failure 1 "there is no export 'none'" "${ctl[@]}" export resize none

# What is saved stays; the administrator's files are not touched.
"${ctl[@]}" reload >/dev/null
mkdir "$tmp/before"
cp -r "$conf.d" "$tmp/before"
only_ours() {
	{ diff -r "$conf.d" "$tmp/before/conf.d" || true; } |
		diff - <(echo "Only in $conf.d: rtrsctl-saved.conf")
}
"${ctl[@]}" export add 'odd, name=mem:1M' >/dev/null
"${ctl[@]}" export add "c=$tmp/c,direct,readonly" >/dev/null
touch "$tmp/a,b"
truncate -s 1M "$tmp/a,b"
"${ctl[@]}" export add "comma=$tmp/a\\,b" >/dev/null
"${ctl[@]}" export set c iops=500 bps=8M burst=3s >/dev/null
"${ctl[@]}" export remove b >/dev/null
"${ctl[@]}" save | diff -u - <(printf '%s\n' 'saved odd, name=mem:1M' \
	"saved c=$tmp/c,readonly,direct" "saved comma=$tmp/a\\,b" \
	"b will be back after a restart: it is still in $conf.d/b.conf:1")
only_ours
reload_says "+b=$tmp/b,readonly"
[ -z "$("${ctl[@]}" reload)" ]
"${ctl[@]}" save >/dev/null
[ -z "$("${ctl[@]}" reload)" ]
"${ctl[@]}" export remove 'odd, name' >/dev/null
"${ctl[@]}" export remove b >/dev/null
"${ctl[@]}" export add "b=$tmp/b" >/dev/null
"${ctl[@]}" save |
	grep -x "b is not saved: it differs from the one in $conf.d/b.conf:1: change it there"
reload_says "-b" "+b=$tmp/b,readonly"
for name in c comma; do
	"${ctl[@]}" export remove "$name" >/dev/null
done
"${ctl[@]}" save
diff -r "$conf.d" "$tmp/before/conf.d"

kill -0 "$fio" || { cat "$tmp/fio.log"; fail "fio has ended"; }
pkill -INT -P "$fio"			# timeout may keep it, see test-registration.sh
wait "$fio" || true		# it was interrupted
grep -q ' err= 0' "$tmp/fio.log" || { cat "$tmp/fio.log"; fail "fio has found an error"; }
must_fail grep -E 'lost|fail' "$disk_log"
stop_server "$server_pid"

# A file of keys that a restart would refuse is refused by the reload that names it.
write_conf
start_server --state-dir "$tmp/state" --control "$tmp/control" --config "$conf"
printf 'alice:%064d\n' 1 >"$tmp/keys"
chmod 644 "$tmp/keys"
printf '%s\n' '[server]' "tls-psk = $tmp/keys" >"$conf.d/server.conf"
expect_failure 1 "tls-psk=$tmp/keys: expected mode 0600, not 0644" "${ctl[@]}" reload
chmod 600 "$tmp/keys"
reload_says "--tls-psk changed: takes effect after a restart"
rm "$conf.d/server.conf"
stop_server "$server_pid"

# Without a file there is nothing to read again; the start says what is wrong in all files at once.
start_server --control "$tmp/control" --state-dir "$tmp/state" "a=$tmp/a"
expect_failure 1 "there is no configuration file" "${ctl[@]}" reload
kill -HUP "$server_pid"
wait_line "$server_log" "SIGHUP: ignored: there is no configuration file"
stop_server "$server_pid"
printf '%s\n' '[server]' 'threads = 0' '[export]' >"$conf"
for check in "" --check; do
	status=0
	# shellcheck disable=SC2086 # nothing, where it is empty
	timeout "$TIMEOUT_S" "$RTRS_SERVER" $check --config "$conf" 2>"$tmp/mistakes" || status=$?
	[ $status = 2 ]
	[ "$(wc -l <"$tmp/mistakes")" = 2 ]
	grep -q "$conf:2: threads '0': expected a number from 1 to 256" "$tmp/mistakes"
	grep -q "$conf:3: .export. is no section of this file" "$tmp/mistakes"
done
write_conf
[ "$("$RTRS_SERVER" --check --config "$conf")" = "listen on unix:$tmp/sock
+b=$tmp/b,readonly" ]
[ ! -e "$tmp/sock" ]
