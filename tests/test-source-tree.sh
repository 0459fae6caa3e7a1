#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The build leaves a clone clean: autoreconf has nothing to warn of, and git ignores what a build in
# place makes.  make dist takes each file of the repository.
. ./tests/functions.sh
unset MAKEFLAGS MFLAGS MAKELEVEL

if autoreconf --version >/dev/null 2>&1; then
	# What automake and autoconf read, in a copy.
	mkdir "$tmp/tree"
	(cd "$top_srcdir" && find . -path './build*' -prune -o \( -name '*.mk' -o -name \
		Makefile.am -o -name configure.ac \
		-o -name '*.in' \) -exec cp --parents -t "$tmp/tree" {} +)
	mkdir "$tmp/tree/m4" "$tmp/tree/build-aux"
	cp "$top_srcdir/build-aux/lists.sh" "$tmp/tree/build-aux"
	(cd "$tmp/tree" && autoreconf -fi) >"$tmp/autoreconf.log" 2>&1
	must_fail grep -i 'warning:' "$tmp/autoreconf.log"
	# --disable-server leaves the others: they need libraries of the server's.
	if [ -x "$RTRS_NBD" ] && [ -x "$RTRS_ATTACH" ]; then
		mkdir -p "$tmp/tree/src/common/fabric"
		touch "$tmp/tree/src/common/fabric/fabric.h"
		(cd "$tmp/tree" && ./configure --disable-server --enable-attach) \
			>"$tmp/configure.log" 2>&1
		grep -E '^  rtrs-server +NO  \(--disable-server\)$' "$tmp/configure.log"
		grep -E '^  rtrs-nbd +yes$' "$tmp/configure.log"
	fi
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

# make dist takes files, and whole folders; what git itself needs is all that it leaves out.
make -s --no-print-directory -C "$top_builddir" -f - print <<'END' | sed -n 's/^taken: //p' \
	>"$tmp/named"
include Makefile
print:
	@printf 'taken: %s\n' $(patsubst $(srcdir)/%,%,$(DISTFILES))
END
cd "$top_srcdir" || exit
while IFS= read -r name; do
	if [ -d "$name" ]; then find "$name" -type f; else printf '%s\n' "$name"; fi
done <"$tmp/named" | sort -u >"$tmp/taken"
git ls-files | grep -v -x -E '\.gitignore|\.ci/.*|.*/\.gitkeep' | sort |
	comm -23 - "$tmp/taken" >"$tmp/left"
[ "$(wc -l <"$tmp/taken")" -gt 1000 ]
[ ! -s "$tmp/left" ] || fail "make dist leaves out: $(head -n 20 "$tmp/left" | tr '\n' ' ')"
