#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# rtrs-bench: does as many IOs as it says, finds a wrong byte, writes only when it is told to, ends
# when the server is lost or it is asked to, says what is wrong with its options; and it has no
# thread for an IO.
. ./tests/functions.sh
requires_server

# Sparse and of zeroes: what is there was written.
truncate -s 4M "$tmp/disk"
start_server "disk=$tmp/disk"
server=127.0.0.1:$server_port
bench=$top_builddir/rtrs-bench
bench() {
	$(wrapper) "$bench" "$@"
}
# differs REGEX OPTION...: blocks do, and it says so.
differs() {
	local regex=$1 status=0
	shift
	bench "$@" "$server" disk 2>"$tmp/differs.err" || status=$?
	is "status" $status 1
	grep -E "$regex" "$tmp/differs.err"
}
# value JSON-FILE PYTHON: of the object d.
value() {
	/usr/bin/python3 -c "import json, sys; d = json.load(open(sys.argv[1])); print($2)" "$1"
}

# ---- reads ----
bench --number-ios=3000 --iodepth=32 --json "$server" disk >"$tmp/read.json"
is "IOs" "$(value "$tmp/read.json" "d['read']['ios'], d['read']['bytes'], d['write']['ios']")" \
	"3000 12288000 0"
is "times" "$(value "$tmp/read.json" \
	"0 < d['read']['p50_ns'] <= d['read']['p99_ns'] <= d['read']['p999_ns'] <= d['read']['max_ns']")" True
is "rate" "$(value "$tmp/read.json" "abs(d['read']['iops'] * d['elapsed_s'] - 3000) < 1")" True
# More than the server takes in one request, over several connections.
bench --rw=read --bs=1m --number-ios=20 --iodepth=4 --connections=4 "$server" disk >"$tmp/read.text"
grep -E '^read +20 ' "$tmp/read.text"
grep -E '^ +IOs +IOPS +MB/s +mean +p50 +p99 +p99.9 +max$' "$tmp/read.text"
# Nothing was written, and nothing can be: others may be writing.
cmp -n 4194304 "$tmp/disk" /dev/zero
grep -q 'opened: disk, ro' "$server_log"

# ---- writes and verify ----
# Never written with --verify.
differs 'offset 0: no block that was written with --verify' --rw=read --verify --number-ios=1
# All of them are counted, and the first ten are told.
for n in 9 10 11 40; do
	differs 'offset 0: ' --rw=read --verify --number-ios="$n" >"$tmp/differs.out"
	is "blocks told of $n" "$(grep -c 'verify: block at offset ' "$tmp/differs.err")" \
		$((n < 10 ? n : 10))
	grep -x "verified $n blocks: $n differ" "$tmp/differs.out"
done
bench --rw=write --verify --number-ios=1024 --iodepth=16 --json "$server" disk >"$tmp/write.json"
is "read back" "$(value "$tmp/write.json" "d['write']['ios'], d['verified'], d['differing']")" \
	"1024 1024 0"
bench --rw=randrw --rwmixread=70 --verify --fua --number-ios=4000 --iodepth=16 \
	--json "$server" disk >"$tmp/mix.json"
is "mix" "$(value "$tmp/mix.json" \
	"d['read']['ios'] + d['write']['ios'] == 4000, d['read']['ios'] > d['write']['ios'] > 0, d['differing']")" \
	"True True 0"
bench --rw=read --verify --number-ios=1024 --iodepth=16 "$server" disk |
	grep -x 'verified 1024 blocks: 0 differ'
# A byte, and a block that is at another place.
cp "$tmp/disk" "$tmp/good"
printf '\xff' | dd of="$tmp/disk" bs=1 seek=$((77 * 4096 + 1000)) conv=notrunc
cmp -s "$tmp/disk" "$tmp/good" && printf '\x0f' |
	dd of="$tmp/disk" bs=1 seek=$((77 * 4096 + 1000)) conv=notrunc
differs 'offset 315392: other bytes from byte 1000 of the block on' --rw=read \
	--verify --number-ios=1024
dd if="$tmp/good" of="$tmp/disk" bs=4096 skip=3 seek=77 count=1 conv=notrunc
differs 'offset 315392: the block of offset 12288' --rw=read --verify --number-ios=1024

# ---- a part of the export ----
truncate -s 0 "$tmp/disk"
truncate -s 4M "$tmp/disk"
bench --rw=write --offset=1m --size=64k --number-ios=100 "$server" disk
is "first byte" "$(cmp "$tmp/disk" /dev/zero | grep -o -E "[0-9]+,")" 1048577,
cmp -i $((1048576 + 65536)):0 -n $((4194304 - 1048576 - 65536)) "$tmp/disk" /dev/zero

# ---- which blocks, by --seed ----
# written_by SEED FILE: the blocks that random writes touched.
written_by() {
	truncate -s 0 "$tmp/disk"
	truncate -s 4M "$tmp/disk"
	bench --rw=randwrite --number-ios=40 --seed="$1" "$server" disk >"$tmp/seed.text"
	od -A d -t x8 -w4096 -v "$tmp/disk" | grep -v -E '^[0-9]+( 0{16})*$' | cut -d ' ' -f 1 >"$2"
}
written_by 1 "$tmp/seed1"
written_by 1 "$tmp/seed1.again"
written_by 2 "$tmp/seed2"
[ "$(wc -l <"$tmp/seed1")" -gt 20 ] ||
	fail "40 random writes have touched $(wc -l <"$tmp/seed1") blocks"
