#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A configuration without a mistake that nobody means: a start, a reload, --check and rtrsctl warn.
# What a user cannot open, or see, is said with the user.
. ./tests/functions.sh
requires_server
rtrsctl=$top_builddir/rtrsctl

truncate -s 1M "$tmp/disk"
(umask 077; "$top_builddir/rtrs-psk" gw1/a >"$tmp/keys")
conf=$tmp/server.conf
# write_conf RULE...: the rules of the export.
write_conf() {
	printf '[server]\nlisten = tcp://127.0.0.1:0\nallow = 192.0.2.1 , 127.0.0.0/8\n'
	printf 'tls-psk = %s\n[export "disk"]\npath = %s\n' "$tmp/keys" "$tmp/disk"
	printf '%s\n' "$@"
} >"$conf"
nobody_is='export .disk.: allow psk:gw9 matches no client: no file of keys has this name'

# checked STATUS REGEX ARGUMENT...: --check ends so, and says a line of this kind; "": no warning.
checked() {
	local status=0

	"$RTRS_SERVER" --check "${@:3}" >"$tmp/check" 2>&1 || status=$?
	cat "$tmp/check"
	[ $status -eq "$1" ] || fail "status $status"
	if [ -n "$2" ]; then
		grep -q -E "$2" "$tmp/check"
	else
		must_fail grep -F warning "$tmp/check"
	fi
}
write_conf 'allow = psk:gw9, psk:gw1'
checked 0 "warning: $nobody_is\$" --config "$conf"
[ "$(grep -c warning "$tmp/check")" -eq 1 ]
write_conf 'read-only = psk:gw9'
checked 0 'warning: .* read-only psk:gw9 matches no client' --config "$conf"
write_conf 'allow = psk:gw1'
checked 0 '' --config "$conf"
checked 0 'allow psk:gw1 matches no client: there is no --tls-psk and no --auth-psk' \
	"disk=$tmp/disk,allow=psk:gw1"
checked 0 'allow cert:gw1 matches no client: there is no --tls-certificates' \
	"disk=$tmp/disk,allow=cert:gw1"
nobody='no client can connect: the server listens on loopback only'
checked 0 "$nobody" --allow 192.0.2.0/24 "disk=$tmp/disk"
checked 0 '' --allow 192.0.2.0/24,::1 "disk=$tmp/disk"
checked 0 '' --allow 192.0.2.0/24 --listen "unix:$tmp/rtrs.sock" "disk=$tmp/disk"
checked 0 '' --allow 192.0.2.0/24 --listen tcp://192.0.2.9 "disk=$tmp/disk"
checked 0 'without --allow: every host' --listen tcp://192.0.2.9 "disk=$tmp/disk"
# One of several rules is named.
checked 2 "allow '127.0.0.1,::1/129': '::1/129' in it: expected a number of bits" \
	--allow 127.0.0.1,::1/129 "disk=$tmp/disk"

start_server --config "$conf"
grep -q ready "$server_log"
must_fail grep 'warning' <(grep -v 'system calls are not filtered: ' "$server_log")
write_conf 'allow = psk:gw9'
"$rtrsctl" reload | tee "$tmp/answer"
grep -x "warning: $nobody_is" "$tmp/answer"
wait_line "$server_log" "warning: $nobody_is"
"$rtrsctl" export set disk allow=psk:gw1 | tee "$tmp/answer"
must_fail grep warning "$tmp/answer"
"$rtrsctl" export add "two=mem:1M,allow=psk:gw9" | tee "$tmp/answer"
grep -x "warning: export 'two': allow psk:gw9 matches no client: .*" "$tmp/answer"
[ "$(grep -c warning "$tmp/answer")" -eq 1 ]
# A file of keys that loses the key.
write_conf 'allow = psk:gw1'
(umask 077; "$top_builddir/rtrs-psk" gw2 >"$tmp/keys")
"$rtrsctl" reload | tee "$tmp/answer"
grep -x 'warning: .* allow psk:gw1 matches no client: .*' "$tmp/answer"

[ "$(id -u)" -eq 0 ] || skip "all but what another user may not open: that needs root"
nobody() {
	must_fail setpriv --reuid=65534 --regid=65534 --clear-groups "$@" >"$tmp/refused" 2>&1
	cat "$tmp/refused"
}
# opens REGEX PATH: the reason of a user who may not.
opens() {
	nobody env ${unit:+INVOCATION_ID=$unit} "$tmp/rtrs-server" --strict --control none \
		--listen tcp://127.0.0.1:0 "disk=$2"
	grep -q -E "$1" "$tmp/refused"
}
unit=''
# That user may not see the build directory.
chmod 755 "$tmp"
cp "$RTRS_SERVER" "$rtrsctl" "$tmp/"
chmod 600 "$tmp/disk"
opens 'user 65534 \(nobody\), who runs this program, may not read it, and it is of user 0 '\
'\(root\) and group 0 with mode 0600: chown it' \
	"$tmp/disk"
chmod 644 "$tmp/disk"
opens "is not writable by user 65534 .nobody., .*: chown it, or export it read-only: add ',rea" \
	"$tmp/disk"
# chown does not help there.
mkdir "$tmp/fixed"
truncate -s 1M "$tmp/fixed/disk"
# shellcheck disable=SC2016 # the other shell's
fixed=(unshare --mount sh -e -c 'mount --bind "$0" "$0"; mount -o remount,bind,ro "$0"; exec "$@"'
	"$tmp/fixed")
if "${fixed[@]}" true; then
	must_fail "${fixed[@]}" "$tmp/rtrs-server" --strict --control none \
		--listen tcp://127.0.0.1:0 disk="$tmp/fixed/disk" 2>&1 | tee "$tmp/refused"
	grep '(Read-only file system): mount its file system for writing' "$tmp/refused"
else
	echo "no mounts here: a read-only file system was not tried"
fi
mkdir -m 700 "$tmp/closed"
opens 'user 65534 \(nobody\), who runs this program, may not enter a directory' "$tmp/closed/disk"
unit=1
opens 'may not see /tmp/ of the machine \(PrivateTmp=\): put it elsewhere' /tmp/rtrs-no-such-file
opens 'may not see /root/ of the machine \(ProtectHome=\)' /root/rtrs-no-such-file
# A file of the configuration that came back as another user's.
printf '[export "a"]\npath = mem:1M\n' >"$tmp/closed.conf"
chmod 600 "$tmp/closed.conf"
nobody "$tmp/rtrs-server" --config "$tmp/closed.conf" --check
grep "$tmp/closed.conf: Permission denied: user 65534 (nobody), .* 0600: chown or chmod it" \
	"$tmp/refused"
# keys REGEX FILE: the reason for which the keys of a file are not used.
keys() {
	nobody env ${unit:+INVOCATION_ID=$unit} "$tmp/rtrs-server" --check --tls-psk="$2" a=mem:1M
	grep -q -E "$2: $1" "$tmp/refused"
}
keys 'Permission denied: a service of systemd may not see /root/ of the machine' /root/keys.psk
keys 'No such file or directory: a service of systemd may not see /tmp/' /tmp/rtrs-no-such-keys
unit=''
keys 'No such file or directory: create it, or correct the path$' "$tmp/no-such-keys"
chmod 600 "$tmp/keys"
keys 'Permission denied: user 65534 \(nobody\), .*: chown it, and leave the mode 0600$' "$tmp/keys"
nobody env -u RUNTIME_DIRECTORY "$tmp/rtrsctl" status
grep -F 'try as root, who sees the programs of all users' "$tmp/refused"
