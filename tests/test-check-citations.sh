#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# check-citations.sh finds each kind of citation that leads nowhere, in each place, and no other.
set -u
check=$(cd "${srcdir:-$(dirname "$0")/..}/tests" && pwd)/check-citations.sh
tree=$(mktemp -d) || exit 99
trap 'rm -rf "$tree"' EXIT
command -v perl >/dev/null || { echo "perl is not installed"; exit 77; }
failed=0

fresh_tree() {
	rm -rf "${tree:?}"/*
	mkdir -p "$tree/doc" "$tree/src" "$tree/tests/guest/cache" "$tree/man"
	printf '# Decisions\n\n## D1 One\n\n## D2 Two\n\nSee src/a.c and doc/traps.md 2.\n' \
		>"$tree/doc/decisions.md"
	printf '# Traps\n\n## 1 One\n\n## 2 Two tests/p02.c\n' >"$tree/doc/traps.md"
	printf '# Verbs\n\n## Q1 One\n\n## Q2 Two\n\n## I1 One\n' >"$tree/doc/verbs.md"
	printf '# Wire\n\n## 1 One\n\n### 1.1 First\n\n## Appendix A Bytes\n' \
		>"$tree/doc/protocol.md"
	echo '# Speed' >"$tree/doc/speed.md"
	echo 'doc/decisions.md has them, [speed](doc/speed.md)' >"$tree/README.md"
	echo 'see doc/traps.md and README.md' >"$tree/HACKING"
	echo 'cited in design.md D9' >"$tree/tests/guest/cache/kernel.c"
	cat >"$tree/src/a.c" <<'END'
/* One doc/decisions.md D1.  Two doc/decisions.md D1 and D2, doc/verbs.md Q1, Q2, I1 (Q2).
 * At the end of a line doc/protocol.md
 * 1.1, and doc/protocol.md 1 to 1.1; doc/protocol.md appendix A, doc/traps.md 1, 2,
 * doc/traps.md 2.  No citations: 0xD9, QD9, D9x, D9.5, RFC 5040, rtrs-pri.h, README.md */
END
	# shellcheck disable=SC2016	# as it stands in a script
	echo '# doc/traps.md 2, doc/speed.md, $top/README.md' >"$tree/tests/a.sh"
	echo 'args.md' >"$tree/tests/a.py"
	echo 'Test(a, p02_x)' >"$tree/tests/p02.c"
	echo 'doc/decisions.md D2' >"$tree/man/a.pod"
}

# refused FILE LINE TEXT: with this line in it a tree is refused for this line, and nothing else
refused() {
	fresh_tree
	printf '%b\n' "$3" >>"$tree/$1"
	if out=$(sh "$check" "$tree" 2>&1); then
		echo "not refused in $1: $3"
		failed=1
	elif [ "$(printf '%s\n' "$out" | sed 's/^\([^:]*:[0-9]*\): .*/\1/')" != "$1:$2" ]; then
		echo "expected $1:$2, got: $out"
		failed=1
	fi
}

fresh_tree
out=$(sh "$check" "$tree" 2>&1) || { echo "a whole tree was refused: $out"; failed=1; }
sh "$check" "$tree/none" >/dev/null 2>&1 && { echo "a tree that does not exist"; failed=1; }

# Pages that are elsewhere, or nowhere.
refused src/a.c 5 '/* design.md D1 */'
refused src/a.c 5 '/* (protocol.md 1.1) */'
refused src/a.c 6 '/* as in\n * (frwr.md Q1) */'
refused tests/a.sh 2 '# style.md'
refused README.md 2 '[style](style.md)'
refused HACKING 2 'doc/none.md'
refused doc/speed.md 2 'anchors.md'
refused man/a.pod 2 'F<guest.md>'
refused src/a.c 5 '/* ../shared/decisions.md D1 */'
# Numbers that the page has not.
refused src/a.c 5 '/* doc/decisions.md D3 */'
refused src/a.c 5 '/* doc/decisions.md D1, D3 */'
refused src/a.c 5 '/* doc/decisions.md\n * D2 and D1 and\n * D0 */'
refused src/a.c 5 '/* doc/traps.md 1,\n * 3 */'
refused src/a.c 5 '/* doc/protocol.md 1.2 */'
refused src/a.c 5 '/* doc/protocol.md 1 to 2 */'
refused src/a.c 5 '/* doc/protocol.md appendix B */'
refused src/a.c 5 '/* doc/verbs.md I2 */'
refused src/a.c 5 '/* held (D3) */'
refused src/a.c 5 '/* a quirk (Q3) */'
refused tests/a.sh 2 '# doc/traps.md\n# 3'
refused man/a.pod 2 'doc/decisions.md D3'
# No number.
refused src/a.c 5 '/* doc/traps.md */'
refused src/a.c 5 '/* doc/traps.md D1 */'
# The former name of traps.
refused src/a.c 5 '/* pitfall 2 */'
refused src/a.c 5 '/* pitfalls\n * 2 */'
refused HACKING 2 'Pitfall 2'
# Pages: gaps, doubles, files.
refused doc/traps.md 6 '## 4 Four'
refused doc/decisions.md 8 '## D2 Two'
refused doc/verbs.md 8 '## I3 Three'
refused doc/protocol.md 8 '### 1.1 First'
refused doc/speed.md 2 'src/b.c'
refused doc/traps.md 6 'tests/a.sh'
refused doc/traps.md 8 '\n## 3 Three\ntests/p02.c'
fresh_tree
rm "$tree/doc/traps.md"
sh "$check" "$tree" >/dev/null 2>&1 && { echo "a page that is missing"; failed=1; }
exit $failed
