#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A core file of a server or a client of TLS does not have the pre-shared keys, neither as bytes nor
# as the digits of the file, while connections live and after connections that were refused.  The
# file is a core file otherwise.
. ./tests/functions.sh
requires_server; requires_gateway; requires_plain_build
requires nbdcopy --version

umask 077
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
'|'*) echo "the kernel gives core files to a program: not tried" ;;
*)
	(
		cd "$tmp" || exit
		ulimit -c unlimited
		exec "$RTRS_SERVER" --listen tcp://127.0.0.1:0 --control none \
			--tls=require --tls-psk="$tmp/server.psk" "core=$tmp/disk"
	) >"$tmp/aborts.log" 2>&1 &
	aborts=$!
	# The other server has the file locked until it ends.
	stop_process "$server_pid"
	wait_line "$tmp/aborts.log" 'ready, version'
	kill -ABRT $aborts
	expect_exit $aborts $((128 + 6))
	[[ $pattern = /* ]] || pattern=$tmp/$pattern
	core=$(sed "s/%e/rtrs-server/g; s/%p/$aborts/g" <<<"$pattern")
	[ -f "$core" ] || core=$core.$aborts
	if [ -f "$core" ]; then
		python3 "$tmp/in_core.py" "$core" "$tmp/server.psk" "$tmp/disk" ||
			fail "a key is in the kernel's core file"
		rm "$core"
	else
		echo "no core file named '$pattern': not tried"
	fi ;;
esac
