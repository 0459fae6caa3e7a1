#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Metrics of a running server: over tcp, over a unix socket and in a file, equal to what rtrsctl
# tells, in a text that promtool takes.
. ./tests/functions.sh
requires_server; requires_plugin
requires nbdsh --version
requires curl --version

# Series of the export.
io_all_write='rtrs_server_export_io_duration_seconds_bucket'
io_all_write+='{export="disk",operation="write",le="+Inf"}'
io_bytes_read='rtrs_server_export_io_bytes_total{export="disk",operation="read"}'
io_bytes_write='rtrs_server_export_io_bytes_total{export="disk",operation="write"}'
io_count_write='rtrs_server_export_io_duration_seconds_count{export="disk",operation="write"}'

scrape() {
	curl --silent --show-error --fail --max-time "$TIMEOUT_S" "$@"
}

# value TEXT SAMPLE: the value of a sample in the file TEXT.
value() {
	sed -n "s/^$(printf '%s' "$2" | sed 's/[][\.*^$/]/\\&/g') //p" "$1"
}

truncate -s 8M "$tmp/disk"
start_server --metrics 0 --metrics-file "$tmp/server.prom" "disk=$tmp/disk" \
	"a\"b=$tmp/disk,readonly" "mem=mem:1M"
wait_line "$server_log" ' metrics: http://127\.0\.0\.1:[0-9]+/metrics$'
url=$(sed -n 's/.* metrics: //p' "$server_log")
scrape "$url" >"$tmp/before"
is "bytes before" "$(value "$tmp/before" "$io_bytes_write")" 0
is "paths before" "$(value "$tmp/before" 'rtrs_server_paths{state="connected"}')" 0

start_nbdkit "server=127.0.0.1:$server_port" export=disk
nbdsh_run "$uri" <<'END'
for i in range(10):
    h.pwrite(b"a" * 4096, i * 4096)
h.pread(1 << 20, 0)
try:
    h.set_strict_mode(0)
    h.pread(512, 8 << 20)
except nbd.Error:
    pass
END

counted() {
	scrape "$url" >"$tmp/text" &&
		[ "$(value "$tmp/text" "$io_count_write")" = 10 ] &&
		[ "$(value "$tmp/text" "$io_bytes_read")" = 1048576 ]
}
wait_until "counters" counted
is "written" "$(value "$tmp/text" "$io_bytes_write")" 40960
is "all writes are faster than for ever" \
	"$(value "$tmp/text" "$io_all_write")" 10
is "size" "$(value "$tmp/text" 'rtrs_server_export_size_bytes{export="a\"b"}')" 8388608
is "size of memory" "$(value "$tmp/text" 'rtrs_server_export_size_bytes{export="mem"}')" 1048576
is "exports" "$(value "$tmp/text" rtrs_server_exports)" 3
is "paths of the client" "$(value "$tmp/text" 'rtrs_server_client_paths{client="127.0.0.1"}')" 1
is "paths" "$(value "$tmp/text" 'rtrs_server_paths{state="connected"}')" 1
is "sessions" "$(value "$tmp/text" 'rtrs_server_sessions{state="up"}')" 1

# As rtrsctl resets them they count on: a rate does not jump.
"$top_builddir/rtrsctl" --socket "$RUNTIME_DIRECTORY/server-$server_pid.sock" stats reset
scrape "$url" >"$tmp/text"
is "written, after a reset" \
	"$(value "$tmp/text" "$io_bytes_write")" 40960

# Readers of OpenMetrics get that; both end as they should.
scrape -H 'Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5' -D "$tmp/head" \
	"$url" >"$tmp/open"
grep -q '^Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8' "$tmp/head"
is "last line" "$(tail -n 1 "$tmp/open")" "# EOF"
is "a counter in OpenMetrics" \
	"$(grep -c '^# TYPE rtrs_server_export_io_bytes counter$' "$tmp/open")" 1
scrape -I "$url" >"$tmp/answer"
grep -q '^Content-Type: text/plain; version=0.0.4; charset=utf-8' "$tmp/answer"
# A browser that a stranger's page leads here asks for the stranger's name.
host=$(hostname)
for name in "${url#http://}" localhost "$host" "${host%%.*}:9091"; do
	is "a reader of host ${name%/metrics}" \
		"$(curl -s -o /dev/null -w '%{http_code}' -H "Host: ${name%/metrics}" "$url")" 200
done
for path in metrics status.json ''; do
	is "a stranger's name" "$(curl -s -o "$tmp/answer" -w '%{http_code}' \
		-H 'Host: evil.example:80' "${url%metrics}$path")" 421
	grep -q '^expected as host an address, .* given as metrics-host$' "$tmp/answer"
done
is "warnings of the log" "$(grep -c "asked for the host 'evil.example:80': give" \
	"$server_log")" 1
is "another path" "$(curl -s -o /dev/null -w '%{http_code}' "${url%/metrics}/other")" 404
is "another method" "$(curl -s -o /dev/null -w '%{http_code}' -X POST -d x "$url")" 405

