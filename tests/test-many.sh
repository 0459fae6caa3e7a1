#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Four times as many exports, or clients, cost four times as many instructions, and not sixteen
# times: --check, which compares each name with all others, a start and a reload, which compare each
# storage, too, and what rtrsctl tells of two answers.  Callgrind counts, and no clock.
. ./tests/functions.sh
requires_server
requires_plain_build
requires valgrind --version

few=500
many=$((4 * few))

# costs N COMMAND...: the instructions of COMMAND, in $n
costs() {
	valgrind --tool=callgrind --callgrind-out-file="$tmp/callgrind" "$@" \
		>"$tmp/out" 2>"$tmp/valgrind" || { cat "$tmp/valgrind"; fail "$*"; }
	n=$(sed -n 's/.*Collected : \([0-9]*\).*/\1/p' "$tmp/valgrind")
	[ -n "$n" ] || { cat "$tmp/valgrind"; fail "callgrind does not tell"; }
}

# grows_as_many WHAT: 4.5 times leaves room for logarithms
grows_as_many() {
	echo "$1: $cost_of_few instructions for $few, $cost_of_many for $many"
	((2 * cost_of_many <= 9 * cost_of_few)) || fail "$1: this is worse than linear"
}

for size in "$few" "$many"; do
	for ((i = 0; i < size; i++)); do
		printf '[export "disk%d"]\npath = %s\nallow = psk:gw%d\n' "$i" "$tmp/$i" "$i"
	done >"$tmp/conf$size"
done
check=("$RTRS_SERVER" --listen "unix:$tmp/sock" --check --config)
costs "${check[@]}" "$tmp/conf$few"
cost_of_few=$n
costs "${check[@]}" "$tmp/conf$many"
cost_of_many=$n
[ "$(grep -c '^+disk' "$tmp/out")" = "$many" ] || fail "exports are missing"
grows_as_many "--check"

# conf DIR: $size exports of files in $tmp/DIR, with names of their own.
conf() {
	seq 0 $((size - 1)) |
		sed "h; s,.*,[export \"$1&\"],p; g; s,.*,path = $tmp/$1/&," >"$tmp/conf"
}

# lives: a server with files, which are replaced by others, none of which is there.
lives() {
	local pid log=$tmp/lives
	rm -f "$log" "$tmp/ready"
	conf files
	LD_PRELOAD=$tmp/valgrind-uring.so valgrind --tool=callgrind --fair-sched=yes \
		--callgrind-out-file="$tmp/callgrind" "$RTRS_SERVER" --seccomp=off --threads 1 \
		--listen "unix:$tmp/sock" --control "$tmp/ctl" --config "$tmp/conf" \
		--ready-fd 9 9>"$tmp/ready" >"$log" 2>&1 &
	pid=$!
	cleanup_fn kill_process "$pid"
	wait_until "the server" test -s "$tmp/ready"
	conf away
	"$top_builddir/rtrsctl" --socket "$tmp/ctl" reload >"$tmp/out" ||
		fail "reload: $(tail -n 1 "$tmp/out")"
	[ "$(grep -c "^away[0-9]* failed" "$tmp/out")" = "$size" ] || fail "exports are missing"
	stop_process "$pid"
	n=$(sed -n 's/.*Collected : \([0-9]*\).*/\1/p' "$log")
	[ -n "$n" ] || { cat "$log"; fail "callgrind does not tell"; }
}

cp "$top_builddir/.libs/valgrind-uring.so" "$tmp/"
few=400
many=$((4 * few))
mkdir "$tmp/files"
(cd "$tmp/files" && seq 0 $((many - 1)) | xargs truncate -s 4K)
size=$few
lives
cost_of_few=$n
size=$many
lives
cost_of_many=$n
grows_as_many "start and reload"

# A program on the socket $1 whose answers have $2 exports and as many sessions, each with a path
# and an open export; $3 is there when the program listens.
cat >"$tmp/program.py" <<'END'
import json, socket, sys
path, n, ready = sys.argv[1], int(sys.argv[2]), sys.argv[3]
def op(i):
    return {"count": i, "bytes": 4096 * i, "errors": 0}
def answer(i):
    def path_of(s, p):
        return {"name": "s%d/%d" % (s, p), "state": "connected", "transport": "tcp", "cipher": "",
                "peer": "192.0.2.%d" % p, "src_addr": "192.0.2.%d:%d" % (p, s),
                "stats": {"read": op(i)}}
    return {"ok": True, "control_version": 1, "program": "rtrs-server", "name": "many",
            "pid": 1, "now_ns": 1000000000 * (i + 1), "uptime_ns": 1000000000 * (i + 1),
            "exports": [{"name": "e%d" % e, "size": 1 << 20, "mode": "rw", "users": 1,
                         "stats": {"read": op(i)}} for e in range(n)],
            "sessions": [{"name": "s%d" % s, "uuid": "u%d" % s, "state": "up", "up_ns": 1,
                          "oldest_ns": 2000000000,
                          "paths": [path_of(s, 1)],
                          "devices": [{"export": "e%d" % s, "state": "open",
                                       "access_mode": "rw"}]} for s in range(n)]}
s = socket.socket(socket.AF_UNIX)
s.bind(path)
s.listen()
open(ready, "w").close()
i = 0
while True:
    c, _ = s.accept()
    for line in c.makefile("rb"):
        i += 1
        c.sendall(json.dumps(answer(i)).encode() + b"\n")
END
few=100
many=$((4 * few))
for size in "$few" "$many"; do
	/usr/bin/python3 "$tmp/program.py" "$tmp/ctl$size" "$size" "$tmp/ready$size" &
	cleanup_fn kill_process $!
	wait_until "the program" test -e "$tmp/ready$size"
done
for what in clients status; do
	ask() { costs "$top_builddir/rtrsctl" --socket "$tmp/ctl$1" "$what"; }
	ask "$few"
	cost_of_few=$n
	ask "$many"
	cost_of_many=$n
	[ "$(grep -c ' s[0-9]\|^s[0-9]' "$tmp/out")" -ge "$many" ] || fail "sessions are missing"
	grows_as_many "rtrsctl $what"
done
