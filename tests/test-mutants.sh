#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Each mutant of tests/mutants still fits the code, and tests/mutate.py tells those that are killed
# from those that are not, and lists that are wrong from those that are right: on a tree of one
# file.
. ./tests/functions.sh
requires /usr/bin/python3 --version

mutate() {
	/usr/bin/python3 "$top_srcdir/tests/mutate.py" "$@"
}

mutate --list "$top_srcdir/tests/mutants" --source "$top_srcdir" --check ||
	fail "who changes code changes its mutants with it (tests/mutants/README)"

# ---- a tree: one file of code, a test of it, and one that sees nothing ----

mkdir -p "$tmp/toy/src" "$tmp/toy/tests" "$tmp/lists" "$tmp/bin"
printf 'int two(void)\n{\n\tint n = 1;\n\n\treturn n + 1;\n}\n' > "$tmp/toy/src/two.c"
printf 'TESTS = tests/good tests/blind tests/slow tests/part.crit\n' > "$tmp/toy/tests/local.mk"
# Criterion skips cases and says that all is well.
printf '#!/bin/sh\nexec "$@"\n' > "$tmp/toy/tests/run-criterion.sh"
cat > "$tmp/toy/Makefile.toy" <<'END'
all:
PROGRAMS = tests/good tests/blind tests/slow tests/part.crit
$(PROGRAMS): $(SRC)/src/two.c
	mkdir -p tests && $(CC) -o $@ -D$(basename $(notdir $@)) -include $(SRC)/src/two.c $(SRC)/main.c
END
cat > "$tmp/toy/main.c" <<'END'
#include <stdlib.h>
#include <unistd.h>
int main(void)
{
#ifdef good
	return two() != 2;
#endif
#ifdef blind
	return getenv("SEES") && two() != 2;
#endif
#ifdef part
	if (getenv("SEES"))
		return two() != 2;
	system("echo '[SKIP] two::two: nobody SEES'");
#endif
#ifdef slow
	while (two() != 2)
		sleep(1);
#endif
	return 0;
}
END
cat > "$tmp/toy/configure" <<'END'
#!/bin/sh
{ echo "SRC = $(dirname "$0")"; cat "$(dirname "$0")/Makefile.toy"; } > Makefile
END
printf '#!/bin/sh\n' > "$tmp/config.status"
chmod +x "$tmp/toy/configure" "$tmp/config.status"

# toy STATUS ARGUMENT...: with the list on stdin, in $tmp/out; what it says
toy() {
	local want=$1 status=0
	shift
	cat > "$tmp/lists/toy.list"
	rm -rf "$tmp/mutate/new"
	mkdir -p "$tmp/mutate"
	cp -r "$tmp/toy" "$tmp/mutate/new"
	( cd "$tmp" && mutate --list lists --source mutate/new "$@" ) >"$tmp/out" 2>&1 || status=$?
	cat "$tmp/out"
	[ "$status" -eq "$want" ] || fail "mutate.py ended with $status instead of $want"
}

says() {
	grep -qE -- "$1" "$tmp/out" || fail "mutate.py does not say: $1"
}

# ---- the verdicts ----

toy 1 --limit 2 <<'END'
# comments, and lines with nothing
mutant seen: it returns 1
file src/two.c
-	return n + 1;
+	return n;
test tests/good

mutant unseen: the same, with a test that is blind for it, too
file src/two.c
-	return n + 1;
+	return n;
test tests/good tests/blind

mutant seen-with-a-variable: the same, with a test that sees it then
file src/two.c
-	return n + 1;
+	return n;
test SEES="a b" tests/blind tests/good

mutant skipped: the same, with a test that looks elsewhere only
file src/two.c
-	return n + 1;
+	return n;
test tests/good tests/part.crit

mutant not-skipped: the same, with one that looks here
file src/two.c
-	return n + 1;
+	return n;
test SEES=1 tests/part.crit

mutant hangs: the same, with a test that waits for 2
file src/two.c
-return n + 1;
+return n;
test tests/slow