# No uuid and no name of a session is a label: each client that comes would make series anew.
uuid=$("$top_builddir/rtrsctl" --socket "$RUNTIME_DIRECTORY/server-$server_pid.sock" --json show |
	with_json '
s = a["sessions"][0]
print(s["uuid"]); print(s["name"])')
for word in $uuid; do
	must_fail grep -F -e "$word" "$tmp/text"
done

# The file is whole, has the same names, and goes with the server.
wait_until "the file of metrics" test -s "$tmp/server.prom"
is "names in the file" "$(grep -o '^# TYPE [a-z_]*' "$tmp/server.prom")" \
	"$(grep -o '^# TYPE [a-z_]*' "$tmp/text")"
# node_exporter drops a sample that another file has, too.
must_fail grep -v -e '^#' -e '{process="server"' "$tmp/server.prom"
must_fail grep process= "$tmp/text"

# Each is in the manual.
grep -o '^# TYPE [a-z_]*' "$tmp/text" | while read -r _ _ name; do
	grep -q "B<$name>" "$top_srcdir/man/rtrs-server.pod" || fail "$name is not in the manual"
done

stop_process "$nbdkit_pid"
stop_process "$server_pid"
[ ! -e "$tmp/server.prom" ] || fail "the file outlives the server"

# Over a unix socket; without a directory for the file one line says so.
start_server --metrics "unix:$tmp/metrics.sock" --metrics-file "$tmp/none/m.prom" "disk=$tmp/disk"
scrape --unix-socket "$tmp/metrics.sock" http://localhost/metrics >"$tmp/text"
is "exports" "$(value "$tmp/text" rtrs_server_exports)" 1
wait_line "$server_log" "cannot write metrics to '$tmp/none/m.prom': No such file or directory"
stop_process "$server_pid"
[ ! -e "$tmp/metrics.sock" ] || fail "the socket outlives the server"

# What others have put at the name of the new file is neither removed nor opened: neither metrics
# nor SIGTERM wait for a FIFO.
mkfifo "$tmp/fifo.prom.tmp"
mkdir "$tmp/dir.prom.tmp"
for name in fifo dir; do
	start_server --metrics-file "$tmp/$name.prom" "disk=$tmp/disk"
	wait_line "$server_log" "cannot write metrics to '$tmp/$name.prom': its name with '.tmp' \
exists and is no regular file"
	stop_process "$server_pid"
	[ -e "$tmp/$name.prom.tmp" ]
done

# A typo names an image, a link to one, a device, or the image beside the new file: none of them is
# lost.  What an end before has left is replaced, and what others have put there meanwhile stays.
ln -s disk "$tmp/link"
ln "$tmp/disk" "$tmp/other.prom.tmp"
mknod "$tmp/null" c 1 3 2>/dev/null || mkfifo "$tmp/null"
for file in disk link null other.prom; do
	start_server --metrics-file "$tmp/$file" "disk=$tmp/disk"
	wait_line "$server_log" "cannot write metrics to '$tmp/$file': .*exists and "
	stop_process "$server_pid"
done
is "the size of the image" "$(stat -c %s "$tmp/disk" "$tmp/other.prom.tmp" | uniq)" 8388608
[ -L "$tmp/link" ] && [ ! -f "$tmp/null" ] && [ -e "$tmp/null" ] || fail "a link or device has gone"
for before in '' '# HELP of before'; do
	printf '%s' "$before" >"$tmp/server.prom"
	start_server --metrics-file "$tmp/server.prom" "disk=$tmp/disk"
	wait_until "metrics" grep -q rtrs_server_exports "$tmp/server.prom"
	[ "$before" ] || { cp "$tmp/server.prom" "$tmp/new" && mv "$tmp/new" "$tmp/server.prom"; }
	stop_process "$server_pid"
	is "files that stay after '$before'" "$(find "$tmp/server.prom" 2>/dev/null | wc -l)" \
		"$([ "$before" ] && echo 0 || echo 1)"
done

# A name of the administrator's, and what is none.
start_server --metrics 0 --metrics-host "gw.example,store.example" "disk=$tmp/disk"
wait_line "$server_log" ' metrics: '
url=$(sed -n 's/.* metrics: //p' "$server_log")
scrape -H 'Host: store.example:9091' "$url" >"$tmp/text"
is "a stranger's name" \
	"$(curl -s -o /dev/null -w '%{http_code}' -H 'Host: example' "$url")" 421
stop_process "$server_pid"
expect_failure 2 "metrics-host 'a:9091': expected NAME\[,NAME...\], names of hosts without a port" \
	"$RTRS_SERVER" --metrics-host a:9091 mem=mem:1M

# An address that is taken is an exit status, and leaves no name behind.
start_server --metrics 0 "disk=$tmp/disk"
wait_line "$server_log" ' metrics: '
port=$(sed -n 's,.* metrics: .*:\([0-9]*\)/metrics,\1,p' "$server_log")
expect_failure 1 "--metrics '$port': cannot listen: .* in use: another program listens there" \
	env RUNTIME_DIRECTORY="$tmp/other" "$RTRS_SERVER" --listen "unix:$tmp/other.sock" \
	--metrics "$port" mem=mem:1M
[ ! -e "$tmp/other.sock" ] || fail "a server that failed leaves its socket"

command -v promtool >/dev/null ||
	skip "all but promtool check metrics: install prometheus for that"
promtool check metrics <"$tmp/text"
