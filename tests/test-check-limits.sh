#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# check-limits.sh finds each kind of row that is not true, and each limit without a row, and takes
# what is true.
set -u
check=$(cd "${srcdir:-$(dirname "$0")/..}/tests" && pwd)/check-limits.sh
tree=$(mktemp -d) || exit 99
trap 'rm -rf "$tree"' EXIT
command -v perl >/dev/null || { echo "perl is not installed"; exit 77; }
failed=0

mkdir -p "$tree/doc" "$tree/src/a" "$tree/tests"
cat >"$tree/src/a/a.h" <<'END2'
#ifndef A_MAX_H
#define A_MAX_H
#define A_MAX (64u << 20)		/* bytes */
#define B_GUESTS 256u
#define B_NET_GUESTS 0x40u
#define C_MS 5000
#define D_TIMEOUT_S 30u
#define E_MAX sizeof(struct e)
#define F_TEXT_MAX 24
#define G_DEPTH 7
#endif
END2
echo '{ .name = "memory" }' >"$tree/src/a/a.c"
echo 'Test(a, at_the_limit)' >"$tree/tests/a.c"

# page ROW...: a page of true rows, and ROW, in the place of a true one of its name
page() {
	local name=${1-no name}
	grep -vF -- "${name%% |*} |" <<'END2'
# Limits

| limit | value | where | beyond | tests |
| --- | --- | --- | --- | --- |
| `A_MAX` | 64 MiB of data | src/a/a.h | an error | tests/a.c at_the_limit |
| `B_GUESTS`, `B_NET_GUESTS` | 256; 64 of a host | src/a/a.h | end | tests/a.c; tests/a.c Test, a |
| `C_MS` | 5 s | src/a/a.h | it ends | none: no such device |
| `D_TIMEOUT_S` | 30 s | src/a/a.h | it ends | none: no such device |
| `E_MAX` | as long as struct e | src/a/a.h | an error | none: no such device |
| `--memory` | 1 MiB | src/a/a.c | waits | none: no such device |
END2
	printf '%s\n' "$@" '' "No limit: \`F_TEXT_MAX\`."
}

page >"$tree/doc/limits.md"
out=$(sh "$check" "$tree" 2>&1) || { echo "true rows are refused: $out"; failed=1; }

none="none: no device"
# refused WHY ROW: the page is refused for this row
refused() {
	page "$2" >"$tree/doc/limits.md"
	if out=$(sh "$check" "$tree" 2>&1) || ! grep -qF -- "$1" <<<"$out" ||
		[ "$(wc -l <<<"$out")" -ne 1 ]; then
		echo "not refused, or not for \"$1\": $2: $out"
		failed=1
	fi
}
refused 'doc/limits.md:11: G_DEPTH is 7, not 8' "| \`G_DEPTH\` | 8 | src/a/a.h | no | $none |"
refused 'G_DEPTH is 7, not 7 KiB' "| \`G_DEPTH\` | 7 KiB | src/a/a.h | no | $none |"
refused 'C_MS is 5000, not 6 s' "| \`C_MS\` | 6 s | src/a/a.h | no | $none |"
refused 'D_TIMEOUT_S is 30, not 30000' "| \`D_TIMEOUT_S\` | 30000 | src/a/a.h | no | $none |"
refused 'B_NET_GUESTS is 64, not 65' \
	"| \`B_GUESTS\`, \`B_NET_GUESTS\` | 256; 65 | src/a/a.h | no | $none |"
refused 'A_MAX is 67108864, not many' "| \`A_MAX\` | many | src/a/a.h | no | $none |"
refused 'src/a/a.c has no E_MAX' "| \`E_MAX\` | 1 | src/a/a.c | no | $none |"
refused 'src/a/a.c has no --depth' "| \`--depth\` | 1 | src/a/a.c | no | $none |"
refused 'there is no such test' "| \`E_MAX\` | 1 | src/a/a.h | no | tests/b.c at_the_limit |"
refused 'there is no such test' "| \`E_MAX\` | 1 | src/a/a.h | no | at_the_limit |"
refused 'tests/a.c has no the_limit' "| \`E_MAX\` | 1 | src/a/a.h | no | tests/a.c the_limit |"
row="| \`G_DEPTH\` | 7 | src/a/a.h | no | $none |"
refused 'doc/limits.md:12: G_DEPTH of src/a/a.h has another row' "$row"$'\n'"$row"
refused 'it is not told what is beyond' "| \`E_MAX\` | 1 | src/a/a.h | | $none |"
refused 'it is not told why' "| \`E_MAX\` | 1 | src/a/a.h | no | none |"
refused 'it is not told why' "| \`E_MAX\` | 1 | src/a/a.h | no | none: |"
refused 'a row has five cells' "| \`E_MAX\` | 1 | src/a/a.h | no |"
refused 'there is no H_MAX in src/' "\`H_MAX\` is gone"

for name in NEW_MAX MAX_NEW NEW_IOS NEW_MEMORY NEW_GUESTS NEW_MS NEW_TIMEOUT; do
	page >"$tree/doc/limits.md"
	echo "#define $name 5" >"$tree/src/a/b.h"
	if out=$(sh "$check" "$tree" 2>&1) ||
		[ "$out" != "src/a/b.h:1: $name is not in doc/limits.md" ]; then
		echo "$name is not missed: $out"
		failed=1
	fi
done
exit $failed
