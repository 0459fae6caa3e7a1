#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The file of config= is read again by a running rtrs-nbd, and by the plugin, under IO that must not
# fail: paths come and go, options change that may, and others are refused by name.  A mistake
# changes nothing, but keys of NBD clients are taken out before it is found.
. ./tests/functions.sh
. "$top_srcdir/tests/reload.sh"
requires_server; requires_plugin; requires_gateway
requires nbdinfo --version

conf=$tmp/gw.conf
server_ctl=(timeout "$TIMEOUT_S" "$top_builddir/rtrsctl" --socket "$tmp/server.ctl")
truncate -s 64M "$tmp/disk"

# conf LINE...: the file of config=
conf() {
	printf '%s\n' 'export = disk' "$@" >"$conf.new"
	mv "$conf.new" "$conf"
}
# listens ADDRESS...: the server's file
listens() {
	printf '[server]\n' >"$tmp/server.conf"
	printf 'listen = %s\n' "$@" >>"$tmp/server.conf"
	printf '[export "disk"]\npath = %s\n' "$tmp/disk" >>"$tmp/server.conf"
}
paths() { "${ctl[@]}" list | sed -n 's/^ *path //p' | sort | tr '\n' ' '; }
are_paths() { [ "$(paths)" = "$*" ]; }
of_session() {
	"${ctl[@]}" --json show | with_json '
[s] = a["sessions"]
print(s[sys.argv[1]])' "$1"
}

# ---- the server has two addresses, and a third one later ----

listens tcp://127.0.0.1:0 tcp://127.0.0.2:0
start_server --control "$tmp/server.ctl" --config "$tmp/server.conf"
port_of() { sed -n "s,.*tcp://$1:\([0-9]*\)\$,\1,p" "$server_log" | head -n 1; }
a=127.0.0.1:$(port_of 127.0.0.1)
b=127.0.0.2:$(port_of 127.0.0.2)
c=127.0.0.3:$(port_of 127.0.0.2)
listens "tcp://$a" "tcp://$b"

