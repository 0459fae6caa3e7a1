#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# check-words.sh finds a word that users are not to read, in each kind of file, also over the end of
# a line; and does not look at comments of the code.
set -u
# shellcheck disable=SC2154 # of automake
check=$(cd "${srcdir:-$(dirname "$0")/..}/tests" && pwd)/check-words.sh
tree=$(mktemp -d) || exit 99
trap 'rm -rf "$tree"' EXIT
failed=0
mkdir "$tree/src" "$tree/man" "$tree/doc"
in_order() {
	echo 'The log reports it.' >"$tree/README.md"
	echo 'An attacker.' >"$tree/SECURITY"
	echo 'doc' >"$tree/doc/peers.md"
	echo 'doc' >"$tree/doc/promises.md"
	echo '=head1 NAME' >"$tree/man/a.pod"
	printf '/* A stranger is told. */\nchar *s = "negotiate", c = %s;\n' "'\"'" >"$tree/src/a.c"
}
in_order
out=$(sh "$check" "$tree" 2>&1) || { printf 'nothing is wrong here:\n%s\n' "$out"; failed=1; }

# found FILE LINE TEXT, a text from stdin
found() {
	cat >"$tree/$1"
	if out=$(sh "$check" "$tree" 2>&1) || ! printf '%s\n' "$out" |
		grep -q "^$1:$2: \"$3\""; then
		printf '%s:%s: "%s" was expected, not:\n%s\n' "$1" "$2" "$3" "$out"
		failed=1
	fi
	in_order
}
printf 'one\nA STRANGER reads.\n' | found README.md 2 STRANGER
printf 'all stays as\nit was\n' | found man/a.pod 1 'stays as it was'
printf 'haggling\n' | found SECURITY 1 haggling
printf 'The log\ntells the reason.\n' | found doc/promises.md 2 'tells the'
printf 'int a;\nchar *s = "opened\\n" "anew";\n' | found src/a.c 2 anew
exit $failed
