#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The status page in a browser: what it shows is what rtrsctl tells, a path that is cut is bad, and
# a name that is HTML stays text.
#
# PAGE_PICTURE=FILE test-metrics-page.sh draws doc/status-page.png again: make page-picture.
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
idle='<td>unused</td><td>0</td><td>0.0</td><td>-</td><td>0</td>'
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

# An export that may have lost writes, and one in use: the page itself, with another answer.
mkdir "$tmp/site"
curl --silent --show-error --fail "$(url "$server_log")" >"$tmp/site/index.html"
/usr/bin/python3 - "$tmp/status" >"$tmp/site/status.json" <<'END'
import json, sys
answer = json.load(open(sys.argv[1]))
answer["exports"][0]["users"] = 1
answer["exports"][1]["sync_failed"] = True
answer["exports"].append(dict(answer["exports"][0], id=99, name="slow", waiting_ns=7 * 10**9))
paths = answer["sessions"][0]["paths"]
for state in "standby", "back-off", "lingering", "gone":
    paths.append(dict(paths[0], name="p-" + state, state=state))
sess = answer["sessions"][0]
answer["sessions"] += [dict(sess, name="-", identity="psk:s-setup"),
                       dict(sess, name="s-past", paths=paths[-1:], devices=[]),
                       dict(sess, name="s-kept", paths=[], devices=[{}])]
json.dump(answer, sys.stdout)
END
/usr/bin/python3 -u -m http.server --bind 127.0.0.1 --directory "$tmp/site" 0 \
	>"$tmp/site.log" 2>&1 &
cleanup_fn kill_process $!
wait_line "$tmp/site.log" 'port [0-9]+ '
page "http://127.0.0.1:$(sed -n 's/.* port \([0-9]*\) .*/\1/p' "$tmp/site.log")/"
shows '<td>rw</td><td>1 user</td>'
shows '<td>ro</td><td class="bad">sync failed</td>'
shows '<td>slow</td><td>8 MiB</td><td>rw</td><td class="bad">waits 7 s</td>'
# What "rtrsctl check" counts as a path, and as one that works.
shows '<td class="path">p-standby</td><td class="good">standby</td>'
shows '<td class="path">p-back-off</td><td class="bad">back-off'
must_fail grep -E 'p-(lingering|gone)' "$tmp/page"
shows '<tr><td>s-kept</td><td class="good">up</td>'
must_fail grep -E 's-(setup|past)' "$tmp/page"

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

# The picture in README: the page of a server at work, in a window of a size.  An answer for the
# picture in doc/ takes a while, so that the curves are of half a minute; the test does not wait.
stop_process "$gateway_pid"
stop_process "$server_pid"
truncate -s 10G "$tmp/disk0"
truncate -s 2G "$tmp/disk1"
start_server --listen tcp://127.0.0.1:0 --listen tcp://127.0.0.2:0 --metrics 0 \
	"disk0=$tmp/disk0" "disk1=$tmp/disk1" "iso=$tmp/disk,readonly"
wait_line "$server_log" ' metrics: '
second=$(sed -n 's,.*tcp://\(127\.0\.0\.2:[0-9]*\)$,\1,p' "$server_log" | head -n 1)
start_gateway "server=127.0.0.1:$server_port" "path=$second" sessname=vm1
: >"$tmp/go"
nbdsh_run "${uri/\?/disk0?}" <<END &
import os, random
while os.path.exists("$tmp/go"):
    at = random.randrange(4096) * 4096
    h.pread(4096, at) if random.random() < .7 else h.pwrite(b"a" * 4096, at)
END
user=$!
cat >"$tmp/slow.py" <<'END'
import http.server, sys, time, urllib.request
url, pace_s = sys.argv[1], float(sys.argv[2])
class Slow(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        time.sleep(pace_s if self.path == "/status.json" else 0)
        with urllib.request.urlopen(url + self.path[1:]) as answer:
            body, kind = answer.read(), answer.headers["Content-Type"]
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
server = http.server.HTTPServer(("127.0.0.1", 0), Slow)
print("port", server.server_port, "is open", flush=True)
server.serve_forever()
END
pace_s=0 life_ms=20000
if [ -n "${PAGE_PICTURE-}" ]; then
	pace_s=0.2 life_ms=280000
fi
/usr/bin/python3 "$tmp/slow.py" "$(url "$server_log")" $pace_s >"$tmp/slow.log" \
	2>"$tmp/slow.err" &
cleanup_fn kill_process $!
wait_line "$tmp/slow.log" 'port [0-9]+ '
timeout $((4 * TIMEOUT_S)) chromium --headless --no-sandbox --disable-gpu --hide-scrollbars \
	--user-data-dir="$tmp/chromium" --window-size=920,500 --virtual-time-budget=$life_ms \
	--screenshot="$tmp/page.png" \
	"http://127.0.0.1:$(sed -n 's/^port \([0-9]*\) .*/\1/p' "$tmp/slow.log")/" \
	2>"$tmp/chromium.log"
rm "$tmp/go"
wait "$user"
# size FILE: of a PNG
size() {
	/usr/bin/python3 - "$1" <<'END'
import struct, sys
with open(sys.argv[1], "rb") as f:
    data = f.read()
assert data[:8] == b"\x89PNG\r\n\x1a\n" and len(data) < 150000, len(data)
print(*struct.unpack(">II", data[16:24]))
END
}
[ "$(size "$tmp/page.png")" = "920 500" ]
[ -z "${PAGE_PICTURE-}" ] || cp "$tmp/page.png" "$PAGE_PICTURE"
[ "$(size "$top_srcdir/doc/status-page.png")" = "920 500" ] ||
	fail "doc/status-page.png is not of the size that this test draws: make page-picture"
