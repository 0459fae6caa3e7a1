#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# "rtrsctl top" in a terminal, tmux: exports, sessions and paths with the numbers of "status", keys,
# another size of the terminal, a path that is cut, programs that come and go.
. ./tests/functions.sh
requires_server; requires_plugin
requires nbdsh --version
requires tmux -V

rtrsctl=$top_builddir/rtrsctl
screen=$tmp/screen
terminal() {
	LC_ALL=C.UTF-8 TERM=xterm tmux -f /dev/null -S "$tmp/tmux" "$@"
}
cleanup_fn terminal kill-server

# shell [OPTION...]: what runs in the terminal.
shell() {
	printf '%q ' "$rtrsctl" "$@" top
	printf '; echo ended $?; read -r'
}

# shows PATTERN [NOT]: the screen has a line like the first one, and none like the other
shows() {
	terminal capture-pane -p >"$screen" && grep -q -E -- "$1" "$screen" || return 1
	[ $# -eq 1 ] || ! grep -q -E -- "$2" "$screen"
}
see() {
	local what="a screen with $1"
	[ $# -eq 1 ] || what+=", without $2"
	wait_until "$what" shows "$@" || { cat "$screen"; exit 1; }
}

# No terminal, and a terminal that nobody knows.
truncate -s 8M "$tmp/disk" "$tmp/other"
start_server --listen tcp://127.0.0.1:0 --listen tcp://127.0.0.2:0 "disk=$tmp/disk" \
	"other=$tmp/other,readonly"
first=127.0.0.1:$server_port
second=$(sed -n 's,.*tcp://\(127\.0\.0\.2:[0-9]*\)$,\1,p' "$server_log" | head -n 1)
status=0
"$rtrsctl" top >"$tmp/out" 2>&1 </dev/null || status=$?
[ "$status" = 2 ] || fail "without a terminal: status $status"
grep 'expected a terminal as standard input and output' "$tmp/out"
status=0
"$rtrsctl" --json top >"$tmp/out" 2>&1 || status=$?
[ "$status" = 2 ] || fail "with --json: status $status"
grep 'top draws a screen' "$tmp/out"
status=0
TERM=none-such script -q -e -c "$(printf %q "$rtrsctl") top" "$tmp/out" </dev/null || status=$?
[ "$status" = 2 ] || fail "with an unknown terminal: status $status"
grep 'TERM=none-such: expected a terminal that terminfo knows' "$tmp/out"

# A terminal that hangs up ends it, whatever SIGHUP does.
TIMEOUT_S=$TIMEOUT_S /usr/bin/python3 - "$rtrsctl" <<'PY'
import os, pty, signal, sys
pid, master = pty.fork()
if not pid:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    os.environ["TERM"] = "xterm"
    os.execv(sys.argv[1], [sys.argv[1], "top"])
while b"rtrsctl top" not in os.read(master, 65536):
    pass
os.close(master)
signal.signal(signal.SIGALRM, lambda *_: os.kill(pid, signal.SIGKILL))
signal.alarm(int(os.environ["TIMEOUT_S"]))
assert os.waitpid(pid, 0)[1] == 0
PY

terminal new-session -d -x 80 -y 24 "$(shell --server)"
see '^ disk +unused +0 +0\.0 +-'
see '^ other +unused'
see '^q quit .* sort: name' '^rtrs-server disk'

start_nbdkit "$first" path="127.0.0.3@$second" transport=tcp sessname=gw policy=round-robin
: >"$tmp/go"
nbdsh_run "nbd+unix:///disk?socket=$sock" <<END &
import os
while os.path.exists("$tmp/go"):
    h.pread(4096, 0)
END
io=$!
see '^ disk +1 user +[1-9][0-9]* +[0-9.]+ +[0-9.]+ [mu]s +.*[▁-█]'
see '^ gw +up +[1-9]'
see '^   127\.0\.0\.1@127\.0\.0\.1:[0-9]+ +connected +[1-9]'
see '^   127\.0\.0\.3@127\.0\.0\.2:[0-9]+ +connected +[1-9]'

# The numbers are those of "status", which looks at another second: within a factor of two.
agrees() {
	local here there
	shows '^ disk' || return 1
	here=$(sed -n 's/^ disk  *1 user  *\([0-9]*\) .*/\1/p' "$screen")
	there=$("$rtrsctl" --server status | awk '$1 == "disk" { print $(NF - 6) }')
	[ "$here" -gt 0 ] && [ "$here" -le $((there * 2)) ] && [ "$there" -le $((here * 2)) ]
}
wait_until "the IOPS of status" agrees

# Keys: one kind, an order, and back.  By IOPS the busy export is first, and last in reverse.
terminal send-keys e
see '^ EXPORT +STATE' '^ gw'
order() {
	shows '^ disk' && [ "$(awk '/^ (disk|other) / { printf "%s ", $1 }' "$screen")" = "$1" ]
}
terminal send-keys i
see 'sort: IOPS '
wait_until "the busy export in front" order 'disk other '
terminal send-keys r
see 'sort: IOPS, reverse'
wait_until "the busy export behind" order 'other disk '
terminal send-keys s
see '^ SESSION +STATE' '^ disk'
terminal send-keys p
see '^   PATH +STATE' '^ gw'
terminal send-keys a r n

# Another size: all columns in a wide one, the keys in the last line of a low one, which scrolls.
terminal resize-window -x 120 -y 5
see '^q quit .*reverse *$' '^   127'
[ "$(wc -l <"$screen")" = 5 ] || fail "$(cat "$screen")"
terminal send-keys Down Down Down
see '^   127' '^ disk'
terminal resize-window -x 80 -y 24
see '^   127\.0\.0\.3@'
see '^ disk'

# A path that is cut is gone from the server's screen; the gateway's says so.
"$rtrsctl" --gateway path remove "127.0.0.3@$second"
see '^ gw +up' '^   127\.0\.0\.3'
terminal send-keys q
see '^ended 0'

# Both programs: each has a line of its own.  One that ends is gone, and the first line says how
# many are left.
terminal respawn-window -k "$(shell)"
see '^rtrs-server disk +up +[1-9]'
see '^nbdkit-rtrs-plugin gw +up +[1-9]'
see '2 programs'
rm "$tmp/go"
wait "$io"
stop_process "$server_pid"
see '^rtrsctl top, .* 1 program$' '^rtrs-server'
see '^ gw +down'
