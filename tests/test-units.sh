#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The units as make install leaves them: systemd-analyze has nothing to say about any unit, and
# counts little that a service may do.  Users, groups and directories of the units are made.
# tests/guest/test-units.sh runs the units.
. ./tests/functions.sh
requires_server; requires_plugin; requires_gateway; requires_attach
requires make --version
requires systemd-analyze --version
unset MAKEFLAGS MFLAGS MAKELEVEL DESTDIR
grep -q -x "systemdsystemunitdir = no" "$top_builddir/Makefile" && skip "configured without units"
case $tmp$top_builddir in
*' '*) skip "libtool cannot install from or to a path with a space" ;;
esac

root=$tmp/root
make -C "$top_builddir" install DESTDIR="$root" >"$tmp/make.log" 2>&1
installed=$(find "$root" -path '*/systemd/system/rtrs-servers.target' -printf '%h\n')
units=("$installed"/*)
[ ${#units[@]} -eq 8 ] || fail "not the units: ${units[*]}"
must_fail grep -n -E "@[a-z]+@" "${units[@]}"
# systemd looks below /etc, whatever the prefix.  nbdkit is the machine's.
mkdir -p "$root/etc/systemd" "$root/usr/bin"
cp -R "$installed" "$root/etc/systemd/system"
cp "$(type -P nbdkit)" "$root/usr/bin"

# verify UNIT: no word, and no error.
verify() {
	local status=0
	systemd-analyze verify --man=no --recursive-errors=no --root="$root" "$1" \
		>"$tmp/verify.out" 2>&1 ||
		status=$?
	cat "$tmp/verify.out"
	[ $status -eq 0 ]
	[ ! -s "$tmp/verify.out" ]
}
for unit in "${units[@]}"; do
	unit=${unit##*/}
	verify "${unit/@/@disk0}" || fail "systemd-analyze verify has something to say about $unit"
	[[ $unit = *.service ]] || continue
	# A device of this machine is root's to make.
	limit=25
	[[ $unit != rtrs-attach@* ]] || limit=60
	systemd-analyze security --offline=true --threshold=$limit "$installed/$unit" \
		>"$tmp/security.out" ||
		{ cat "$tmp/security.out"; fail "$unit may do too much"; }
	tail -n 1 "$tmp/security.out"
done
# systemd logs a line at each start about a variable that no line sets.
while IFS= read -r variable <&3; do
	grep -q -E "^Environment=$variable=" "${units[@]}" || fail "no unit sets $variable"
done 3< <(sed -n 's/^ExecStart=//p' "${units[@]}" | grep -o -E '\$[A-Z_]+' | tr -d '$')
# A device is the administrator's to allow, one by one; the group of all disks is as good as root.
# The devices of rtrs-attach are its own.
mapfile -t others < <(printf '%s\n' "${units[@]}" | grep -v '/rtrs-attach@')
must_fail grep -E '^(SupplementaryGroups|Group)=.*disk|^DeviceAllow=.*block' "${others[@]}"
for unit in "$installed"/*.service; do
	grep -q -x 'DevicePolicy=closed' "$unit" || fail "$unit may open any device"
done
# systemd does not end a start that waits, after 90 seconds.  A gateway is ready without its server.
# A server asks for the time of its locks (test-sd-notify.sh), as gateways of others wait for it.
grep -q -x 'TimeoutStartSec=infinity' "$installed/rtrs-attach@.service" ||
	fail "systemd ends the start of rtrs-attach@"
# Neither is what waits for the device, in the lines that users copy.
grep -h '/dev/rtrs/.* ext4 _netdev' "$top_srcdir"/man/*.pod "$top_srcdir"/contrib/examples/* \
	>"$tmp/waits"
[ "$(wc -l <"$tmp/waits")" -eq 3 ]
must_fail grep -v '_netdev.*,x-systemd\.device-timeout=0' "$tmp/waits"
# What verify finds where there is something to find.
sed -i 's/^Restart=/Restat=/' "$root/etc/systemd/system/rtrs-server.service"
must_fail verify rtrs-server.service

# Users and groups, in the files of that root.
sysusers=$(find "$root" -path '*/sysusers.d/*.conf')
[ "$(wc -l <<<"$sysusers")" -eq 3 ] || fail "not the files for systemd-sysusers: $sysusers"
mkdir -p "$root/etc/sysusers.d"
while IFS= read -r file; do
	cp "$file" "$root/etc/sysusers.d/"
done <<<"$sysusers"
systemd-sysusers --root="$root"
users=$(sed -n 's/^User=//p' "$installed"/* | sort -u | tr '\n' ' ')
[ "$users" = 'rtrs-nbd rtrs-server ' ] || fail "not the users of the units: $users"
for user in $users; do
	grep "^$user:" "$root/etc/passwd" || fail "no unit can have the user $user"
done
while IFS= read -r group; do
	grep "^$group:" "$root/etc/group" || fail "no unit can have the group $group"
done < <(sed -n -E 's/^(Group|SupplementaryGroups|SocketGroup)=//p' "$installed"/* | sort -u)

# The place for images.
tmpfiles=$(find "$root" -path '*/tmpfiles.d/rtrs-server.conf')
if [ "$(id -u)" -eq 0 ]; then
	systemd-tmpfiles --create --root="$root" "$tmpfiles"
	[ "$(stat -c %a "$root/var/lib/rtrs-server")" = 700 ]
	# The server writes there, for rtrsctl save.
	saves=$root$(sed -n 's/^ExecStart=.*--config=//p' "$installed/rtrs-server.service").d
	[ "$(stat -c %u "$saves")" = "$(sed -n 's/^rtrs-server:[^:]*:\([0-9]*\):.*/\1/p' \
		"$root/etc/passwd")" ] || fail "$saves is not the server's"
fi
for unit in "$installed"/{rtrs-nbd,nbdkit-rtrs}@.service; do
	config=$(sed -n 's/^ExecStart=.* config=//p' "$unit")
	grep -q -x -F "ReadWritePaths=-$config.d" "$unit" ||
		fail "no place for rtrsctl path save in ${unit##*/}"
done
for unit in "$installed"/rtrs-server{,@}.service; do
	config=$(sed -n 's/^ExecStart=.*--config=//p' "$unit")
	grep -q -x -F "ReadWritePaths=-$config.d" "$unit" ||
		fail "no place for rtrsctl save in ${unit##*/}"
done
