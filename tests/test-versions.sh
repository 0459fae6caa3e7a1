#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# One version and one day of release everywhere: configure.ac, NEWS, README, Debian's changelog, the
# spec file.  Before the release the day is "not released yet", and Debian's changelog says
# UNRELEASED. (tests/test-docs.sh: the version in the manuals.)
. ./tests/functions.sh

# variable NAME: as configure has set it.
variable() { sed -n "s/^$1 = //p" "$top_builddir/Makefile"; }
version=$(variable PACKAGE_VERSION)
released=$(variable RELEASED)
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]]

# same WHERE WHAT SEEN WANTED
same() {
	[ "$3" = "$4" ] || fail "$1: $2 is '$3': expected '$4', as configure.ac has it"
}
heading=$(sed -n '/^Version /{p;q}' "$top_srcdir/NEWS")
same NEWS "the first heading" "$heading" "Version $version, $released"
readme=$(sed -n 's/^\*\*\(Version [^*]*\)\.\*\*.*/\1/p' "$top_srcdir/README.md")
same README.md "the version" "$readme" "$heading"

changelog=$top_srcdir/debian/changelog
same debian/changelog "the version" "$(sed -n '1s/.*(\([^)-]*\).*/\1/p' "$changelog")" "$version"
suite=$(sed -n '1s/.*) \([^;]*\);.*/\1/p' "$changelog")
spec=$top_srcdir/contrib/nbdkit-rtrs.spec
same contrib/nbdkit-rtrs.spec "the version" "$(sed -n 's/^Version: *//p' "$spec")" "$version"
# The first entry: "* Sun Nov 29 2026 NAME <ADDRESS> - 0.1.0-1".
entry=$(sed -n '/^%changelog/,${/^\* /{p;q}}' "$spec")
same contrib/nbdkit-rtrs.spec "the version of the first entry" \
	"$(sed -n 's/.* - \([0-9.]*\)-.*/\1/p' <<<"$entry")" "$version"

case $released in
"not released yet")
	same debian/changelog "the suite" "$suite" UNRELEASED
	;;
*)
	same debian/changelog "the suite" "$suite" unstable
	day=$(sed -n '/^ -- /{s/.*>  //;p;q}' "$changelog")
	same debian/changelog "the day" "$(date -u +%F -d "$day")" "$released"
	same contrib/nbdkit-rtrs.spec "the day of the first entry" \
		"$(date -u +%F -d "$(cut -d ' ' -f 3-5 <<<"$entry")")" "$released"
	# RPM compares the day of the week, too.
	same contrib/nbdkit-rtrs.spec "the day of the week" "$(cut -d ' ' -f 2 <<<"$entry")" \
		"$(LC_ALL=C date -u +%a -d "$released")"
	;;
esac
