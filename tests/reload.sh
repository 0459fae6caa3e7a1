# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Reloads of a program with the control socket $tmp/client.ctl, under IO that must not fail; sourced
# after functions.sh:
#
#	load disk "$uri"; ...; goes_on disk; load_end disk
#	says '+key gw/b'			a reload succeeds, and prints these lines alone
#	refused 'tls-psk=.*: No such file'	a reload fails, and prints a line that begins so
requires nbdsh --version
# shellcheck disable=SC2034 # for who sources this
ctl=(timeout "$TIMEOUT_S" "$top_builddir/rtrsctl" --socket "$tmp/client.ctl")

says() {
	"${ctl[@]}" reload >"$tmp/said" || fail "no reload"
	diff -u <([ $# -eq 0 ] || printf '%s\n' "$@") "$tmp/said" ||
		fail "the reload says something else"
}
# refused REGEX...: a line for each
refused() {
	local status=0
	"${ctl[@]}" reload >"$tmp/why" 2>&1 || status=$?
	[ $status -eq 1 ] || fail "status $status instead of 1"
	lines_are "$tmp/why" "$@"
}
# lines_are FILE REGEX...: of a command of rtrsctl that has failed
lines_are() {
	local file=$1 line n=0
	shift
	cat "$file"
	for line; do
		n=$((n + 1))
		sed -n "${n}p" "$file" | grep -q -E "^rtrsctl: $line" ||
			fail "line $n is not '$line'"
	done
	[ "$(wc -l <"$file")" -eq $n ] || fail "more than $n lines"
}

declare -A loads=()
# load NAME URI: IO that is compared (nbd-load.py), in the background
load() {
	rm -f "$tmp/$1.stop" "$tmp/$1.stop.turns"
	STOP=$tmp/$1.stop timeout $((10 * TIMEOUT_S)) nbdsh -c 'h.set_uri_allow_local_file(True)' \
		-c "h.connect_uri('$2')" -c "exec(open('$top_srcdir/tests/nbd-load.py').read())" &
	loads[$1]=$!
	cleanup_fn kill_process $!
	wait_until "the load of $1" turned "$1" 0
}
turned() {
	[ -s "$tmp/$1.stop.turns" ] && [ "$(cat "$tmp/$1.stop.turns")" -gt "$2" ] ||
		process_ended "${loads[$1]}"
}
# goes_on NAME...: the loads have gone on since now
goes_on() {
	local name turns
	for name; do
		turns=$(cat "$tmp/$name.stop.turns")
		wait_until "two turns of $name" turned "$name" $((turns + 2))
		process_ended "${loads[$name]}" && fail "the IO of $name has failed"
	done
	return 0
}
load_end() {
	local name
	for name; do
		touch "$tmp/$name.stop"
		expect_exit "${loads[$name]}" 0
	done
}
