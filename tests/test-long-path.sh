#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# An export whose path is as long as the kernel allows is added, saved, read again and served, and
# so is one that has to be escaped wherever it stands.  What no file can hold is not added.
. ./tests/functions.sh
requires_server; requires_plugin
requires nbdinfo --version
requires python3 -c 'import json'

conf=$tmp/conf
printf '%s\n' '[server]' "listen = unix:$tmp/sock" "state-dir = $tmp/state" >"$conf"
start_server --control "$tmp/control" --config "$conf"
ctl=(timeout "$TIMEOUT_S" "$top_builddir/rtrsctl" --socket "$tmp/control")
exports() {
	"${ctl[@]}" --json show | with_json 'for e in a["exports"]: print(e["name"], e["path"])'
}

# long LENGTH BYTE: print a path of so many bytes, whose names consist of this byte.
long() {
	python3 -c '
import sys
path, length = sys.argv[1], int(sys.argv[2])
while len(path) < length:
    path += "/" + sys.argv[3] * min(200, length - len(path) - 1)
    if len(path) == length - 1:
        path = path[:-1] + "/" + sys.argv[3]
print(path)' "$tmp" "$1" "$2"
}
plain=$(long 4095 x) escaped=$(long 4095 \\)
[ ${#plain} = 4095 ] && [ ${#escaped} = 4095 ]
for path in "$plain" "$escaped"; do
	mkdir -p "${path%/*}"
	truncate -s 3M "$path"
done
"${ctl[@]}" export add "plain=$plain" >/dev/null
"${ctl[@]}" export add "escaped=${escaped//\\/\\\\}" >/dev/null
must_fail "${ctl[@]}" export add "more=${plain}x"

# What a file would give back as another export, or as a mistake.
odd=("$tmp/a
mode = ro" "$tmp/a"$'\r'b)
for path in "${odd[@]}"; do
	expect_failure 1 "its name or path cannot be written in a file" \
		"${ctl[@]}" export add "odd=$path"
done
# What quotes give back as it is.
quoted=("$tmp/a " "$tmp/a ;b" "$tmp/a # b" "$tmp/\"c\" # d")
for i in "${!quoted[@]}"; do
	truncate -s 1M "${quoted[i]}"
	"${ctl[@]}" export add "quoted$i=${quoted[i]}" >/dev/null
done
"${ctl[@]}" save >/dev/null
[ "$(grep -c '^path = "' "$conf.d/rtrsctl-saved.conf")" -eq ${#quoted[@]} ]
[ -z "$("${ctl[@]}" reload)" ]
for i in "${!quoted[@]}"; do
	"${ctl[@]}" export remove "quoted$i" >/dev/null
done
expect_failure 1 "export 'odd.': its name or path cannot" "${ctl[@]}" export add "odd]=mem:1M"
[ "$(exports)" = "plain $plain
escaped $escaped" ]

"${ctl[@]}" save >/dev/null
[ "$(sed -n 's/^path = //p' "$conf.d/rtrsctl-saved.conf")" = "$plain
$escaped" ]
[ -z "$("${ctl[@]}" reload)" ]
stop_server "$server_pid"
start_server --control "$tmp/control" --config "$conf"
[ "$(exports)" = "plain $plain
escaped $escaped" ]
start_nbdkit "server=unix:$tmp/sock" export=escaped
[ "$(nbdinfo --size "$uri")" = $((3 << 20)) ]

# A line that is too long is named, and nothing is changed.
printf '[export "more"]\npath = %08186d\n' 1 >"$conf.d/more.conf"
expect_failure 1 "$conf.d/more.conf:2: this line has 8193 bytes: expected at most 8192" \
	"${ctl[@]}" reload
