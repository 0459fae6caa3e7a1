#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What packages do when they go, with the scripts of debian/ and of the RPMs in a root of their own
# and with programs that only tell that they were called: a device in use keeps its package; what
# rtrsctl has written goes with the last package that reads it.  build-aux/packages.sh installs,
# removes and purges packages.
. ./tests/functions.sh

root=$tmp/root
mkdir -p "$root/run/systemd/system" "$root/etc/systemd/system" "$root/lib/systemd/system" "$tmp/bin"
cat >"$tmp/bin/called" <<END
#!/bin/sh
echo "\${0##*/} \$*" >>"$tmp/called"
case \${0##*/}\$1 in
rtrs-attach*) cat "$tmp/devices" && [ ! -e "$tmp/unreadable" ] ;;
rtrs-detachused) exit 1 ;;
esac
END
chmod +x "$tmp/bin/called"
for program in systemctl rtrs-attach rtrs-detach; do
	ln -s called "$tmp/bin/$program"
done

# run FILE ARGUMENT: a script of a package, with its files below $root.
run() {
	: >"$tmp/called"
	sed -E "s,(^|[^a-z}\"])/(etc|lib|run|usr|var)/,\\1$root/\\2/,g" "$1" >"$tmp/script"
	must_fail grep -E '"/(etc|lib|run|usr|var)/' "$tmp/script"
	PATH=$tmp/bin:$PATH sh "$tmp/script" "$2"
}
debian() { run "$top_srcdir/debian/$1" "$2"; }

# preun PACKAGE ARGUMENT: of the RPM.
preun() {
	rpmspec --parse "$top_srcdir/contrib/nbdkit-rtrs.spec" 2>/dev/null |
		sed -n "/^%preun -n $1\$/,/^%[a-z]/{/^%/d;p}" >"$tmp/preun"
	run "$tmp/preun" "$2"
}

# removes REMOVE UPDATE COMMAND...: the removal of rtrs-attach, and its update.
removes() {
	local remove=$1 update=$2

	shift 2
	printf '%-16s %-8s %8s  %-21s  %s\n' NAME DISK SIZE STATE SERVER/EXPORT \
		idle nbd0 8M served srv/idle early - 0 'waits for server' srv/early >"$tmp/devices"
	"$@" "$remove"
	grep -x 'rtrs-detach idle' "$tmp/called"
	must_fail grep 'rtrs-detach early' "$tmp/called"
	grep "systemctl.* stop .*rtrs-attach@\*.service" "$tmp/called"
	# A state that cannot be read may be of a device in use.
	touch "$tmp/unreadable"
	must_fail "$@" "$remove" 2>"$tmp/refused"
	rm "$tmp/unreadable"
	printf '%-16s %-8s %8s  %-21s  %s\n' used nbd1 8M served srv/used >>"$tmp/devices"
	must_fail "$@" "$remove" 2>"$tmp/refused"
	grep -F 'rtrs-attach: ' "$tmp/refused"
	# It goes on.
	must_fail grep -F 'systemctl' "$tmp/called"
	"$@" "$update"
	[ ! -s "$tmp/called" ] || fail "an update calls $(cat "$tmp/called")"
}
removes remove upgrade debian rtrs-attach.prerm

# saved FILE...: what rtrsctl has written is there.
saved() {
	local file

	for file; do
		mkdir -p "$root/etc/$file.conf.d"
		touch "$root/etc/$file.conf.d/rtrsctl-saved.conf"
	done
}
units=(nbdkit-rtrs rtrs-nbd rtrs-attach)
packages=(nbdkit-plugin-rtrs rtrs-nbd rtrs-attach)
for i in 0 1 2; do
	saved rtrs/disk0 rtrs/disk1
	touch "$root/etc/rtrs/disk1.conf.d/mine.conf"
	for other in $(((i + 1) % 3)) $(((i + 2) % 3)); do
		touch "$root/lib/systemd/system/${units[other]}@.service"
		debian "${packages[i]}.postrm" purge
		[ -e "$root/etc/rtrs/disk0.conf.d/rtrsctl-saved.conf" ] ||
			fail "${packages[i]} takes files of ${units[other]}"
		rm "$root/lib/systemd/system/${units[other]}@.service"
	done
	debian "${packages[i]}.postrm" remove
	[ -e "$root/etc/rtrs/disk0.conf.d/rtrsctl-saved.conf" ]
	debian "${packages[i]}.postrm" purge
	(cd "$root/etc/rtrs" && find . ! -type d) | diff - <(echo ./disk1.conf.d/mine.conf)
done
saved rtrs-server rtrs-server/fast
debian rtrs-server.postrm purge
[ -z "$(find "$root/etc" -name '*.conf.d' -path '*rtrs-server*')" ] ||
	fail "rtrs-server leaves $(find "$root/etc")"

command -v rpmspec >/dev/null || skip "all but the scripts of RPMs: install rpm"
removes 0 1 preun rtrs-attach
for package in rtrs-server rtrs-nbd nbdkit-plugin-rtrs; do
	for unit in rtrs-server@a.service rtrs-nbd@a.socket nbdkit-rtrs@a.service; do
		[[ $unit != "${package/kit-plugin/kit}"@* ]] ||
			ln -s nothing "$root/etc/systemd/system/$unit"
	done
	preun $package 0
	grep "systemctl.* stop .*@\*.service" "$tmp/called"
	[ -z "$(find "$root/etc/systemd/system" -type l)" ] || fail "$package leaves links"
	mv "$root/etc/systemd" "$root/etc/none"
	preun $package 0
	mv "$root/etc/none" "$root/etc/systemd"
	preun $package 1
	[ ! -s "$tmp/called" ] || fail "an update calls $(cat "$tmp/called")"
done
