#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The status page in a browser: what it shows is what rtrsctl tells, a path that is cut is bad, and
# a name that is HTML stays text.
. ./tests/functions.sh
requires_server; requires_gateway
requires_plain_build
command -v chromium >/dev/null || skip "the status page is not tested: install chromium"
requires curl --version
requires nbdsh --version

# page URL: the page after some seconds of its life, by a browser, a line for each row of a table.
page() {
	timeout $((4 * TIMEOUT_S)) chromium --headless --no-sandbox --disable-gpu \
		--user-data-dir="$tmp/chromium" --virtual-time-budget=7000 --dump-dom "$1" \
		2>"$tmp/chromium.log" | sed 's/<tr>/\n<tr>/g' >"$tmp/page"
}

shows() {
	grep -q -F -e "$1" "$tmp/page" || { cat "$tmp/page"; fail "the page does not show $1"; }
}

# url LOG: the address of the page.
url() {
	sed -n 's,.*metrics: \(http://.*/\)metrics$,\1,p' "$1"
}

truncate -s 8M "$tmp/disk" "$tmp/other"
evil='<b>b</b><script>document.body.remove()</script>'
start_server --listen "unix:$tmp/rtrs.sock" --control "$tmp/server.sock" --metrics 0 \
	"disk=$tmp/disk" "$evil=$tmp/other,readonly"
wait_line "$server_log" ' metrics: '
start_gateway -v "server=unix:$tmp/rtrs.sock" metrics=0 control="$tmp/control.sock" sessname=vm1
wait_line "$gateway_log" ' metrics: '
nbdsh_run "${uri/\?/disk?}" <<'END'
for i in range(10):
    h.pwrite(b"a" * 4096, i * 4096)
END

page "$(url "$server_log")"
shows '<h1 id="program">rtrs-server</h1>'
shows ", process $server_pid<"
idle='<td>0</td><td>0</td><td>0.0</td><td>-</td><td>0</td>'
shows "<tr><td>disk</td><td>8 MiB</td><td>rw</td>$idle"
shows '<tr><td>&lt;b&gt;b&lt;/b&gt;&lt;script&gt;document.body.remove()&lt;/script&gt;</td>'\
'<td>8 MiB</td><td>ro</td>'
shows '<tr><td>vm1</td><td class="good">up</td>'
shows '</td><td class="good">connected</td><td>0</td></tr>'
# A line for each export, drawn.
[ "$(grep -o '<polyline points="[0-9]' "$tmp/page" | wc -l)" -eq 4 ] ||
	fail "the page draws nothing"

# The page's data is rtrsctl's.
curl --silent --show-error --fail "$(url "$server_log")status.json" >"$tmp/status"
"$top_builddir/rtrsctl" --socket "$tmp/server.sock" --json stats >"$tmp/stats"
/usr/bin/python3 - "$tmp/status" "$tmp/stats" <<'END'
import json, sys
page, rtrsctl = (json.load(open(name)) for name in sys.argv[1:])
assert page["exports"] == rtrsctl["exports"], (page, rtrsctl)
assert page["exports"][0]["stats"]["write"]["count"] == 10, page
END

page "$(url "$gateway_log")"
shows '<h1 id="program">rtrs-nbd</h1>'
shows "<td class=\"path\">unix:$tmp/rtrs.sock</td><td class=\"good\">connected</td>"
"$top_builddir/rtrsctl" --socket "$tmp/control.sock" path disconnect "unix:$tmp/rtrs.sock"
wait_line "$gateway_log" 'closed'
page "$(url "$gateway_log")"
shows "<td class=\"path\">unix:$tmp/rtrs.sock</td><td class=\"bad\">closed"

# Nothing but its own script and style runs; without the page there are metrics.
curl --silent -D "$tmp/head" -o "$tmp/html" "$(url "$server_log")"
csp="default-src 'none'; script-src 'nonce-[0-9a-f]\{32\}'; "
grep -q "^Content-Security-Policy: $csp" "$tmp/head"
must_fail grep -E 'https?://' <(grep -v 'http://www.w3.org/2000/svg' "$tmp/html")
stop_process "$gateway_pid"
start_gateway -v "server=unix:$tmp/rtrs.sock" metrics=0 metrics-page=no
wait_line "$gateway_log" ' metrics: '
[ "$(curl --silent "$(url "$gateway_log")")" = "expected /metrics" ]
curl --silent --show-error --fail "$(url "$gateway_log")metrics" >"$tmp/answer"
grep -q '^rtrs_client_session_up 1$' "$tmp/answer"
