#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# check-walks.sh finds a file or a function that is not there, and takes what is.
set -u
check=$(cd "${srcdir:-$(dirname "$0")/..}/tests" && pwd)/check-walks.sh
tree=$(mktemp -d) || exit 99
trap 'rm -rf "$tree"' EXIT
failed=0
mkdir -p "$tree/doc" "$tree/src"
{
	echo 'int declared(int a);'
	for i in {1..30}; do
		printf 'static struct s *f%d(int a,\n\tint b)\n{\n\tcalled();\n}\n' "$i"
	done
} >"$tree/src/a.c"

# walks TEXT: good ones, and TEXT
walks() {
	printf '## %s\n\n' 'A read' 'A read through rtrs-nbd' 'A write with FUA' 'A lost path' \
		'An export that comes, grows and goes' >"$tree/doc/walks.md"
	printf "\`src/a.c:f%d\`\n" {1..30} >>"$tree/doc/walks.md"
	printf '%s\n' "$1" >>"$tree/doc/walks.md"
}

walks "\`src/a.c\`"
out=$(bash "$check" "$tree" 2>&1) || { echo "good walks are refused: $out"; failed=1; }
for name in src/a.c:f31 src/a.c:declared src/a.c:called src/b.c:f1 src/b.c; do
	walks "\`$name\`"
	if out=$(bash "$check" "$tree" 2>&1) || ! grep -qF "doc/walks.md: $name: " <<<"$out"; then
		echo "not refused: $name ($out)"
		failed=1
	fi
done
walks ""
sed -i '/lost/d' "$tree/doc/walks.md"
bash "$check" "$tree" >/dev/null 2>&1 &&
	{ echo "a walk is missing and that is not seen"; failed=1; }
walks ""
sed -i '20,$d' "$tree/doc/walks.md"
bash "$check" "$tree" >/dev/null 2>&1 && { echo "empty walks are taken"; failed=1; }
exit $failed
