#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# make lint: clang-tidy (.clang-tidy), cppcheck (cppcheck.supp), shellcheck and tests/house.py, in
# the top build directory.  usage: lint.sh TOP_SRCDIR CPPFLAGS...   Exits with 1 on any finding.
set -u
top=$1
shift

status=0
for tool in clang-tidy cppcheck shellcheck; do
	command -v $tool >/dev/null || { echo "lint: $tool is not installed" >&2; exit 2; }
done

mapfile -t sources < <(find "$top/src" -name '*.c' | sort)
flags=(-D_GNU_SOURCE '-DSYSCONFDIR="/etc"' "$@")
while IFS= read -r dir; do
	flags+=("-I$dir")
done < <(find "$top/src" -name '*.h' -printf '%h\n' | sort -u)

echo "clang-tidy"
printf '%s\0' "${sources[@]}" |
	xargs -0 -P "$(nproc)" -I FILE clang-tidy --quiet --config-file="$top/.clang-tidy" FILE -- \
		-std=gnu11 "${flags[@]}" 2>/dev/null || status=1

echo "cppcheck"
cppcheck --quiet --error-exitcode=1 --inline-suppr --std=c11 \
	--enable=warning,performance,portability \
	--suppressions-list="$top/build-aux/cppcheck.supp" \
	"${flags[@]}" "${sources[@]}" || status=1

echo "shellcheck"
( cd "$top" &&
	shellcheck --external-sources ./*.sh \
		build-aux/{chroots,fleet,lint,long,machines,newest,packages,setup,versions}.sh \
		contrib/completion/* doc/*.sh findings/*.sh tests/*.sh \
	tests/guest/*.sh tests/versions/*.sh tests/functions.sh.in ) || status=1

# "[ a ] && [ b ]" on a line of its own asserts b alone: set -e passes over the first.  With "||"
# behind, both count.
echo "halves of assertions"
grep -nE '^\[ .*\] && \[ ' "$top"/tests/*.sh "$top"/tests/{guest,versions}/*.sh | grep -v '||' && status=1

echo "house"
/usr/bin/python3 "$top/tests/house.py" "$top" || status=1
exit $status
