#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Metrics of a client, over tcp, over a unix socket and in a file: what its users did, a path that
# is lost and comes back, requests that wait meanwhile.
. ./tests/functions.sh
requires_server; requires_plugin
requires nbdsh --version
requires curl --version

rtrsctl=$top_builddir/rtrsctl

scrape() {
	curl --silent --show-error --fail --max-time "$TIMEOUT_S" \
		--unix-socket "$tmp/metrics.sock" \
		"$@" http://localhost/metrics >"$tmp/text"
}

# value SAMPLE: the value of a sample in the last text.
value() {
	sed -n "s/^$(printf '%s' "$1" | sed 's/[][\.*^$/]/\\&/g') //p" "$tmp/text"
}

is() {
	[ "$(value "$1")" = "$2" ] || fail "$1: '$(value "$1")' instead of '$2'"
}

# becomes SAMPLE VALUE: wait for it.
now_is() {
	scrape && [ "$(value "$1")" = "$2" ]
}
becomes() {
	wait_until "$1 $2" now_is "$1" "$2"
}

truncate -s 8M "$tmp/disk"
start_server --listen "unix:$tmp/rtrs.sock" --control "$tmp/server.sock" "d\"=$tmp/disk"
start_nbdkit "server=unix:$tmp/rtrs.sock" "metrics=unix:$tmp/metrics.sock" \
	"metrics-file=$tmp/client.prom" control="$tmp/control.sock"
uri="nbd+unix:///d%22?socket=$sock"
path="path=\"unix:$tmp/rtrs.sock\",transport=\"unix\""
becomes 'rtrs_client_paths{state="connected"}' 1
is rtrs_client_session_up 1
is "rtrs_client_path_up{$path}" 1
# Nobody has an export open.
is 'rtrs_client_export_size_bytes{export="d\""}' ''
nbdsh_run "$uri" <<END
import subprocess
for i in range(10):
    h.pwrite(b"a" * 4096, i * 4096)
h.pread(1 << 20, 0)
h.flush()
text = subprocess.run(["curl", "-s", "--unix-socket", "$tmp/metrics.sock",
                       "http://localhost/metrics"],
                      stdout=subprocess.PIPE, check=True).stdout.decode()
for line in ('size_bytes{export="d\\\\""} 8388608',
             'users{export="d\\\\""} 1',
             'state{export="d\\\\"",state="open"} 1',
             'io_bytes_total{export="d\\\\"",operation="write"} 40960',
             'io_bytes_total{export="d\\\\"",operation="read"} 1048576',
             'io_duration_seconds_count{export="d\\\\"",operation="write"} 10',
             'io_duration_seconds_bucket{export="d\\\\"",operation="flush",le="+Inf"} 1'):
    assert "\nrtrs_client_export_" + line + "\n" in text, line
END

# What the paths did; a reset of rtrsctl does not change it.
scrape
is "rtrs_client_path_requests_total{$path,operation=\"write\"}" 10
is "rtrs_client_path_request_bytes_total{$path,operation=\"write\"}" 40960
"$rtrsctl" --socket "$tmp/control.sock" stats reset
scrape -H 'Accept: application/openmetrics-text'
is "rtrs_client_path_requests_total{$path,operation=\"write\"}" 10
[ "$(tail -n 1 "$tmp/text")" = "# EOF" ] || fail "the text of OpenMetrics has no end"