cmp "$tmp/seed1" "$tmp/seed1.again"
! cmp -s "$tmp/seed1" "$tmp/seed2" || fail "another seed, and the same blocks"

# ---- keys and looking ----
for registration in auto window static; do
	bench --registration=$registration --poll=0 --number-ios=100 "$server" disk |
		grep -E '^read +100 '
done

# ---- what is wrong ----
# wrong REGEX OPTION...: a mistake in what follows is told in one line.
wrong() {
	local regex=$1
	shift
	expect_failure 2 "^rtrs-bench: $regex" "$bench" "$@"
}
size='optionally with K, M, G or T$'
for number in '' x -1 ' 1' 1x 1.5G 0x10 99999999999999999999; do
	for option in iodepth runtime seed connections poll rwmixread; do
		wrong "--$option '$number': expected a number( of (micro)?seconds)? from [0-9]+ to [0-9]+$" "--$option=$number" "$server" disk
	done
	wrong "--bs '$number': expected a multiple of 512 from 512 to 64M$" "--bs=$number" \
		"$server" disk
	wrong "--offset '$number': expected a size from 0 to 1048576T, $size" "--offset=$number" \
		"$server" disk
	wrong "--size '$number': expected a size from 1 to 1048576T, $size" "--size=$number" \
		"$server" disk
	wrong "--number-ios '$number': expected a number of IOs from 1 to 1048576T, $size" \
		"--number-ios=$number" \
		"$server" disk
done
wrong "--number-ios '0': expected a number of IOs from 1 to " --number-ios=0 "$server" disk
wrong "--runtime '5s': expected a number of seconds from 1 " --runtime=5s "$server" disk
wrong "--poll '1ms': expected a number of microseconds from 0 " --poll=1ms "$server" disk
wrong "--iodepth '0': expected a number from 1 to 4096$" --iodepth=0 "$server" disk
wrong "--bs '1000': expected a multiple of 512 from 512 to 64M$" --bs=1000 "$server" disk
for word in '' trim READ; do
	wrong "--rw '$word': expected read, randread," "--rw=$word" "$server" disk
	wrong "--transport '$word': expected auto, rdma or tcp$" "--transport=$word" "$server" disk
	wrong "--registration '$word': expected auto, window or static$" "--registration=$word" \
		"$server" disk
done
long=$(printf '%0254d' 0)
for name in '' a.b a/b "${long}0"; do
	wrong "--sessname '$name': expected 1..254 characters without '/' and '.'$" \
		"--sessname=$name" "$server" disk
done
bench "--sessname=$long" --number-ios=1 "$server" disk >/dev/null
for name in '' "${long}0"; do
	wrong "export=$name: expected a name of 1..254 characters$" "$server" "$name"
done
# What would do nothing.
wrong "--rwmixread '30': expected with --rw=rw" --rwmixread=30 "$server" disk
wrong "--seed '7': expected with --rw=rw or " --rw=read --seed=7 "$server" disk
wrong "--seed '7': expected with --rw=rw or " --seed=7 --rw=write "$server" disk
for reads in --rw=randread --rw=read '--rw=rw --rwmixread=100'; do
	# shellcheck disable=SC2086 # words
	wrong '--fua: expected with a --rw that writes' --fua $reads "$server" disk
done
bench --rw=rw --seed=7 --number-ios=4 --offset=4K --size=8k "$server" disk >/dev/null
# Where the server is.
wrong 'server=ftp://127.0.0.1: unknown transport' ftp://127.0.0.1 disk
wrong 'server=127.0.0.1:x: the port' 127.0.0.1:x disk
expect_failure 1 '^rtrs-bench: server 127.0.0.256: cannot resolve "127.0.0.256"' \
	"$bench" 127.0.0.256 disk
wrong 'server=::1: .*brackets' ::1 disk
wrong 'server=unix:none: expected unix: and an absolute path' unix:none disk
wrong 'server=: expected HOST' '' disk
wrong 'transport=tcp contradicts server=rdma://' --transport=tcp "rdma://$server" disk
wrong 'transport=rdma contradicts server=unix:/' --transport=rdma "unix:/none" disk
wrong 'expected HOST\[:PORT\] and EXPORT, not 1 arguments' "$server"
bench --transport=tcp --number-ios=1 "tcp://$server" disk >/dev/null
# What does not fit the export: only what was given is named.
wrong "--size '8388608': expected at most 4194304, the bytes of the export$" --size=8m \
	"$server" disk
wrong "--size '4194304': expected at most 4193792, the bytes of the export behind --offset$" \
	--offset=512 --size=4M \
	"$server" disk
wrong "--offset '8388608': expected less than 4194304, the bytes of the export$" --offset=8M \
	"$server" disk
