#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# One version everywhere: configure.ac, NEWS, Debian's changelog, the spec file.
# (tests/test-docs.sh: the manuals.)
. ./tests/functions.sh

version=$(sed -n 's/^PACKAGE_VERSION = //p' "$top_builddir/Makefile")
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]]
same() {
	[ "$2" = "$version" ] || fail "$1 names version '$2' first, configure.ac has $version"
}
same NEWS "$(sed -n 's/^Version \([0-9.]*[0-9]\).*/\1/p' "$top_srcdir/NEWS" | head -n 1)"
same debian/changelog "$(sed -n '1s/.*(\([^)-]*\).*/\1/p' "$top_srcdir/debian/changelog")"
spec=$top_srcdir/contrib/nbdkit-rtrs.spec
same contrib/nbdkit-rtrs.spec "$(sed -n 's/^Version: *//p' "$spec")"
same "the changelog of contrib/nbdkit-rtrs.spec" \
	"$(sed -n '/^%changelog/,$s/^\* .* - \([0-9.]*\)-.*/\1/p' "$spec" | head -n 1)"
