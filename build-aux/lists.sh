#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Print lists.mk: what the tree has, for automake, which knows no wildcards.
#
# Usage: build-aux/lists.sh SRCDIR
#
# FILES_src_common_base and so on: the .c and .h of a folder below src, but those that a local.mk there names itself.
# SHELL_TESTS and GUEST_TESTS: tests/test-*.sh and tests/guest/test-*.sh.
# DIST_FILES: all else that a tarball has.
# And what tests/*/programs says: a test program is a row there.
#
#	NAME  LIBRARY...  [main=FILE]  [with=FILE,...]  [wrap=FUNCTION,...]  [in=DIRECTORY,...]  [FLAG...]
#
# LIBRARY: "base" is libbase.la, "srv" librtrssrv.la, "ring" librtrsring.la; in capitals, one that configure found.
# with: sources beside NAME.c, or main in its place; without a /, of the row's own folder.  NAME.la is a library, of
# these alone.  wrap: for the linker.  in: where headers are.  FLAG: -D, -W and -l, as they are.
# A row goes on in lines that begin with a space.
#
# "def WORD ..." is what @WORD in later rows stands for.  "list NAME [top]" says to which variable the programs below it
# belong, and whether they are made in the top build directory.  if and endif are automake's.
#
# A tarball has lists.mk, and no git to tell what was made in place: the list stands there.
set -eu
cd "$1"

# What git knows, and what is new; nothing without a checkout or without git.  The owner may be another user.
known=
if [ -e .git ]; then
	known=$(git -c safe.directory='*' ls-files --cached --others --exclude-standard) || known=
fi

files() {
	if [ -n "$known" ]; then
		printf '%s\n' "$known" | while IFS= read -r f; do
			[ ! -f "$f" ] || printf '%s\n' "$f"
		done
	else
		find . -name .git -prune -o -type f -print | sed 's|^\./||'
	fi | LC_ALL=C sort -u
}

if [ -z "$known" ] && [ -e lists.mk ]; then
	exec cat lists.mk
fi
echo '# Made by build-aux/lists.sh.  To make it anew: autoreconf -fi'
files | LC_ALL=C awk -f build-aux/lists.awk