# No name of a session is a label.
for word in $("$rtrsctl" --socket "$tmp/control.sock" --json show | with_json '
s = a["sessions"][0]
print(s["uuid"]); print(s["name"])'); do
	must_fail grep -F -e "$word" "$tmp/text"
done

# The server goes: a request waits.  Another comes: all is counted.
"$rtrsctl" --socket "$tmp/control.sock" path disconnect "unix:$tmp/rtrs.sock"
becomes rtrs_client_session_up 0
becomes 'rtrs_client_paths{state="closed"}' 1
"$rtrsctl" --socket "$tmp/control.sock" path reconnect "unix:$tmp/rtrs.sock"
becomes rtrs_client_session_up 1
becomes rtrs_client_session_ups_total 2
is "rtrs_client_path_reconnects_total{$path}" 1
nbdsh_run "$uri" <<END &
import os, select, signal
h.pread(512, 0)
server = os.pidfd_open($server_pid)
signal.pidfd_send_signal(server, signal.SIGKILL)
select.select([server], [], [])		# its last thread has ended
h.pread(512, 0)
END
reader=$!
becomes 'rtrs_client_waiting_requests{for="path"}' 1
kill_process "$server_pid"
start_server --listen "unix:$tmp/rtrs.sock" --control "$tmp/server.sock" "d\"=$tmp/disk"
wait "$reader"
becomes "rtrs_client_path_reconnects_total{$path}" 2
is 'rtrs_client_waiting_requests{for="path"}' 0
is 'rtrs_client_waiting_requests{for="export"}' 0

# The server is back without the storage: the request waits for the export, with the path up.
nbdsh_run "$uri" <<END &
import os
h.pread(512, 0)
open("$tmp/has-read", "w").close()
while os.path.exists("$tmp/disk"):
    pass
h.pread(512, 0)
END
reader=$!
wait_until "a read" test -e "$tmp/has-read"
stop_server "$server_pid"
mv "$tmp/disk" "$tmp/away"
start_server --listen "unix:$tmp/rtrs.sock" --control "$tmp/server.sock" "d\"=$tmp/disk"
becomes 'rtrs_client_waiting_requests{for="export"}' 1
is rtrs_client_session_up 1
is 'rtrs_client_waiting_requests{for="path"}' 0
wait_line "$server_log" "open of .*: the server cannot open its storage now \\(rtrsctl check"
mv "$tmp/away" "$tmp/disk"
wait "$reader"
becomes 'rtrs_client_waiting_requests{for="export"}' 0

# The file has the same names; each is in the manual.
names() {
	grep -o '^# TYPE [a-z_]*' "$1"
}
scrape
wait_until "the file of metrics" test -s "$tmp/client.prom"
[ "$(names "$tmp/client.prom")" = "$(names "$tmp/text")" ] || fail "the file has other names"
names "$tmp/text" | while read -r _ _ name; do
	grep -q "B<$name>" "$top_srcdir/man/nbdkit-rtrs-plugin.pod" ||
		fail "$name is not in the manual"
done

# Mistakes are an exit status.
expect_nbdkit_failure "metrics=here: expected PORT .of 127.0.0.1., ADDR:PORT with a" \
	"server=unix:$tmp/rtrs.sock" metrics=here
expect_nbdkit_failure "metrics-file=m.prom: expected an absolute path" \
	"server=unix:$tmp/rtrs.sock" metrics-file=m.prom
expect_nbdkit_failure "metrics='?$tmp/metrics.sock'?: process [0-9]+ listens" \
	"server=unix:$tmp/rtrs.sock" "metrics=unix:$tmp/metrics.sock"

stop_process "$nbdkit_pid"
[ ! -e "$tmp/metrics.sock" ] || fail "the socket outlives the program"
[ ! -e "$tmp/client.prom" ] || fail "the file outlives the program"

# Over tcp, on a port that the kernel chooses.
start_nbdkit -v "server=unix:$tmp/rtrs.sock" metrics=0 control=none
wait_line "$nbdkit_log" 'metrics: http://127\.0\.0\.1:[0-9]+/metrics$'
url=$(sed -n 's/.*metrics: \(http.*\)/\1/p' "$nbdkit_log")
# The metrics are there before the first path is.
says_up() {
	curl --silent --show-error --fail --max-time "$TIMEOUT_S" "$url" >"$tmp/answer"
	grep -q '^rtrs_client_session_up 1$' "$tmp/answer"
}
wait_until "a session that is up" says_up
stop_process "$nbdkit_pid"

command -v promtool >/dev/null ||
	skip "all but promtool check metrics: install prometheus for that"
promtool check metrics <"$tmp/text"
