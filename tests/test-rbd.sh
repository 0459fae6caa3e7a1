#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Images of a real Ceph as exports: random operations against a model, with the image itself as a
# second reader; snapshots, namespaces, LUKS; sizes; who has the lock; what each refusal and each
# error of the cluster says.
. ./tests/functions.sh
requires_server; requires_plugin
requires_plain_build
requires nbdsh --version
requires nbdinfo --version
requires nbdcopy --version
. "$top_srcdir/tests/ceph.sh"

# refused SPEC WORDS: a server does not start with it, and says why.
refused() {
	local status=0
	timeout $((3 * TIMEOUT_S)) "$RTRS_SERVER" --strict --listen "unix:$tmp/refused.sock" \
		"${@:3}" "$1" >"$tmp/refused" 2>&1 || status=$?
	cat "$tmp/refused"
	[ $status -eq 1 ] || fail "status $status"
	grep -q -E -- "$2" "$tmp/refused"
}

ceph_start
image disk 64M
image small 8M
rbd_ snap create rbd/small@before
printf 'a passphrase' >"$tmp/key"
image luks 40M
rbd_ encryption format rbd/luks luks2 "$tmp/key"
rbd_ namespace create rbd/ns
rbd_ create --size 8M rbd/ns/disk
rbd_ create --size 8M --image-feature layering rbd/plain

ceph_user gw mon 'profile rbd' osd 'profile rbd pool=rbd'
ceph_user reader mon 'profile rbd' osd 'profile rbd-read-only pool=rbd'
ceph_user blind mon 'allow r'

# What is wrong is said before anything is served.
conf=conf=$CEPH_CONF
refused "d=rbd:rbd/disk,$conf,id=none" "the cluster does not let 'client.none' in: .* ',id=USER'"
refused "d=rbd:rbd/disk,$conf,id=reader" "the user needs the capabilities .*, or export it read-only: add ',readonly'"
# Ceph 18 and later do not answer a user without capabilities on the osds.
"$RTRS_SERVER" --strict --listen "unix:$tmp/blind.sock" "d=rbd:rbd/disk,$conf,id=blind" \
	>"$tmp/blind" 2>&1 &
blind=$!
cleanup_fn kill_process $blind
wait_line "$tmp/blind" "the user needs the capabilities \"mon 'profile rbd' osd|\
still waiting for the osds of the cluster: .* has the user capabilities on them"
if grep 'still waiting' "$tmp/blind"; then
	kill_process $blind
else
	expect_exit $blind 1
fi
refused "d=rbd:rbd/none,$conf" "image 'none': No such file"
refused "d=rbd:rbd/small@none,readonly,$conf" "image 'small', snapshot none: No such file"
refused "d=rbd:none/disk,$conf" "pool 'none': No such file"
refused "d=rbd:rbd/disk,conf=$tmp/none.conf" "'$tmp/none.conf' cannot be read.* ',conf=FILE'"
mkfifo "$tmp/fifo"
refused "d=rbd:rbd/disk,conf=$tmp/fifo" "'$tmp/fifo' cannot be read: expected a regular file: "
refused "d=rbd:rbd/disk,$conf,luks=$tmp/key" "remove ',luks'"
rbd_ config image set rbd/plain rbd_cache true
refused "d=rbd:rbd/plain,$conf" 'image has rbd_cache=true, which breaks promises of the server'
refused "d=rbd:rbd/plain,$conf,readonly" 'image has rbd_cache=true'
rbd_ config image remove rbd/plain rbd_cache
rbd_ config pool set rbd rbd_cache true
refused "d=rbd:rbd/plain,$conf" '"rbd config pool set" it to false'
rbd_ config pool remove rbd rbd_cache
# A living writer would give its lock away, and lose its disk.
image busy 8M
timeout $((4 * TIMEOUT_S)) rbd bench --io-type write --io-size 4K --io-total 10G rbd/busy \
	>"$tmp/bench.out" 2>&1 &
