#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# house.py finds each kind of disorder, in trees that have one, and nothing in one that has none,
# nor in this tree.
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
	rm -rf "$tree/src"
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
	/usr/bin/python3 "$house" --list "$tree"
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

# order: the tree as it is has none
order() {
	if ! out=$(measure 2>&1); then
		printf 'a tree in order is refused:\n%s\n' "$out"
		failed=1
	fi
}

fresh_tree
order

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
disorder \
	"circle: srv-1 srv-10 srv-11 srv-12 srv-13 srv-14 srv-2 srv-3 srv-4 srv-5 srv-6 srv-7 srv-8 srv-9"

# What a header defines is called, too: an x-priv.h is a unit of its own.
fresh_tree
file frwr frwr-a.c <<-'C'
	void frwr_a_x(void) { frwr_b_y(); }
C
file frwr frwr-b.h <<-'C'
	static inline void frwr_b_y(void) { frwr_priv(); }
C
file frwr frwr-c.c <<-'C'
	void frwr_c_x(void) { frwr_a_x(); }
C
file frwr frwr-c-priv.h <<-'C'
	static inline void frwr_priv(void) { frwr_c_x(); }
C
disorder "circle: frwr-a frwr-b frwr-c frwr-c-priv"

# A comment, a string, a prototype, a field, a tag and what two files define are no calls.
file frwr frwr-c-priv.h <<-'C'
	/* Calls frwr_c_x(). */
	int frwr_c_x(int a,
		     int b);
	static inline void frwr_priv(void) { struct frwr_c_x a = { .frwr_c_x = 1 };
	  frwr_twice("frwr_c_x", a.frwr_c_x); }
C
for s in b c; do
	echo "void frwr_twice(void) { }" >>"$tree/src/frwr/frwr-$s.c"
done
order

# Forty calls in each direction between two files.
fresh_tree
for s in a b; do
	[ $s = a ] && other=b || other=a
	i=1
	while [ $i -le 40 ]; do
		echo "void srv_${s}_$i(void) { srv_${other}_$i(); }"
		i=$((i + 1))
	done | file rtrs-server "srv-$s.c"
done
disorder "back: srv-b > srv-a: srv_a_1"

# Of a file of the same folder, and of another folder.
fresh_tree
file frwr frwr-c.c <<-'C'
	void frwr_a_1(void), frwr_a_2(void), frwr_a_3(void), frwr_a_4(void), frwr_a_5(void);
	void frwr_a_1(void) {}
	void frwr_a_2(void) {}
	void frwr_a_3(void) {}
	void frwr_a_4(void) {}
	void frwr_a_5(void) {}
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
	printf 'struct frwr_%s {\n\tbool a, b, c;\n\tatomic_bool d;\n};\n' $s |
		file frwr "frwr-$s.h"
done
disorder "bool: frwr_req.d"

# Of any struct, whatever its name: four are allowed, five are not.
fresh_tree
printf 'struct frwr_x {\n\tbool a, b, c, d;\n};\n' | file frwr frwr-x.h
order
printf 'struct frwr_x {\n\tbool a, b, c, d;\n\tbool e;\n};\n' | file frwr frwr-x.h
disorder "bools: frwr_x: 5"

fresh_tree
i=1
while [ $i -le 4 ]; do
	echo "struct twice_$i { int n; };" | tee "$tree/src/frwr/x$i.h" | file rtrs-server "y$i.h"
	i=$((i + 1))
done
disorder "twice: struct twice_4: src/frwr/x4.h src/rtrs-server/y4.h"

# Who stops a process waits for its threads; a comment stops none.
fresh_tree
mkdir -p "$tree/tests/guest"
printf 'kill -%s 1\n' STOP >"$tree/tests/stop-threads.sh"
printf '# kill -%s\nstop_all_threads 1\nkill -CONT 1\n' STOP >"$tree/tests/guest/a.sh"
order
for stop in 'kill -%s' 'kill -s %s' 'pkill -SIG%s' 'kill --signal=%s' 'os.kill(1, signal.SIG%s)'; do
	# shellcheck disable=SC2059 # a format
	printf "$stop 1\n" STOP >"$tree/tests/guest/a.sh"
	disorder "stop: tests/guest/a.sh:1"
done
printf 'cleanup_fn kill_process 1\n' >"$tree/tests/guest/a.sh"
order
printf '\tcleanup_fn kill 1\n' >"$tree/tests/guest/a.sh"
disorder "cleanup: tests/guest/a.sh:1"
rm -r "$tree/tests"

# A line of 100 columns is no disorder, and tabs are as wide as they look.
fresh_tree
mkdir -p "$tree/tests"
printf '\t\t%084d\n' 0 >"$tree/tests/a.c"
order
printf '\n\t\t%085d\n' 0 >"$tree/tests/a.c"
disorder "wide: tests/a.c:2"

# The tree itself.
if ! /usr/bin/python3 "$house" >"$tree/out"; then
	cat "$tree/out"
	failed=1
fi

exit $failed
