#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# RPM's own reader takes the spec file, and its packages have what make install installs, each file
# once: rpmbuild fails at a file of %files that is missing, and at an installed file that no package
# has.
. ./tests/functions.sh
requires_server; requires_plugin; requires_gateway
requires rpmbuild --version
unset MAKEFLAGS MFLAGS MAKELEVEL DESTDIR

version=$(sed -n 's/^PACKAGE_VERSION = //p' "$top_builddir/Makefile")
spec=$top_srcdir/contrib/nbdkit-rtrs.spec
! grep -q '^systemdsystemunitdir = no$' "$top_builddir/Makefile" || skip "configured without units"
case $tmp$top_builddir in
*' '*) skip "libtool cannot install from or to a path with a space" ;;
esac

# Prepared as RPM does it, from a tarball that has just what %files takes out of the sources.
source=$tmp/nbdkit-rtrs-$version
mkdir -p "$source/doc" "$tmp/rpm/SOURCES"
touch "$source/configure"
cp "$top_srcdir"/{LICENSE,NEWS,README.md,SECURITY} "$source"
cp "$top_srcdir/doc/promises.md" "$source/doc"
tar -C "$tmp" -cJf "$tmp/rpm/SOURCES/nbdkit-rtrs-$version.tar.xz" "nbdkit-rtrs-$version"
rpm_build() {
	rpmbuild --define "_topdir $tmp/rpm" --define 'debug_package %{nil}' \
		--define '__os_install_post %{nil}' --define '_binary_payload w1.gzdio' \
		--define '_build_id_links none' --nodeps "$@"
}
rpm_build -bs "$spec"
[ -n "$(find "$tmp/rpm/SRPMS" -name "nbdkit-rtrs-$version-*.src.rpm")" ]

# In the place of configure and make the build that is here is installed where RPM's macros say.
plugins=$(rpm --eval '%{_libdir}/nbdkit/plugins')
install="make -C '$(cd "$top_builddir" && pwd)' install prefix=/usr plugindir=$plugins"
sed -e '/^%configure/d' -e '/^make %/d' -e "s|^make install|$install|" "$spec" \
	>"$tmp/nbdkit-rtrs.spec"
grep -q '^make -C .*DESTDIR=' "$tmp/nbdkit-rtrs.spec"
must_fail grep -q '^%configure' "$tmp/nbdkit-rtrs.spec"
rpm_build -bb "$tmp/nbdkit-rtrs.spec"

for package in rtrs-server rtrs-nbd nbdkit-plugin-rtrs rtrs-tools; do
	file=$(find "$tmp/rpm/RPMS" -name "$package-$version-*.rpm")
	[ -n "$file" ] || fail "no package $package"
	rpm -qlp "$file" | sed "s/^/$package /"
done >"$tmp/files"
cat "$tmp/files"
for file in "rtrs-server /usr/sbin/rtrs-server" "rtrs-nbd /usr/bin/rtrs-nbd" \
	"rtrs-tools /usr/sbin/rtrsctl" "nbdkit-plugin-rtrs $plugins/nbdkit-rtrs-plugin.so"; do
	grep -q -x "$file" "$tmp/files"
done
# A file of two packages keeps one of them out; the folder /etc/rtrs is of both gateways.
twice=$(cut -d ' ' -f 2 "$tmp/files" | grep -v -x /etc/rtrs | sort | uniq -d)
[ -z "$twice" ] || fail "in two packages: $twice"