for front in nbdkit gateway; do
	conf "server = $a" 'io-timeout = 100' 'policy = round-robin'
	case $front in
	nbdkit) name=nbdkit ;;
	*) name=rtrs-nbd ;;
	esac
	"start_$front" config="$conf" control="$tmp/client.ctl" connections=3
	case $front in
	nbdkit) client_pid=$nbdkit_pid log=$nbdkit_log ;;
	*) client_pid=$gateway_pid log=$gateway_log ;;
	esac
	load disk "$uri"
	"${ctl[@]}" reload | cmp - /dev/null

	# A path more, the first one goes, and options; each is told, and holds.
	conf "server = $a" "path = $b" 'io-timeout = 100' 'policy = round-robin'
	says "+path $b"
	goes_on disk
	conf "server = $b" 'io-timeout = forever' 'max-reconnect-attempts = 7'
	says "-path $a" 'policy: round-robin -> min-inflight' 'io-timeout: 100 -> forever' \
		'max-reconnect-attempts: -1 -> 7'
	goes_on disk
	are_paths "$b "
	[ "$(of_session policy)" = min-inflight ]
	[ "$(of_session max_reconnect_attempts)" = 7 ]
	"${ctl[@]}" reload | cmp - /dev/null

	# What somebody has changed by command goes with the next reload: the file is the wish.
	"${ctl[@]}" path add "$a"
	"${ctl[@]}" policy round-robin
	says "-path $a" 'policy: round-robin -> min-inflight'
	# Unless it is saved; what is saved and removed leaves the file (test-path-save.sh).
	"${ctl[@]}" path add "$a"
	"${ctl[@]}" path save | diff - <(echo "saved path tcp://$a")
	"${ctl[@]}" reload | cmp - /dev/null
	are_paths "$a $b "
	"${ctl[@]}" path remove "$a"
	"${ctl[@]}" path save | cmp - /dev/null
	"${ctl[@]}" reload | cmp - /dev/null
	goes_on disk

	# What cannot change is refused by name, and nothing changes with it.
	conf "server = $a" 'io-timeout = 1' 'heartbeat = 300' 'mode = ro' \
		'max-reconnect-attempts = 7' 'registration = static'
	refused "mode: auto -> ro: restart $name for this, or take the change back$" \
		"registration: auto -> static: restart $name for this"
	are_paths "$b "
	grep -q "$conf rejected, configuration unchanged:" "$log"
	# A restart for a file of keys is not proposed while that file is not there.
	conf "server = $b" "tls-psk = $tmp/no-keys"
	refused "tls-psk=$tmp/no-keys: No such file or directory: create it"
	# An option of the command line wins, as at the start.
	conf "server = $b" 'io-timeout = 50' 'connections = 9' 'max-reconnect-attempts = 7'
	says 'io-timeout: forever -> 50'
	# What a reload has brought goes with its line.
	conf "server = $b" 'io-timeout = 50' 'connections = 9'
	says 'max-reconnect-attempts: 7 -> -1'
	conf "server = $b" 'io-timeout = 50' 'connections = 9' 'max-reconnect-attempts = 7'
	says 'max-reconnect-attempts: -1 -> 7'
	# For the next connection of each path (test-sim-multi), and at once.
	conf "server = $b" 'io-timeout = 50' 'max-reconnect-attempts = 7' 'heartbeat = 300' \
		'heartbeat-misses = 9' 'poll = 7'
	says 'heartbeat: 750; RDMA 5000 -> 300' 'heartbeat-misses: 2; RDMA 5 -> 9' 'poll: 100 -> 7'
	[ "$(of_session poll_us)" = 7 ]
	goes_on disk
	conf "server = $b" 'io-timeout = 50' 'max-reconnect-attempts = 7'
	says 'heartbeat: 300 -> 750; RDMA 5000' 'heartbeat-misses: 9 -> 2; RDMA 5' 'poll: 7 -> 100'
	# A mistake, and a file that is not there.
	conf "server = $a" 'io-timeot = 1' 'poll = x'
	refused "$conf:3: 'io-timeot' is no option .*io-timeout" "$conf:4: poll 'x': expected"
	conf
	refused '.*server= is missing'
	mv "$conf" "$conf.away"
	refused "$conf: No such file or directory"
	are_paths "$b "
	goes_on disk

	# The last path that is up waits for another one: the server does not listen there yet.
	conf "server = $c" 'io-timeout = 50' 'max-reconnect-attempts = 7'
	"${ctl[@]}" reload >"$tmp/late" &
	late=$!
	wait_until "both paths" are_paths "$b $c "
	goes_on disk
	listens "tcp://$a" "tcp://$b" "tcp://$c"
	"${server_ctl[@]}" reload
	expect_exit $late 0
	diff -u <(printf '%s\n' "+path $c" "-path $b") "$tmp/late"
	are_paths "$c "
	goes_on disk
	listens "tcp://$a" "tcp://$b"
	"${server_ctl[@]}" reload

	# A reload that waits ends with the program.
	load_end disk
	conf 'server = 127.0.0.4:9' 'io-timeout = 50' 'max-reconnect-attempts = 7'
	"${ctl[@]}" reload >"$tmp/late" 2>&1 &
	late=$!
	wait_until "both paths" are_paths "$c 127.0.0.4:9 "
	stop_process "$client_pid"
	expect_exit $late 1
done

# ---- by SIGHUP, and keys of NBD clients ----

key() { "$top_builddir/rtrs-psk" "$1" >"$tmp/$1"; }
key vm-a; key vm-b; key vm-c
cat "$tmp/vm-a" "$tmp/vm-b" >"$tmp/nbd.psk"
chmod 600 "$tmp/nbd.psk"
conf "server = $a" 'threads = 2' "nbd-tls-psk = $tmp/nbd.psk" 'verbose = yes'
start_gateway config="$conf" control="$tmp/client.ctl"
as() { echo "nbds+unix://$1@/?socket=$sock&tls-psk-file=$tmp/$1"; }
size_as() { timeout "$TIMEOUT_S" nbdinfo --size "$(as "$1")"; }
load disk "$(as vm-b)"
size_as vm-a
conf "server = $a" "path = $b" 'threads = 2' "nbd-tls-psk = $tmp/nbd.psk" 'verbose = yes'
kill -HUP "$gateway_pid"
wait_line "$gateway_log" "reload: \\+path $b$"
wait_line "$gateway_log" "$conf was read again$"
are_paths "$a $b "
# The key is out although the file has a mistake, and the key that is new is not in.
cat "$tmp/vm-b" "$tmp/vm-c" >"$tmp/nbd.psk"
conf "server = $a" 'threads = 3' "nbd-tls-psk = $tmp/nbd.psk" 'verbose = yes'
refused 'threads: 2 -> 3: restart rtrs-nbd for this' 'only this has changed' \
	'-nbd key vm-a'