mutant wrong: no C
file src/two.c
 {
-	int n = 1;
+	int n = ;
test tests/good

mutant explained: nothing changes that can be seen
file src/two.c
-	int n = 1;
+	int n = 2 - 1;
test tests/good
survives it is the same number

mutant explained-too-much: it returns 1
file src/two.c
-	return n + 1;
+	return n;
test tests/good
survives nobody looks
END
says '^killed +seen '
says "^killed +seen-with-a-variable .* 'SEES=a b' tests/blind, 'SEES=a b' tests/good"
says '^survived +unseen .* tests/blind did not see it'
says '^not-run +skipped .* tests/part.crit is skipped here, or some of its cases are'
says '^killed +not-skipped '
says '^killed +hangs .* tests/slow \(time limit\)'
says '^does-not-build +wrong '
says '^survived +explained '
says '^toy.list:[0-9]+: unseen survived: the same, with'
says '^toy.list:[0-9]+: explained-too-much is killed, and the list says why it survives'
says '^5 of 7 mutants killed: 71.4 %, 95 % wanted; 2 survived, 1 do not build, 1 not run'
if grep -q ': explained survived' \
	"$tmp/out"; then fail "an explained survivor is told as one that is not"; fi
cmp "$tmp/toy/src/two.c" "$tmp/mutate/tree/src/two.c" || fail "a mutant was left in the tree"

# Chosen ones; code that has changed since; and the rate alone is enough to fail.
sed -i 's/int n = 1/long n = 1/' "$tmp/toy/src/two.c"
list='mutant a: it returns 1
file src/two.c
-	return n + 1;
+	return n;
test tests/good
mutant b: nothing
file src/two.c
-	return n + 1;
+	return 1 + n;
test tests/good
survives a + b = b + a'
toy 0 a <<< "$list"
says '^1 of 1 mutants killed: 100.0 %'
toy 0 --every 2 <<< "$list"
says '^1 of 1 mutants killed: 100.0 %'
toy 1 <<< "$list"
says '^1 of 2 mutants killed: 50.0 %'
toy 1 c <<< "$list"
says 'there is no mutant c'

# A test that fails by itself says nothing of a mutant.
sed -i 's/two() != 2/two() != 3/' "$tmp/toy/main.c"
rm -rf "$tmp/mutate"
toy 1 a <<< "$list"
says '^broken-test +a .*tests/good fails without the mutant'

# ---- lists that are wrong ----

wrong() {
	toy 1 --check <<< "$2"
	says "$1"
}

wrong 'a does not apply: src/two.c has its old text 0 times, expected once: "return 3;"' \
	'mutant a: x
file src/two.c
-	return 3;
test tests/good'
printf 'int a;\nint  a;\n' >> "$tmp/toy/src/two.c"
wrong 'a does not apply: src/two.c has its old text 2 times, expected once: "int a;"' 'mutant a: x
file src/two.c
-int a;
test tests/good'
# A place by its function: the same text elsewhere, a move and a copy.
cat > "$tmp/toy/src/three.c" <<'END'
struct three {
	int n;
};

#define THREE(a) \
	((a) + 1)

int three(void);

static const int table[] = {
	1,
};

/* two() returns this. */
static int three_of(int n)
{
	if (n == '{')
		return n + 1;
	return n + 3;
}

int three(void)
{
	int n = THREE(table[0]);

	return n + 1;
}
END
for place in 'two' 'struct three;int n;' 'THREE;((a) + 1)' 'table;1,' 'three;return n + 1;' \
	'three_of;return n + 1;' \
	'two of two.c'; do
	old=${place#*;}
	[ "$old" != "$place" ] || old='return n + 1;'
	toy 0 --check <<< "mutant a: x
in ${place%%;*}
-$old
+other;
test tests/good"
done
# A sentence of two lines; code that is wrapped, in the file and in the list.
printf 'int four(void)\n{\n\treturn two(),\n\t\tthree();\n}\n' > "$tmp/toy/src/four.c"
toy 0 --check <<< 'mutant a: it returns two,
	and not three
in four
-	return two(), three();
+	return two();
test tests/good
mutant b: it returns three
in four
 {
-	return
-	two(), three();
+	return three();
test tests/good
survives nobody
	looks'
rm "$tmp/toy/src/four.c"
wrong 'a does not apply: two has its old text 0 times, expected once: "return n \+ 3;"' 'mutant a: x
in two
-	return n + 3;
test tests/good'
wrong 'a does not apply: there is no five' 'mutant a: x
in five
-	return n + 3;
test tests/good'
in_two='mutant a: x
in two
-	return n + 1;
+	return n;
test tests/good'
mkdir "$tmp/toy/src/below"
mv "$tmp/toy/src/two.c" "$tmp/toy/src/below/moved.c"
toy 0 --check <<< "$in_two"
cp "$tmp/toy/src/below/moved.c" "$tmp/toy/src/two.c"
wrong 'a does not apply: two has its old text 2 times' "$in_two"
toy 0 --check <<< "${in_two/in two/in two of moved.c}"
rm -r "$tmp/toy/src/below"

wrong 'a does not apply: there is no src/five.c' 'mutant a: x
file src/five.c
-int a;
test tests/good'
wrong 'a: there is no test tests/goo' 'mutant a: x
file src/two.c
-	return n + 1;
test tests/goo'
wrong 'a has no test, or no place' 'mutant a: x
file src/two.c
-	return n + 1;'
wrong 'a changes nothing' 'mutant a: x
file src/two.c
-	return n + 1;
+	return n + 1;
test tests/good'
wrong 'a is there twice' 'mutant a: x
file src/two.c
-	return n + 1;
test tests/good
mutant a: x
file src/two.c
-	return n + 1;
test tests/good'
wrong 'expected "mutant NAME: WHAT IT BREAKS", got "mutant a"' 'mutant a'
wrong '"test tests/good" belongs to no mutant' 'test tests/good'
wrong 'toy.list:2: expected mutant, in, file, test' 'mutant a: x
tset tests/good'
