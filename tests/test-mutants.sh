#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Each mutant of tests/mutants still fits the code, and tests/mutate.py distinguishes killed mutants
# from survivors and right lists from wrong ones, on a tree of one file; each operator of
# tests/mutops.py makes what it says.
. ./tests/functions.sh
requires /usr/bin/python3 --version

mutate() {
	/usr/bin/python3 "$top_srcdir/tests/mutate.py" "$@"
}

mutate --list "$top_srcdir/tests/mutants" --source "$top_srcdir" --check ||
	fail "who changes code changes its mutants with it (tests/mutants/README)"

# Each folder of src with code has a row of tests, or is in one that has.
while read -r folder; do
	row=$folder
	while [ "$row" != . ] && ! grep -q "^$row:" "$top_srcdir/tests/mutants/subsystems"; do
		row=$(dirname "$row")
	done
	[ "$row" != . ] || fail "tests/mutants/subsystems: no row for $folder: which tests has it?"
done < <(cd "$top_srcdir/src" && find . -name '*.c' | sed 's|^\./||; s|/[^/]*$||' | sort -u)

# ---- a tree: one file of code, a test of it, and one that sees nothing ----

mkdir -p "$tmp/toy/src/two" "$tmp/toy/tests" "$tmp/lists" "$tmp/bin"
printf 'two: tests/blind tests/good tests/slow\n' > "$tmp/lists/subsystems"
: > "$tmp/lists/equivalents"
printf 'int two(void)\n{\n\tint n = 1;\n\n\treturn n + 1;\n}\n' > "$tmp/toy/src/two/two.c"
printf 'TESTS = tests/good tests/blind tests/slow tests/part.crit\n' > "$tmp/toy/tests/local.mk"
# Criterion skips cases and says that all is well.
printf '#!/bin/sh\nexec "$@"\n' > "$tmp/toy/tests/run-criterion.sh"
cat > "$tmp/toy/Makefile.toy" <<'END'
all:
PROGRAMS = tests/good tests/blind tests/slow tests/part.crit
two.o: $(SRC)/src/two/two.c
	$(CC) -g -O1 -c -o $@ $<
$(PROGRAMS): two.o $(SRC)/main.c
	mkdir -p tests && $(CC) -o $@ -D$(basename $(notdir $@)) $(SRC)/main.c two.o
END
cat > "$tmp/toy/main.c" <<'END'
#include <stdlib.h>
#include <unistd.h>
int two(void);
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

as_it_was() {
	cmp "$tmp/toy/src/two/two.c" "$tmp/mutate/tree/src/two/two.c" ||
		fail "a mutant was left in the tree"
}

# mutant NAME TESTS [OLD NEW [PLACE]]: of a list; without OLD two() returns 1
two='file src/two/two.c'
mutant() {
	printf '%s\n' "mutant $1: it breaks" "${5-$two}" "-${3-	return n + 1;}" "+${4-	return n;}" \
		"test $2"
}

# ---- the verdicts ----

