#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The picture of "rtrsctl top", and another one that is recorded beside it: well formed, small, of
# one piece, with each state in its turn.
. ./tests/functions.sh
requires /usr/bin/python3 --version

# check PICTURE RECORDING
check() {
	/usr/bin/python3 - "$@" <<'END'
import re, sys, xml.dom.minidom
with open(sys.argv[1], encoding="utf-8") as f:
    text = f.read()
with open(sys.argv[2], encoding="utf-8") as f:
    seconds = re.findall(r"^@ (\d+) (.*)$", f.read(), re.M)
assert len(text.encode()) < 150_000, len(text)
# A page that shows the picture loads nothing else and runs nothing.
outside = re.findall(r"href|<script|<image|<foreignObject|@import|url\(|\bon\w+=", text)
assert not outside, outside
assert re.findall("https?://[^\"]*", text) == ["http://www.w3.org/2000/svg"], text[:500]
picture = xml.dom.minidom.parseString(text)
svg = picture.documentElement
width, height = svg.getAttribute("width"), svg.getAttribute("height")
assert svg.getAttribute("viewBox") == f"0 0 {width} {height}"
frames = [g for g in picture.getElementsByTagName("g") if "f" in g.getAttribute("class").split()]
assert [s for s, _ in seconds] == [str(i) for i in range(len(frames))], (seconds, len(frames))
assert f"animation: turn {len(frames)}s " in text
assert "prefers-color-scheme: dark" in text and "prefers-reduced-motion" in text
assert [f.getAttribute("style") for f in frames] == \
    [f"animation-delay:{i - len(frames)}s" for i in range(len(frames))]
# Nothing is drawn outside.
for t in picture.getElementsByTagName("text"):
    end = float(t.getAttribute("x")) + float(t.getAttribute("textLength") or 0)
    assert end <= float(width), t.toxml()

def words(frame):
    return [t.firstChild.data for t in frame.getElementsByTagName("text")]

told = [words(f) for f in frames]
assert [t[0] for t in told] == [w for _, w in seconds]
pulled = [t for t in told if t[0] == "cable 1 is pulled"]
assert told[0].count("connected") == 2 and "up" in told[0], told[0]
assert any("degraded 1/2" in t and t.count("connected") == 1 for t in pulled), pulled
assert told[-1][0] == "cable 1 is back in" and told[-1].count("connected") == 2, told[-1]
still = [words(f) for f in frames if "still" in f.getAttribute("class").split()]
assert len(still) == 1 and "degraded 1/2" in still[0], still
END
}
check "$top_srcdir/doc/top.svg" "$top_srcdir/doc/top.rec"

status=0
"$top_srcdir/doc/top-record.sh" "$tmp/top.rec" 1 4 8 || status=$?
[ $status -ne 77 ] || skip "the picture in doc/ was checked, doc/top-record.sh was skipped"
[ $status -eq 0 ]
"$top_srcdir/doc/top-svg.py" "$tmp/top.rec" >"$tmp/top.svg"
check "$tmp/top.svg" "$tmp/top.rec"
# Both are of one size.
size() {
	sed -n '1s/.*viewBox="\([^"]*\)".*/\1/p' "$1"
}
[ "$(size "$tmp/top.svg")" = "$(size "$top_srcdir/doc/top.svg")" ] ||
	fail "doc/top.svg is not of the size that doc/top-record.sh records: make demo"
