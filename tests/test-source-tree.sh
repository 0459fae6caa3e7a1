#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The build leaves a clone clean: autoreconf has nothing to warn of, and git ignores what a build in
# place makes.
. ./tests/functions.sh
unset MAKEFLAGS MFLAGS MAKELEVEL

if autoreconf --version >/dev/null 2>&1; then
	# What automake and autoconf read, in a copy.
	mkdir "$tmp/tree"
	(cd "$top_srcdir" && find . -path './build*' -prune -o \( -name '*.mk' -o -name \
		Makefile.am -o -name configure.ac \
		-o -name '*.in' \) -exec cp --parents -t "$tmp/tree" {} +)
	mkdir "$tmp/tree/m4" "$tmp/tree/build-aux"
	(cd "$tmp/tree" && autoreconf -fi) >"$tmp/autoreconf.log" 2>&1
	must_fail grep -i 'warning:' "$tmp/autoreconf.log"
	[ -x "$tmp/tree/configure" ]
fi

git -C "$top_srcdir" ls-files --error-unmatch configure.ac >/dev/null 2>&1 ||
	skip "not in a clone: .gitignore was not tried"
make -s --no-print-directory -C "$top_builddir" -f - print <<'END' | sed -n 's/^made: //p' \
	>"$tmp/made"
include Makefile
print:
	@printf 'made: %s\n' $(PROGRAMS) $(EXTRA_PROGRAMS) $(LTLIBRARIES) $(MANS) $(SCRIPTS) $(DATA) $(check_DATA) $(CLEANFILES) \
		$(TEST_LOGS) $(am__CONFIG_DISTCLEAN_FILES) $(DISTCLEANFILES) Makefile.in aclocal.m4 configure config.h.in
END
# Without those that lie in the sources.
while IFS= read -r file; do
	[[ $file == /* || $file == ../* ]] ||
		git -C "$top_srcdir" ls-files --error-unmatch "$file" >/dev/null 2>&1 ||
		printf '%s\n' "$file"
done <"$tmp/made" | sort -u >"$tmp/files"
[ "$(wc -l <"$tmp/files")" -ge 100 ]
grep -q -x rtrs-server "$tmp/files"
git -C "$top_srcdir" check-ignore --no-index --stdin <"$tmp/files" | sort >"$tmp/ignored" || true
diff "$tmp/files" "$tmp/ignored" || fail ".gitignore has not what a build in place makes"

# make dist takes what the lists name: each source is in the list of a folder above.
listed() {
	local dir=$1

	while [[ $dir == */* ]]; do
		dir=${dir%/*}
		[ ! -f "$dir/local.mk" ] ||
			! grep -q -E "%D%/${1#"$dir"/}( |\$)" "$dir/local.mk" || return 0
	done
	return 1
}
cd "$top_srcdir"
sources=0
while read -r file; do
	sources=$((sources + 1))
	listed "$file" || fail "$file is in no local.mk: make dist leaves it out"
done < <(find src -name '*.[ch]')
[ $sources -gt 500 ] || fail "$sources sources in $top_srcdir/src"

# And the packages are made of what it takes.
git ls-files debian | sort >"$tmp/debian"
sed -n 's,^\t\(debian/[^ ]*\) \\$,\1,p' Makefile.am | sort | diff "$tmp/debian" - ||
	fail "make dist does not take the files of debian/"
