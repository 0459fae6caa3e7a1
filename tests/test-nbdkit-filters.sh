#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The tables "Filters of nbdkit" of rtrs-guide(7): what each filter makes of FUA, FLUSH, multi-
# conn and the rest over the plugin.  Their rows are the expectation (nbdkit-filters.py), with
# each release of nbdkit that has the filter.
. ./tests/functions.sh
requires_server; requires_plugin
requires_plain_build
requires nbdsh -c True
guide=$top_srcdir/man/rtrs-guide.pod
version=$(nbdkit --version)

truncate -s 16M "$tmp/disk"
start_server "disk=$tmp/disk"

# row FILTER [PARAMETER...]: what the client and the plugin see, as a row of the table.
row() {
	rm -f "$tmp/log"
	# shellcheck disable=SC2016 # nbdkit sets it
	timeout "$TIMEOUT_S" nbdkit -U - ${1:+--filter="$1"} --filter=log "$RTRS_PLUGIN" \
		server="127.0.0.1:$server_port" export=disk logfile="$tmp/log" "${@:2}" \
		--run "python3 $top_srcdir/tests/nbdkit-filters.py \"\$uri\" $tmp/log"
}

ran=0
# expect_row CELLS FILTER [PARAMETER...]
expect_row() {
	local cells=$1 got
	shift
	[ -z "$1" ] || nbdkit --filter="$1" null --help >/dev/null ||
		{ echo "NOT RUN: $version has no filter $1"; return; }
	got=$(row "$@")
	[ "$got" = "$cells" ] || fail "$version: $*: $got, and the guide says $cells"
	ran=$((ran + 1))
}

# table LAST: the rows of the table whose head ends in LAST.
table() {
	sed -n "/^  filter .* $1\$/,/^\$/p" "$guide" | sed '1d; /^$/d'
}

declare -A blocks=()
while read -r filter sizes; do
	blocks[$filter]=$sizes
done < <(table blocks)
[ ${#blocks[@]} -eq 6 ] || fail "${#blocks[@]} rows of block sizes were found in the guide"

# The rows: a filter, its parameters, six cells.
while read -r -a words; do
	n=$((${#words[@]} - 6))
	[ $n -ge 1 ] || fail "no row of the table: ${words[*]}"
	filter=${words[0]}
	sizes=${blocks[$filter]-${blocks['(none)']}}
	[ "$filter" != '(none)' ] || filter=''
	expect_row "${words[*]:n} $sizes" "$filter" "${words[@]:1:n-1}"
done < <(table hole)
[ $ran -ge 18 ] || fail "only $ran rows were found in the guide"

# And those of which the guide says that they change nothing.
none=$(row '')
parameters() {
	case $1 in
	ip) echo allow=all ;;
	offset) echo offset=1M range=12M ;;
	pause) echo pause-control="$tmp/pause" ;;
	protect) echo protect=0-4095 ;;
	rate) echo rate=800M ;;
	stats) echo statsfile=/dev/null ;;
	truncate) echo round-up=4096 ;;
	esac
}
ran=0
for filter in $(sed -n '/^These change nothing of both tables:/,/^$/p' "$guide" |
	grep -o 'B<[a-z-]*>' | tr -d 'B<>'); do
	# shellcheck disable=SC2046 # words
	expect_row "$none" "$filter" $(parameters "$filter")
done
[ $ran -ge 15 ] || fail "only $ran filters that change nothing were found in the guide"

# What is in the cache is data for a client that asks for holes, with noextents in front.
# shellcheck disable=SC2016 # nbdkit sets it
nbdkit -U - --filter=noextents --filter=cache "$RTRS_PLUGIN" server="127.0.0.1:$server_port" \
	export=disk \
	--run 'nbdsh --base-allocation -u "$uri" -c - ' <<'END'
h.pwrite(b"x" * 65536, 8 << 20)
seen = []
h.block_status(65536, 8 << 20, lambda context, off, extents, error: seen.extend(extents))
assert seen[1] == 0, seen
END
