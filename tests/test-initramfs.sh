#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The hook for mkinitramfs, with the functions of initramfs-tools in short: the initramfs has the
# configuration of a disk, its folder NAME.conf.d, and all that these name.
# tests/guest/test-attach-initramfs.sh boots by it.
. ./tests/functions.sh
requires_attach

etc=$tmp/etc/rtrs
mkdir -p "$etc"/{root.conf.d,certificates} "$tmp/bin" "$tmp/initramfs/conf"
cat >"$tmp/hook-functions" <<'END'
copy_exec() { :; }
manual_add_modules() { :; }
auto_add_modules() { :; }
copy_file() {
	mkdir -p "$DESTDIR${2%/*}"
	cp "$2" "$DESTDIR$2"
	echo "Adding $1 $2"
}
END
# Its program reads the copies elsewhere.
printf '#!/bin/sh\nexit 0\n' >"$tmp/bin/chroot"
chmod +x "$tmp/bin/chroot"
ln -s "$(realpath "$top_builddir")" "$tmp/sbin"
sed -e "s,/usr/share/initramfs-tools/hook-functions,$tmp/hook-functions," \
	-e "s,@sbindir@,$tmp/sbin," -e "s,@sysconfdir@,$tmp/etc," \
	-e 's,^settings=.*,settings=/dev/null,' -e "s,@udevrulesdir@/60-rtrs-attach.rules,/dev/null," -e '/^copy_file rules/d' \
	"$top_srcdir/contrib/initramfs/hook.in" >"$tmp/hook"

echo 'server = 127.0.0.1' >"$etc/root.conf"
echo 'nothing of it' >"$etc/root.conf.d/old.conf.bak"
cp "$etc/root.conf" "$etc/other.conf"
# A value may have quotes around it.
printf 'export = root\nauth-psk = "%s"\n' "$etc/root.psk" >>"$etc/root.conf"
printf '# tls-psk = %s\ntls-psk= %s \n' "$etc/unused.psk" "$etc/tls.psk" >"$etc/root.conf.d/1.conf"
printf 'tls-certificates: "%s" ; of us\n' "$etc/certificates" >"$etc/root.conf.d/2.conf"
touch "$etc"/{root,tls,unused}.psk "$etc/certificates/ca-cert.pem"
sed "s,^$etc,," >"$tmp/want" <<END
$etc/certificates/ca-cert.pem
$etc/root.conf
$etc/root.conf.d/1.conf
$etc/root.conf.d/2.conf
$etc/root.psk
$etc/tls.psk
END
(umask 077 && DESTDIR=$tmp/initramfs RTRS_ATTACH=root PATH=$tmp/bin:$PATH sh "$tmp/hook")
(cd "$tmp/initramfs$etc" && find . -type f) | sed 's,^\.,,' | sort | diff "$tmp/want" -
# What the process has when the initramfs has gone.
sed -n "s,^$etc,,p" "$tmp/initramfs/conf/rtrs-attach.files" | sort | diff "$tmp/want" -
