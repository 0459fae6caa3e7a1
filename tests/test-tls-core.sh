#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A process with keys writes no core file, and one without keys does.  A core file that is forced
# does not have the pre-shared keys, neither as bytes nor as the digits of the file, while
# connections live and after connections that were refused.  The file is a core file otherwise.
. ./tests/functions.sh
requires_server; requires_gateway; requires_plain_build
requires nbdcopy --version

umask 077
ulimit -S -c "$(ulimit -H -c)"
[ "$(ulimit -S -c)" != 0 ] || skip "the hard limit of core files is 0"
bench=$top_builddir/rtrs-bench
"$top_builddir/rtrs-psk" alice >"$tmp/alice.psk"
{ cat "$tmp/alice.psk"; "$top_builddir/rtrs-psk" bob; } >"$tmp/server.psk"
"$top_builddir/rtrs-psk" alice >"$tmp/wrong.psk"
random_file "$tmp/disk" $((1 << 20))

# in_core.py CORE FILE TEXT: says which keys of FILE the core has; fails if it has one, or no TEXT.
cat >"$tmp/in_core.py" <<'END'
import sys
core = open(sys.argv[1], "rb").read()
if sys.argv[3].encode() not in core:
    sys.exit("no core of a running program: no '%s'" % sys.argv[3])
found = 0
for line in open(sys.argv[2]):
    name, digits = line.strip().split(":")
    key = bytes.fromhex(digits)
    half = len(key) // 2
    for what, bits in (("digits", digits.encode()), ("capitals", digits.upper().encode()),
                       ("bytes", key), ("first half", key[:half]), ("second half", key[half:])):
        if bits in core:
            print("%s: %s at %d" % (name, what, core.index(bits)))
            found += 1
sys.exit(found != 0)
END
# no_key PID FILE TEXT
no_key() {
	gcore -o "$tmp/core" "$1" >"$tmp/gcore.out" 2>&1 ||
		skip "gcore: $(tail -n 1 "$tmp/gcore.out")"
	python3 "$tmp/in_core.py" "$tmp/core.$1" "$2" "$3" ||
		fail "a key is in the core file of process $1"
	rm "$tmp/core.$1"
}
gcore_works() { gcore -o "$tmp/shell" $$ >/dev/null 2>&1 && rm "$tmp/shell.$$"; }
gcore_works || skip "gcore makes no core file here"

start_server --tls=require --tls-psk="$tmp/server.psk" --control none "disk=$tmp/disk"
no_key "$server_pid" "$tmp/server.psk" "$tmp/disk"
start_gateway "server=127.0.0.1:$server_port" export=disk control=none tls=require \
	tls-psk="$tmp/server.psk" tls-username=alice
cmp "$tmp/disk" <(timeout "$TIMEOUT_S" nbdcopy "$uri" -)
for pid in "$server_pid" "$gateway_pid"; do
	limit=$(prlimit --pid "$pid" --core --noheadings --raw --output SOFT)
	[ "$limit" -le 1 ] || fail "process $pid has keys and a core limit of $limit bytes"
done
expect_failure 1 'the peer refused the key of alice' "$bench" --number-ios=1 \
	--tls-psk="$tmp/wrong.psk" "127.0.0.1:$server_port" disk
# With connections that live.
no_key "$server_pid" "$tmp/server.psk" "$tmp/disk"
no_key "$gateway_pid" "$tmp/server.psk" "$sock"
# Without any.
stop_process "$gateway_pid"
no_key "$server_pid" "$tmp/server.psk" "$tmp/disk"

# The kernel's own core file.
pattern=$(cat /proc/sys/kernel/core_pattern)
case $pattern in
'|'*) skip "all passed but the kernel's own core files, which it gives to a program" ;;
/*) ;;
*) pattern=$tmp/$pattern ;;
esac
stop_process "$server_pid"

# abort_server KEEP OPTION...: a server with a core limit of KEEP ("": its own) dies of SIGABRT;
# prints the core file's name, if there is one.
abort_server() {
	local keep=$1 pid core
	shift
	# The line of the server before is no sign of this one.
	rm -f "$tmp/aborts.log"
	(
		cd "$tmp" || exit
		ulimit -c unlimited
		exec "$RTRS_SERVER" --listen tcp://127.0.0.1:0 --control none "$@" "core=$tmp/disk"
	) >"$tmp/aborts.log" 2>&1 &
	pid=$!
	wait_line "$tmp/aborts.log" 'ready, version'
	[ -z "$keep" ] || prlimit --pid $pid --core="$keep"
	kill -ABRT $pid
	expect_exit $pid $((128 + 6))
	core=$(sed "s/%e/rtrs-server/g; s/%p/$pid/g" <<<"$pattern")
	[ -f "$core" ] || core=$core.$pid
	if [ -f "$core" ]; then
		mv "$core" "$tmp/core"
		echo "$tmp/core"
	fi
}
tls=(--tls=require --tls-psk="$tmp/server.psk")

core=$(abort_server "")
[ -n "$core" ] || skip "all passed but the kernel's own core files: none is named '$pattern'"
rm "$core"
for keys in "${tls[*]}" "--auth=require --auth-psk=$tmp/server.psk"; do
	# shellcheck disable=SC2086	# options are words
	core=$(abort_server "" $keys)
	[ -z "$core" ] || fail "a server with $keys writes a core file"
done
core=$(abort_server unlimited: "${tls[@]}")
[ -n "$core" ] || fail "prlimit does not bring core files back"
python3 "$tmp/in_core.py" "$core" "$tmp/server.psk" "$tmp/disk" ||
	fail "a key is in the kernel's core file"