wrong "--offset '4194304': expected less than 4194304, " --offset=4M --size=4K "$server" disk
wrong "--offset '100': expected a multiple of 512, the export's blocks$" --offset=100 "$server" disk
wrong "--bs '8388608': expected at most 4194304, the bytes of the export$" --bs=8M "$server" disk
wrong "--bs '4096': expected at most 512, the bytes of the export behind --offset$" \
	--offset=4193792 "$server" disk
wrong "--bs '8192': expected at most 4096, the bytes of --size$" --bs=8K --size=4K "$server" disk
wrong '--verify with --iodepth=16: expected fewer IOs in flight than blocks of --bs, here 16$' \
	--verify --size=64k --iodepth=16 "$server" disk
expect_failure 1 "export 'none' of server=$server: the server has no such export for this client; it has disk" "$bench" "$server" none
expect_failure 1 "server unix:$tmp/none: " "$bench" "unix:$tmp/none" disk

# No descriptors, here or in a session of many connections.
for limit in 12 64; do
	expect_failure 1 "Too many open files \(RLIMIT_NOFILE is $limit: raise it, .*\)$" bash \
		-c "ulimit -n $limit; exec \"\$@\"" \
		bash "$bench" --connections=100 "$server" disk
done

# ---- the end ----
# $1: wait until rtrs-bench, $bench_pid, has its session and reads.
bench_reads() {
	"$top_builddir/rtrs-bench" --runtime=1000 --iodepth=4 --sessname="$1" "$server" disk \
		>"$tmp/$1.text" 2>"$tmp/$1.err" &
	bench_pid=$!
	wait_until "reads of $1" reads_of "$1"
}
# The session has had more reads than can be in flight.
reads_of() {
	"$top_builddir/rtrsctl" --json stats >"$tmp/stats.json"
	[ "$(value "$tmp/stats.json" \
		"sum(p['stats']['read']['count'] for s in d['sessions'] if s['name'] == '$1'
		for p in s['paths'])")" -gt 4 ]
}
# Nothing is pending any more.
signal_taken() {
	grep -q -E '^ShdPnd:[[:space:]]*0*$' "/proc/$1/status"
}
bench_reads early
# The main thread, the loop, for four IOs, the log, and the bound of the end: no thread polls.  TSan
# has a thread of its own.
threads=4
case $SANITIZERS in *thread*) threads=5 ;; esac
tasks=("/proc/$bench_pid/task"/*)
is "threads" ${#tasks[@]} $threads
kill -TERM "$bench_pid"
expect_exit "$bench_pid" 0
grep -E '^read +[0-9]+ ' "$tmp/early.text"

# While the server stands still nothing looks for answers.
bench_reads idle
stop_all_threads "$server_pid"
idle_for 4 "$bench_pid"
kill -CONT "$server_pid"
[ "$idle_ticks" -lt 100 ] || fail "$idle_ticks ticks in 4 s"
kill -INT "$bench_pid"
expect_exit "$bench_pid" 0
[ ! -s "$tmp/idle.err" ] || fail "stderr is no terminal, and it was written to"

# A server that does not answer is not waited for when a second signal comes.
bench_reads twice
stop_all_threads "$server_pid"
for again in no yes; do
	kill -INT "$bench_pid"
	[ $again = yes ] || wait_until "the handler of the first signal" signal_taken "$bench_pid"
done
expect_exit "$bench_pid" 130
kill -CONT "$server_pid"

# ---- what is seen of it meanwhile ----
# on_terminal OPTION...: on a terminal where ^C is typed after three lines of progress.
on_terminal() {
	/usr/bin/python3 - "$bench" "$@" "$server" disk <<'END'
import os, pty, re, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
text, typed = b"", False
while True:
    try:
        data = os.read(terminal, 65536)
    except OSError:
        break		# it has ended
    if not data:
        break
    text += data
    if not typed and text.count(b" s left, ") >= 3:
        os.write(terminal, b"\x03")
        typed = True
print(text.decode())
status = os.waitpid(pid, 0)[1]
assert status == 0, status
line = rb"\r\x1b\[K(\d+) s left, \d+ IOPS, p99 (?:-|\d+(?:\.\d)? (?:us|ms|s))"
shown, _, report = text.rpartition(b"\r\x1b[K")
if "--json" in sys.argv:
    assert b"\x1b" not in text and text.startswith(b"{"), text
else:
    assert re.fullmatch(b"(" + line + rb")+\^C(" + line + rb"|\r\x1b\[Kends, \d+ in flight)*", shown), shown
    left = [int(s) for s in re.findall(line, shown)]
    assert len(left) >= 3 and left == sorted(left, reverse=True) and left[-1] < left[0] < 1000, left
    assert re.match(rb"disk of [^\r]*\r\n +IOs ", report), report
END
}
on_terminal --runtime=1000 --iodepth=4
# Longer than it takes to a first line.
on_terminal --runtime=2 --json

bench_reads lost
kill_process "$server_pid"
expect_exit "$bench_pid" 1
grep -E 'read of 4096 bytes at offset [0-9]+: Input/output error' "$tmp/lost.err"