bench=$!
locked() { rbd_ lock ls rbd/busy | grep -q '^client'; }
wait_until "a writer" locked
refused "d=rbd:rbd/busy,$conf" "is locked by .*: waited 1 s" --lock-timeout 1
must_fail grep 'Read-only file system' "$tmp/bench.out"
must_fail process_ended $bench
# The cluster would give the dead writer up after 30 s.
ceph_ osd blocklist add "$(rbd_ lock ls rbd/busy | awk '/^client/ { print $NF }')"
kill -TERM $bench || true	# fenced, it may end by itself
wait $bench || true
printf 'another one' >"$tmp/wrong"
refused "d=rbd:rbd/luks,$conf,luks=$tmp/wrong" "the passphrase in '$tmp/wrong' is not the image's"
refused "d=rbd:rbd/luks,$conf,luks=$tmp/none" "the passphrase file '$tmp/none': No such file"
: >"$tmp/empty"
refused "d=rbd:rbd/luks,$conf,luks=$tmp/empty" "expected 1 to 2047 bytes"

start_server --control "$tmp/control" "disk=$(image_spec disk)" \
	"before=$(image_spec small@before),readonly,id=reader" "small=$(image_spec small),id=gw" \
	"look=$(image_spec disk),readonly,id=reader" \
	"luks=$(image_spec luks),luks=$tmp/key" "ns=$(image_spec ns/disk)" \
	"plain=$(image_spec plain)"
grep "disk: exports Ceph image 'rbd:rbd/disk', 67108864 bytes" "$server_log"
grep "plain: 'rbd:rbd/plain' has no feature exclusive-lock" "$server_log"
# The threads of Ceph's libraries have no more rights than the server's own.
for set in CapEff CapPrm CapInh NoNewPrivs Seccomp; do
	[ "$(grep -h "^$set:" "/proc/$server_pid/task/"*/status | sort -u | wc -l)" -eq 1 ] ||
		fail "threads of one server differ in $set"
