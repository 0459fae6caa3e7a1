#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# make long: a slice begins with the seed after the last one of its run, and adds its line only if
# it passes.
. ./tests/functions.sh
requires git --version

long() {
	srcdir="$tmp/source" bash "$top_srcdir/build-aux/long.sh" "$tmp/build" "$tmp/long.md" "$@"
}

mkdir "$tmp/source" "$tmp/build"
git -C "$tmp/source" init -q
git -C "$tmp/source" -c user.name=x -c user.email=x commit -q --allow-empty -m x
# The table of the aims, with no slice.
sed '/^| [^|]*| [0-9]* |/d' "$top_srcdir/doc/long.md" > "$tmp/long.md"
cat > "$tmp/build/test-sim-random" <<'END'
#!/bin/sh
echo "$SIM_SEED $SIM_SECONDS" >>seeds
[ ! -e fails ] || exit 1
echo "30 seeds passed, 2000 operations"
END
cat > "$tmp/bin-make" <<'END'
#!/bin/sh
echo "$*" >>seeds
echo "3 of 4 mutants killed: 75.0 %, 80 % wanted; 1 survived, ... 0 not run; 5 tried"
END
mkdir "$tmp/bin"
mv "$tmp/bin-make" "$tmp/bin/make"
chmod +x "$tmp/build/test-sim-random" "$tmp/bin/make"

for _ in 1 2; do
	long simulation 2 > "$tmp/out"
done
grep -qE '^simulation +4000 of +1000000000 operations$' "$tmp/out" || fail "not 4000 operations"
: > "$tmp/build/fails"
if long simulation 2; then fail "a slice that failed has passed"; fi
rm "$tmp/build/fails"
long simulation 1
printf '%s\n' '1 120' '31 120' '61 120' '61 60' | diff -u - "$tmp/build/seeds" || fail "other seeds"
slice='^\| simulation \| 30 \| 2000 \| [12] \| [0-9a-f]{8} \| [0-9-]{10} \|$'
[ "$(grep -cE "$slice" "$tmp/long.md")" -eq 3 ] ||
	fail "not three slices: $(cat "$tmp/long.md")"

rm "$tmp/build/seeds"
for _ in 1 2; do
	PATH=$tmp/bin:$PATH long mutants 9 > "$tmp/out"
done
grep -qE '^mutants +10 of +32000 mutants$' "$tmp/out" || fail "not 10 mutants"
grep -q -- '--first 0 --minutes 9 ' "$tmp/build/seeds" || fail "the first slice leaves mutants out"
grep -q -- '--first 5 --minutes 9 ' "$tmp/build/seeds" || fail "the second slice is the first again"

# Bad input.
if long nonsense 1 2> "$tmp/out"; then fail "an unknown run"; fi
grep -q 'nonsense: no such run; expected one of: .*simulation' "$tmp/out" ||
	fail "$(cat "$tmp/out")"
if long simulation 121 2> "$tmp/out"; then fail "121 minutes"; fi
grep -q 'MINUTES=121: expected 1 to 120' "$tmp/out" || fail "$(cat "$tmp/out")"