must_fail size_as vm-a
must_fail size_as vm-c
conf "server = $a" 'threads = 2' "nbd-tls-psk = $tmp/nbd.psk" 'verbose = x'
refused "$conf:5: verbose 'x': expected yes or no"
goes_on disk
conf "server = $a" 'threads = 2' "nbd-tls-psk = $tmp/nbd.psk" 'verbose = yes'
cat "$tmp/vm-b" "$tmp/vm-c" >"$tmp/nbd.psk"
says "-path $b" '+nbd key vm-c'
size_as vm-c
# Memory, with the threads that run.
conf "server = $a" 'threads = 2' "nbd-tls-psk = $tmp/nbd.psk" 'verbose = yes' 'memory = 1G'
"${ctl[@]}" reload | grep -x 'memory: [0-9]* -> 1073741824'
goes_on disk
conf "server = $a" "nbd-tls-psk = $tmp/nbd.psk" 'verbose = yes' 'threads = 3' 'memory = 128M'
refused 'threads: 2 -> 3: restart rtrs-nbd for this'
conf "server = $a" 'threads = 2' "nbd-tls-psk = $tmp/nbd.psk" 'verbose = yes' 'memory = 128M'
"${ctl[@]}" reload | grep -x 'memory: 1073741824 -> 134217728'
goes_on disk
conf "server = $a" 'threads = 2' "nbd-tls-psk = $tmp/nbd.psk" 'verbose = yes'
"${ctl[@]}" reload | grep -x 'memory: 134217728 -> [0-9]*'
cat "$tmp/vm-b" >"$tmp/nbd.psk"
says '-nbd key vm-c'
must_fail size_as vm-c
goes_on disk
load_end disk
stop_process "$gateway_pid"

# ---- memory: of four READs of 64 MiB one has room in 128M, and all have in 1G ----

conf "server = $a" 'threads = 1' 'memory = 1G'
start_gateway config="$conf" control="$tmp/client.ctl"
cat >"$tmp/memory.py" <<END
import atexit, json, os, signal, subprocess, time

atexit.register(os.kill, $server_pid, signal.SIGCONT)

def ctl(*words):
    got = subprocess.run(["$top_builddir/rtrsctl", "--socket", "$tmp/client.ctl"] + list(words),
                         stdout=subprocess.PIPE, check=True)
    return got.stdout.decode()

def in_flight():
    return sum(c["inflight"] for c in json.loads(ctl("--json", "clients"))["clients"])

def wait_for(n):
    begin = time.monotonic()
    while in_flight() != n:
        assert time.monotonic() < begin + $TIMEOUT_S, "%d in flight instead of %d" % (in_flight(), n)

def memory(size):
    with open("$conf", "w") as f:
        f.write("export = disk\nserver = $a\nthreads = 1\nmemory = %s\n" % size)
    assert "-> " in ctl("reload")

def ask():
    subprocess.check_call(["bash", "$top_srcdir/tests/stop-threads.sh", "$TIMEOUT_S",
                           "$server_pid"])
    bufs = [nbd.Buffer(64 << 20) for c in clients]
    return [(c, c.aio_pread(b, 0)) for c, b in zip(clients, bufs)]

def end(asked):
    os.kill($server_pid, signal.SIGCONT)
    for c, cookie in asked:
        while not c.aio_command_completed(cookie):
            c.poll(-1)

clients = [nbd.NBD() for i in range(4)]
for c in clients:
    c.connect_uri("$uri")
asked = ask()
wait_for(4)
memory("128M")				# of those that come later
assert in_flight() == 4
end(asked)
asked = ask()
wait_for(1)
for i in range(4):			# each question is behind what the loop has read
    assert in_flight() == 1
memory("1G")
wait_for(4)
end(asked)
END
timeout $((4 * TIMEOUT_S)) nbdsh -c "exec(open('$tmp/memory.py').read())"