{
	printf '%s\n' '# comments, and lines with nothing'
	mutant seen tests/good
	echo
	mutant unseen 'tests/good tests/blind'
	mutant seen-with-a-variable 'SEES="a b" tests/blind tests/good'
	mutant skipped 'tests/good tests/part.crit'
	mutant not-skipped 'SEES=1 tests/part.crit'
	mutant hangs tests/slow
	mutant wrong tests/good ' 	int n = 1;' ' 	int n = ;' "$two
 {"
} | toy 1 --limit 2
says '^killed +seen '
says "^killed +seen-with-a-variable .* 'SEES=a b' tests/blind, 'SEES=a b' tests/good"
says '^survived +unseen .* tests/blind did not see it'
says '^tests/part.crit is skipped here, or some of its cases are'
says '^not-run +skipped .* tests/part.crit'
says '^killed +not-skipped '
says '^killed +hangs .* tests/slow \(time limit\)'
says '^does-not-build +wrong '
says '^toy.list:[0-9]+: unseen survived: it breaks'
says '^4 of 5 mutants killed: 80.0 %, 100 % wanted; 1 survived, 1 do not build, '
says ' 1 not run; 7 tried$'
as_it_was

# Chosen ones; and code that has changed since.
sed -i 's/int n = 1/long n = 1/' "$tmp/toy/src/two/two.c"
list=$(mutant a tests/good; mutant b tests/good '	return n + 1;' '	return 1 + n;')
toy 0 a <<< "$list"
says '^1 of 1 mutants killed: 100.0 %'
toy 1 <<< "$list"
says '^1 of 2 mutants killed: 50.0 %'
toy 0 --rate 50 <<< "$list"
toy 1 c <<< "$list"
says 'there is no mutant c'

# ---- operators: which are noticed ----

# The first test is blind.
toy 0 --sample two </dev/null
says '^2 of 2 mutants killed: 100.0 %.* 0 are the same program'
says '^killed +src/two/two.c:3: constant in two .* tests/good$'
as_it_was
cat > "$tmp/toy/src/two/two.c" <<'END_OF_C'
int two(void)
{
	int n = 1;

	if (n > 5)
		return 1;
	return n + 1;
}
END_OF_C
# The compiler sees that 1 is below 6, too.
toy 0 --sample two </dev/null
says '^same +src/two/two.c:5: constant in two .* for the compiler'
printf -- '--- a/src/two/two.c\n+++ b/src/two/two.c\n@@ -3,0 +3 @@\n@@ -4,2 +5,0 @@\n' \
	> "$tmp/changed"
toy 0 --diff changed </dev/null
says '^1 of 1 mutants killed: .* 1 tried'
says '^killed +src/two/two.c:3: constant'
printf 'two: tests/blind\n' > "$tmp/lists/subsystems"
toy 1 --diff changed </dev/null
says '^survived +src/two/two.c:3: constant in two'
says '^-int n = 1;$'
says '^\+int n = \(1 \+ 1\);$'
toy 0 --diff changed --rate 0 </dev/null
printf 'constant in two: nobody looks\n-int  n = 1;\n+int n = (1 + 1);\n' > "$tmp/lists/equivalents"
toy 0 --diff changed </dev/null
says ' 0 tried$'
# The code has gone on, or the table.
sed -i 's/int n = 1/long n = 1/' "$tmp/toy/src/two/two.c"
toy 1 --check </dev/null
says '^equivalents:1: constant in two does not make this: int n = 1; -> int n = \(1 \+ 1\);'
sed -i 's/long n = 1/int n = 1/' "$tmp/toy/src/two/two.c"
printf 'three: tests/goo\n' > "$tmp/lists/subsystems"
toy 1 --check </dev/null
says '^subsystems:1: there is no folder src/three'
says '^subsystems:1: there is no test tests/goo'
printf 'constant two: nobody looks\n' > "$tmp/lists/equivalents"
toy 1 --check </dev/null
says '^equivalents:1: expected "OPERATOR in FUNCTION: REASON"'
printf 'two: tests/good\n' > "$tmp/lists/subsystems"
: > "$tmp/lists/equivalents"
toy 1 --sample three </dev/null
says 'SUBSYSTEM=three: expected a folder below src'

# ---- operators: what they make ----

mkdir "$tmp/toy/src/ops"
cat > "$tmp/toy/src/ops/ops.c" <<'END_OF_C'
/* a < b; call(); */
#define MORE(a) ((a) > 1)
static int ops(struct s *s, char *a)
{
	char name[64] = "a < 1 && b";	// a < b

	log_warn("%d", a < 2 ? 1 : 0);
	assert(a && s->n < 2);
	if (a[1] <= '<' && s)
		s->run(a, "x;");
	else
		s->ends[0].n += 2;
	while (s->more)
		s->n--;
	switch (s->n) {
	case A:
		(void)put(s);
		free(a);
	}
	if (s != a)
		return -EIO;
	return s ? a->x : f(s,
			    a);
}

static int last(void)
{
	return -EIO;
}
END_OF_C
printf -- '+++ b/src/ops/ops.c\n@@ -0,0 +1,99 @@\n' > "$tmp/ops.diff"
toy 1 --diff ops.diff </dev/null
says 'subsystems has no row for src/ops'
printf 'ops: tests/good\n' >> "$tmp/lists/subsystems"
toy 0 --diff ops.diff --dry </dev/null
cat > "$tmp/expected" <<'END_OF_LIST'
src/ops/ops.c:9: negate in ops
-if (a[1] <= '<' && s)
+if (!(a[1] <= '<' && s))
src/ops/ops.c:9: constant in ops
-if (a[1] <= '<' && s)
+if (a[(1 + 1)] <= '<' && s)
src/ops/ops.c:9: compare in ops
-if (a[1] <= '<' && s)
+if (a[1] < '<' && s)
src/ops/ops.c:9: compare in ops
-if (a[1] <= '<' && s)
+if (a[1] <= '<' || s)
src/ops/ops.c:10: call in ops
-s->run(a, "x;");
+;
src/ops/ops.c:12: assign in ops
-s->ends[0].n += 2;
+;
src/ops/ops.c:12: constant in ops
-s->ends[0].n += 2;
+s->ends[(0 + 1)].n += 2;
src/ops/ops.c:12: constant in ops
-s->ends[0].n += 2;
+s->ends[0].n += (2 + 1);
src/ops/ops.c:13: negate in ops
-while (s->more)
+while (!(s->more))
src/ops/ops.c:14: assign in ops
-s->n--;
+;
src/ops/ops.c:17: call in ops
-(void)put(s);
+;
src/ops/ops.c:20: compare in ops
-if (s != a)
+if (s == a)
src/ops/ops.c:21: error in ops
-return -EIO;
+;
src/ops/ops.c:22: swap in ops
-return s ? a->x : f(s, a);
+return s ? (f(s, a)) : (a->x);
END_OF_LIST
grep -v '^+ ' "$tmp/out" | diff -u "$tmp/expected" - || fail "the operators make something else"

# A seed is an order, which what is added elsewhere keeps.
n=0
for seed in 1 1 2; do
	toy 0 --sample ops --seed $seed --dry </dev/null
	n=$((n + 1))
	grep '^src' "$tmp/out" | sed 's/:[0-9]*:/:/' > "$tmp/order.$n"
done
cmp "$tmp/order.1" "$tmp/order.2" || fail "a seed gives two orders"
if cmp -s "$tmp/order.1" "$tmp/order.3"; then fail "two seeds give one order"; fi
toy 0 --sample ops --seed 1 --count 3 --first 1 --dry </dev/null
grep '^src' "$tmp/out" | sed 's/:[0-9]*:/:/' | cmp - <(sed -n 2,4p "$tmp/order.1") ||
	fail "--first and --count give others"
sed -i '3i static int first(int a)\n{\n\treturn a > 3;\n}\n' "$tmp/toy/src/ops/ops.c"
toy 0 --sample ops --seed 1 --dry </dev/null
grep '^src' "$tmp/out" | sed 's/:[0-9]*:/:/' | grep -v ' first$' | cmp - "$tmp/order.1" ||
	fail "code that was added changes the order of what was there"
rm -r "$tmp/toy/src/ops"
sed -i /^ops:/d "$tmp/lists/subsystems"

# An interrupt, in a test that hangs: what was found until then, and the tree as it was.
rm -rf "$tmp/mutate"
cp -r "$tmp/lists" "$tmp/hangs"
printf 'two: tests/slow\n' > "$tmp/hangs/subsystems"
rm -f "$tmp/hangs/toy.list"
mkdir "$tmp/mutate"
cp -r "$tmp/toy" "$tmp/mutate/new"
( cd "$tmp" && exec /usr/bin/python3 "$top_srcdir/tests/mutate.py" --list hangs \
	--source mutate/new --diff changed ) >"$tmp/out" 2>&1 &
pid=$!
wait_until "a mutant is in the tree" grep -qs '1 + 1' "$tmp/mutate/tree/src/two/two.c"
kill "$pid"
if wait "$pid"; then fail "mutate.py ends well although it was interrupted"; fi
says '^0 of 0 mutants killed: .*; 0 tried$'
as_it_was

# A test that fails by itself says nothing of a mutant.
sed -i 's/two() != 2/two() != 3/' "$tmp/toy/main.c"
rm -rf "$tmp/mutate"
toy 1 a <<< "$list"
says '^tests/good fails without a mutant'
says '^not-run +a .*tests/good'

# ---- lists that are wrong ----

wrong() {
	toy 1 --check <<< "$2"
	says "$1"
}

wrong 'a does not apply: src/two/two.c has its old text 0 times, expected once: "return 3;"' \
	"$(mutant a tests/good '	return 3;' '')"
printf 'int a;\nint  a;\n' >> "$tmp/toy/src/two/two.c"
wrong 'src/two/two.c has its old text 2 times, expected once: "int a;"' \
	"$(mutant a tests/good 'int a;' '')"
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
	toy 0 --check <<< "$(mutant a tests/good "$old" 'other;' "in ${place%%;*}")"
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
test tests/good'
rm "$tmp/toy/src/four.c"
wrong 'a does not apply: two has its old text 0 times, expected once: "return n \+ 3;"' \
	"$(mutant a tests/good '	return n + 3;' '' 'in two')"
wrong 'a does not apply: there is no five' "$(mutant a tests/good '	return n + 3;' '' 'in five')"
in_two=$(mutant a tests/good '	return n + 1;' '	return n;' 'in two')
mkdir "$tmp/toy/src/below"
mv "$tmp/toy/src/two/two.c" "$tmp/toy/src/below/moved.c"
toy 0 --check <<< "$in_two"
cp "$tmp/toy/src/below/moved.c" "$tmp/toy/src/two/two.c"
wrong 'a does not apply: two has its old text 2 times' "$in_two"
toy 0 --check <<< "${in_two/in two/in two of moved.c}"
rm -r "$tmp/toy/src/below"

wrong 'a does not apply: there is no src/five.c' \
	"$(mutant a tests/good 'int a;' '' 'file src/five.c')"
wrong 'a has no such test: tests/goo' "$(mutant a tests/goo)"
wrong 'a has no test, or no place' "$(mutant a '')"
wrong 'a changes nothing' "$(mutant a tests/good '	return n + 1;' '	return n + 1;')"
wrong 'a is there twice' "$(mutant a tests/good; mutant a tests/good)"
wrong 'expected "mutant NAME: WHAT IT BREAKS", got "mutant a"' 'mutant a'
wrong 'expected "mutant NAME: WHAT IT BREAKS", got "test tests/good"' 'test tests/good'
wrong 'toy.list:2: expected mutant, in, file, test' 'mutant a: x
tset tests/good'