done
# Nor does one of them block SIGSYS (31), by which a denied call would end the server.
while read -r _ mask; do
	[ $((16#$mask >> 30 & 1)) -eq 0 ] || fail "a thread of the server blocks SIGSYS"
done < <(grep -h '^SigBlk:' "/proc/$server_pid/task/"*/status)
start_nbdkit "server=127.0.0.1:$server_port"
at() { echo "nbd+unix:///$1?socket=$sock"; }

# map EXPORT: its extents.
map() { nbdinfo --map "$(at "$1")" | awk '{ print $1, $2, $4 }'; }

# The parts of the server have the image's name as it was given.
"$top_builddir/rtrsctl" --socket "$tmp/control" show | grep -E '^ *path +rbd:rbd/disk$'

# Random operations: what is read is what was written, over the export, and in the image itself.
# "filled" first: with LUKS a block that was never written has no content.
random_ops() {
	nbdsh_run "$(at "$1")" <<-PY
	import random
	random.seed($RANDOM)
	size = h.get_size()
	model = bytearray(size)
	if "${2-}" == "filled":
	    model = bytearray(b"f" * size)
	    for at in range(0, size, 1 << 20):
	        h.pwrite(b"f" * (1 << 20), at)
	for i in range(400):
	    n = 512 * random.choice((1, 8, 64, 256, 700))
	    at = 512 * random.randrange((size - n) // 512)
	    what = random.randrange(8)
	    if what < 3:
	        data = bytes([random.randrange(1, 256)]) * n
	        h.pwrite(data, at, random.choice((0, nbd.CMD_FLAG_FUA)))
	        model[at:at + n] = data
	    elif what == 3:
	        h.zero(n, at, random.choice((0, nbd.CMD_FLAG_NO_HOLE)))
	        model[at:at + n] = bytes(n)
	    elif what == 4:
	        h.trim(n, at)
	        got = h.pread(n, at)
	        assert all(g in (0, m) for g, m in zip(got, model[at:at + n])), (i, at, n)
	        model[at:at + n] = got
	    elif what == 5:
	        h.flush()
	    else:
	        assert h.pread(n, at) == model[at:at + n], (i, at, n)
	h.flush()
	for at in range(0, size, 1 << 20):
	    assert h.pread(1 << 20, at) == model[at:at + (1 << 20)], at
	open("$tmp/model", "wb").write(model)
	PY
}
random_ops disk
image_export disk "$tmp/image"
cmp "$tmp/model" "$tmp/image"
# A reader beside the writer sees the same.
nbdcopy "$(at look)" "$tmp/looked"
cmp "$tmp/model" "$tmp/looked"
# Behind LUKS there is no hole: a block that was never written has no content.
map luks | diff -u - <(echo "0 $((24 << 20)) data")
random_ops luks filled
image_export luks "$tmp/image"
grep -q -a fffffffffff "$tmp/model"
must_fail grep -q -a fffffffffff "$tmp/image"
random_ops ns
random_ops plain
image_export plain "$tmp/image"
cmp "$tmp/model" "$tmp/image"

# Holes: a map of what was never written, and no byte of data is in a hole.
nbdsh_run "$(at small)" <<-'PY'
h.pwrite(b"a" * 512, 4 << 20)
h.flush()
PY
map small | diff -u - <(printf '%s\n' "0 $((4 << 20)) hole,zero" "$((4 << 20)) $((4 << 20)) data")
# Zeroes make a hole, unless the client says no.
nbdsh_run "$(at small)" <<-'PY'
h.pwrite(b"a" * (4 << 20), 0)
h.zero(4 << 20, 0, nbd.CMD_FLAG_NO_HOLE)
h.zero(4 << 20, 4 << 20)
PY
map small | diff -u - <(printf '%s\n' "0 $((4 << 20)) data" "$((4 << 20)) $((4 << 20)) hole,zero")

# A snapshot stays what it was.
nbdsh_run "$(at before)" <<-'PY'
assert h.is_read_only()
assert h.pread(512, 4 << 20) == bytes(512)
PY

# A new size is known without a word of an administrator.
rbd_ resize --size 96M rbd/disk
wait_line "$server_log" "disk: 'rbd:rbd/disk' has grown: 100663296 bytes"
[ "$(nbdinfo --size "$(at disk)")" = 100663296 ]

# One name for writing; another server waits for the lock, and says for whom.
expect_failure 1 "is already exported for writing as 'disk'" \
	"$top_builddir/rtrsctl" --socket "$tmp/control" export add "again=$(image_spec disk)"
refused "d=$(image_spec disk)" "is locked by another server on this machine: waited 1 s" \
	--lock-timeout 1
owner=$(rbd_ lock ls rbd/disk | awk '/^client/ { print $NF }')
refused "d=$(image_spec disk)" "is locked by $owner: waited 1 s" --lock-timeout 1 \
	--state-dir "$tmp/s2"

# A full pool fails what would need room, and says so; what needs none goes on.
full() {
	ceph_ osd set-nearfull-ratio "$1"
	ceph_ osd set-backfillfull-ratio "$2"
	ceph_ osd set-full-ratio "$3"
}
pool_is_full() { ceph_ health detail | grep -q "pool 'rbd' is full"; }
full 0.0000001 0.0000002 0.0000003
wait_until "a full pool" pool_is_full
nbdsh_run "$(at disk)" <<-'PY'
h.pwrite(b"b" * 4096, 0)
must_fail(lambda: h.pwrite(b"b" * 4096, 90 << 20), "ENOSPC", "the pool is not full")
PY
wait_line "$server_log" 'disk: WRITE .* failed: the pool is full: make room in it'
full 0.85 0.9 0.95

# A fenced server fails all, and says what to do; opened anew, the export serves again.
ceph_ osd blocklist add "$owner"
nbdsh_run "$(at disk)" <<-'PY'
for n in range(100):
    try:
        h.pread(4096, 0)
    except nbd.Error as e:
        assert e.errno == "EIO", e
        break
else:
    raise SystemExit("the server is not fenced")
PY
wait_line "$server_log" 'disk: READ .* failed: the cluster has fenced this server'
"$top_builddir/rtrsctl" --socket "$tmp/control" export remove disk
# The gateway may not have closed it yet.
wait_until "the image to come back" \
	"$top_builddir/rtrsctl" --socket "$tmp/control" export add "disk=$(image_spec disk)"
nbdsh_run "$(at disk)" <<-'PY'
h.pwrite(b"d" * 4096, 0)
assert h.pread(4096, 0) == b"d" * 4096
PY
# A snapshot by the server has what was answered, and nothing that follows.
"$top_builddir/rtrsctl" --socket "$tmp/control" export snapshot disk then |
	grep -F "disk: snapshot rbd:rbd/disk@then"
nbdsh_run "$(at disk)" <<<'h.pwrite(b"e" * 4096, 0)'
rbd_ export --no-progress rbd/disk@then "$tmp/then"
cmp -n 4096 "$tmp/then" <(printf 'd%.0s' {1..4096})
rm "$tmp/then"
expect_failure 1 "export 'disk': no snapshot: rbd:rbd/disk@then: a snapshot has this name already" \
	"$top_builddir/rtrsctl" --socket "$tmp/control" export snapshot disk then
rbd_ snap rm --no-progress rbd/disk@then
ceph_ osd blocklist clear

# An image that was removed comes back when its clients have closed it, and its message says how.
nbdsh_run "$(at disk)" <<-PY
import subprocess
def rtrsctl(*words):
    return subprocess.run(["$top_builddir/rtrsctl", "--socket", "$tmp/control", *words],
                          stderr=subprocess.PIPE, text=True)
h.pwrite(b"k" * 4096, 0)
assert rtrsctl("export", "remove", "disk").returncode == 0
added = rtrsctl("export", "add", "disk=$(image_spec disk)")
assert added.returncode == 1 and "is still open as 'disk', which was removed" in added.stderr, added
h.pwrite(b"k" * 4096, 0)
assert rtrsctl("export", "kick", "disk").returncode == 0
PY
wait_until "the image to come back" \
	"$top_builddir/rtrsctl" --socket "$tmp/control" export add "disk=$(image_spec disk)"

# The commands of rtrs-guide(7), with its files below $tmp.
mkdir -p "$tmp/etc/ceph" "$tmp/etc/rtrs-server.conf.d"
sed "s,^\tkeyring.*,," "$CEPH_CONF" >"$tmp/etc/ceph/ceph.conf"
printf '[global]\nkeyring = %s\n' "$tmp/etc/ceph/ceph.client.rtrs.keyring" \
	>>"$tmp/etc/ceph/ceph.conf"
printf '[server]\nlisten = unix:%s\n' "$tmp/guide.sock" >"$tmp/etc/rtrs-server.conf"
start_server --config "$tmp/etc/rtrs-server.conf" --control "$tmp/guide.ctl"
rtrsctl() { "$top_builddir/rtrsctl" --socket "$tmp/guide.ctl" "$@"; }
known=0
/usr/bin/python3 "$top_srcdir/tests/guide-commands.py" "$top_srcdir/man/rtrs-guide.pod" ceph \
	"$tmp" >"$tmp/commands"
while IFS= read -r word <&3; do
	eval "command=$word"
	case $command in
	"rbd create"* | "rbd resize"* | "ceph auth "*) eval "$command" ;;
	cat*)
		eval "$command"
		# The guide's server has its Ceph in /etc.
		echo "conf = $tmp/etc/ceph/ceph.conf" >>"$tmp/etc/rtrs-server.conf.d/disk2.conf"
		;;
	"rtrsctl reload") eval "$command" ;;
	*) fail "rtrs-guide(7) prints a command that no test runs: $command" ;;
	esac
	known=$((known + 1))
done 3<"$tmp/commands"
[ $known -eq 5 ]
wait_line "$server_log" "disk2: 'rbd:rbd/disk2' has grown: 100663296 bytes"
start_nbdkit "server=unix:$tmp/guide.sock"
[ "$(nbdinfo --size "$(at disk2)")" = 100663296 ]
