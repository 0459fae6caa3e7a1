#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: host timeout=120 full
# run.sh itself: two guests at once, as a user, out of a directory with a space, statuses and
# results that come back; one that dies while it boots is started again; no QEMU is left by one that
# is interrupted or killed.
. ./tests/functions.sh

mkdir "$tmp/a b"
ln -s "$top_srcdir/tests/guest" "$tmp/a b/guest"
cat >"$tmp/a b/script" <<'E2'
echo "$1, $(id -u), $PWD"
echo brought back >/run/guest/file
exit "$2"
E2
run=("$tmp/a b/guest/run.sh" --mem 1G)
# Without a kernel the test is skipped.  One that was made otherwise than it would be made now is
# not taken, and nobody here can make another.
( . "$top_srcdir/tests/guest/qemu.sh"; guest_prepare 6.12; cp -r "$guest_kernel" "$tmp/cache" )
mkdir "$tmp/no-apt"
printf '#!/bin/sh\nexit 1\n' | tee "$tmp/no-apt/apt-cache" >"$tmp/no-apt/apt-get"
chmod +x "$tmp/no-apt"/*
prepare() {
	PATH=$tmp/no-apt:$PATH "$1" 6.12 "$tmp/cache"
}
prepare "$top_srcdir/tests/guest/prepare.sh"
mkdir -p "$tmp/tree/tests/guest"
source=$(cd "$top_srcdir" && pwd)
ln -s "$source/build-aux" "$tmp/tree/"
ln -s "$source/tests/guest"/* "$tmp/tree/tests/guest/"
other=$tmp/tree/tests/guest/prepare.sh
rm "$other"
sed "s/^test_modules='/&ntfs3 /" "$source/tests/guest/prepare.sh" >"$other"
chmod +x "$other"
status=0
prepare "$other" >"$tmp/prepare.out" || status=$?
[ $status -eq 77 ] || fail "status $status of another list of modules"
grep 'SKIP: no kernel for guests: apt knows no' "$tmp/prepare.out"

# as_user COMMAND...: not root where root can see to it.
as_user() {
	if [ "$(id -u)" -eq 0 ] &&
		setpriv --reuid=65534 --clear-groups cat "${run[0]}" >/dev/null &&
		setpriv --reuid=65534 --clear-groups test -x "${GUEST_CACHE:-/}"; then
		setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
	else
		"$@"
	fi
}

chmod 755 "$tmp" "$tmp/a b"
mkdir -m 777 "$tmp/user, too"
# shellcheck disable=SC2164 # set -e
cd "$tmp/a b"
as_user "${run[@]}" --results "$tmp/user, too" script one 0 >"$tmp/one" &
one=$!
status=0
"${run[@]}" --results "$tmp/two" script two 7 >"$tmp/two.out" || status=$?
[ $status -eq 7 ] || fail "status $status"
wait $one
[ "$(cat "$tmp/one")" = "one, 0, $tmp/a b" ]
[ "$(cat "$tmp/two.out")" = "two, 0, $tmp/a b" ]
[ "$(cat "$tmp/user, too/file")" = "brought back" ]
status=0
"${run[@]}" --timeout 1 --results "$tmp/limit" script three 0 >"$tmp/limit.out" 2>&1 || status=$?
[ $status -eq 125 ] || fail "status $status"
grep 'not done after 1 s' "$tmp/limit.out"

# The first guest dies before its kernel is up.
mkdir "$tmp/bin"
cat >"$tmp/bin/qemu-system-x86_64" <<'E2'
#!/bin/bash
# shellcheck disable=SC2154
[ -e "$DIED" ] || { touch "$DIED"; exit 0; }
PATH=${PATH#*:} exec qemu-system-x86_64 "$@"
E2
chmod +x "$tmp/bin/qemu-system-x86_64"
DIED=$tmp/died PATH=$tmp/bin:$PATH "${run[@]}" --results "$tmp/again" script four 0 \
	>"$tmp/again.out" 2>&1 ||
	{ cat "$tmp/again.out"; fail "the second guest"; }
[ -e "$tmp/died" ]
grep -q 'did not come up, once more' "$tmp/again.out"
grep -q '^four, 0' "$tmp/again.out"

qemus() {
	pgrep -f -x "qemu-system-x86_64 .*path=$tmp/$1,.*"
}
no_qemus() {
	! qemus "$1"
}
for signal in INT TERM KILL; do
	mkdir "$tmp/$signal"
	# A group of its own, as a terminal has it.
	setsid env --default-signal=INT "${run[@]}" --results "$tmp/$signal" script "$signal" 0 &
	pid=$!
	wait_until "QEMU" qemus "$signal"
	case $signal in
	INT) kill -INT -- -$pid ;;
	*) kill -$signal $pid ;;
	esac
	must_end=143
	[ $signal != KILL ] || must_end=137
	expect_exit $pid $must_end
	wait_until "the end of QEMU" no_qemus "$signal"
done
