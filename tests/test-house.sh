#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# house.py finds each kind of disorder, in trees that have one, and nothing in one that has none.
set -u
# shellcheck disable=SC2154 # of automake
house=$(cd "${srcdir:-$(dirname "$0")/..}/tests" && pwd)/house.py
tree=$(mktemp -d) || exit 99
trap 'rm -rf "$tree"' EXIT
failed=0

# file FOLDER NAME: a file of src/, from stdin
file() {
	cat >"$tree/src/$1/$2"
}

fresh_tree() {
	rm -rf "$tree/src" "$tree/build"
	for d in common/base common/rnbd frwr nbdkit-rtrs-plugin rtrs-server; do
		mkdir -p "$tree/src/$d"
	done
	file frwr frwr-a.c <<-'C'
		void frwr_b_x(void);
		void frwr_a_x(void);
		void frwr_a_x(void) { frwr_b_x(); }
	C
	file frwr frwr-b.c <<-'C'
		struct frwr_b { int n; };
		void frwr_b_x(void);
		void frwr_b_x(void) {}
	C
}

measure() {
	find "$tree/src" -name '*.c' | while IFS= read -r c; do
		o=$tree/build/${c#"$tree/"}
		mkdir -p "$(dirname "$o")" && gcc -c -o "${o%.c}.o" "$c" || exit 1
	done
	/usr/bin/python3 "$house" --list "$tree/build" "$tree"
}

# disorder LINE: the tree as it is has that one
disorder() {
	if out=$(measure 2>&1); then
		echo "not found: $1"
		failed=1
	elif ! printf '%s\n' "$out" | grep -qxF "    $1"; then
		printf 'expected "%s", got:\n%s\n' "$1" "$out"
		failed=1
	fi
}

fresh_tree
if ! out=$(measure 2>&1); then
	printf 'a tree in order is refused:\n%s\n' "$out"
	failed=1
fi

# Fourteen files, each of which calls the next one.
fresh_tree
i=1
while [ $i -le 14 ]; do
	n=$((i % 14 + 1))
	file rtrs-server "srv-$i.c" <<-C
		void srv_${n}_x(void);
		void srv_${i}_x(void);
		void srv_${i}_x(void) { srv_${n}_x(); }
	C
	i=$((i + 1))
done
disorder "circle: srv-1 srv-10 srv-11 srv-12 srv-13 srv-14 srv-2 srv-3 srv-4 srv-5 srv-6 srv-7 srv-8 srv-9"

# Forty calls in each direction between two files.
fresh_tree
for s in a b; do
	[ $s = a ] && other=b || other=a
	i=1
	while [ $i -le 40 ]; do
		echo "void srv_${s}_$i(void); void srv_${other}_$i(void); void srv_${s}_$i(void) { srv_${other}_$i(); }"
		i=$((i + 1))
	done | file rtrs-server "srv-$s.c"
done
disorder "back: srv-b > srv-a: srv_a_1"

# Of a file of the same folder, and of another folder.
fresh_tree
file frwr frwr-c.c <<-'C'
	void frwr_a_1(void), frwr_a_2(void), frwr_a_3(void), frwr_a_4(void), frwr_a_5(void);
	void frwr_a_1(void) {} void frwr_a_2(void) {} void frwr_a_3(void) {} void frwr_a_4(void) {} void frwr_a_5(void) {}
C
disorder "away: frwr-c: frwr_a_5"
fresh_tree
file frwr frwr-c.c <<-'C'
	void rnbd_x(void);
	void rnbd_x(void) {}
C
disorder "astray: frwr-c: rnbd_x"

fresh_tree
for s in path con sess req chunks; do
	printf 'struct frwr_%s {\n\tbool a, b, c;\n\tatomic_bool d;\n};\n' $s | file frwr "frwr-$s.h"
done
disorder "bool: frwr_req.d"

fresh_tree
i=1
while [ $i -le 4 ]; do
	echo "struct twice_$i { int n; };" | tee "$tree/src/frwr/x$i.h" | file rtrs-server "y$i.h"
	i=$((i + 1))
done
disorder "twice: struct twice_4: src/frwr/x4.h src/rtrs-server/y4.h"

exit $failed
