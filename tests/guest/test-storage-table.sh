#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=6.12 timeout=1500 full
# What rtrs-server does on each storage of doc/storage.md is what the table there says: the rows
# are made by storage-rows.sh, the columns are the functions column_*, and a row is compared as a
# whole.  STORAGE_ROWS has the names of some rows, if not all are to be tried.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"
set +x
requires_server; requires_gateway
requires /usr/bin/python3 -c 'import nbd'
# shellcheck source=tests/guest/storage-rows.sh
. "$top_srcdir/tests/guest/storage-rows.sh"

document=$top_srcdir/doc/storage.md
modprobe null_blk nr_devices=0
modprobe -a loop dm_mod
[ -d "$nullb" ] || mount -t configfs configfs /sys/kernel/config
tracing=/sys/kernel/tracing
[ -e $tracing/trace ] || mount -t tracefs tracefs $tracing
echo 1 >$tracing/events/block/block_rq_issue/enable
cleanup_fn sh -c "echo 0 >$tracing/events/block/block_rq_issue/enable"

coproc client { exec /usr/bin/python3 "$top_srcdir/tests/guest/storage-client.py"; }
# shellcheck disable=SC2154 # of coproc
client_is=$client_PID to=${client[1]} from=${client[0]}
end_client() { eval "exec $to>&-"; wait "$client_is"; }
cleanup_fn end_client
cleanup_fn row_end

# ---- server, gateway and client ----

# serve OPTIONS: the export disk=$store$OPTIONS at a client; fails when the server refuses the
# storage.
serve() {
	start_server ${port:+--listen tcp://127.0.0.1:$port} "disk=$store$1"
	if grep -q ' failed: export ' "$server_log"; then
		grep ' failed: export ' "$server_log"
		stop_server "$server_pid"
		return 1
	fi
}

attach() {
	start_gateway "server=127.0.0.1:$server_port" export=disk io-timeout="$TIMEOUT_S"
	must open "$uri"
}

hear() { read -r -t $((4 * TIMEOUT_S)) answer <&"$from" || fail "the client does not answer"; }

# ask COMMAND...: sets answer.
ask() {
	echo "$*" >&"$to"
	hear
	echo "    $*: $answer"
}

# must COMMAND...: ask, and the answer is ok.
must() {
	ask "$@"
	[ "$answer" = ok ] || fail "$row: $*: $answer instead of ok"
}

leave() {
	must close
	stop_process "$gateway_pid"
	stop_server "$server_pid"
}

# stored OFF LEN CHARACTER: the bytes are in the storage, not only in the page cache.
stored() {
	sync
	echo 3 >/proc/sys/vm/drop_caches
	ask read "$@"
	[ "$answer" = ok ]
}

# ---- columns: each sets cell ----

# flushed COMMAND...: whether a disk of the row had a flush, or a write with FUA, before the answer.
flushed() {
	local disk dev

	echo >$tracing/trace
	must "$@"
	cell=not
	[ -n "$disks" ] || cell=memory
	for disk in $disks; do
		dev=$(tr : , <"/sys/block/$disk/dev")
		! grep -q -E "block_rq_issue: $dev [A-Z]*F[A-Z]* " $tracing/trace || cell=flushed
	done
	echo "    disk: $cell"
}

column_fua() { flushed write $((fua_at += 128)) 4 a fua; }

# space COMMAND...: what it did to the space of what it zeroed or trimmed.
space() {
	local before after

	must write 8192 4096 z
	must flush
	if row_has used; then before=$(used); fi
	ask "$@"
	cell=$answer
	[ "$answer" = ok ] || return 0
	must flush
	row_has used || { cell=zero; return 0; }
	after=$(used)
	echo "    allocated: $before KiB, then $after KiB"
	if [ $((before - after)) -ge 3072 ]; then cell=frees; else cell=keeps; fi
}

column_zero() {
	local first

	space zero 8192 4096
	stored 8192 4096 0 || cell="$cell, NOT ZERO"
	first=$cell
	space zero 8192 4096 no-hole
	stored 8192 4096 0 || cell="$cell, NOT ZERO"
	cell="$first / $cell"
}

column_trim() { space trim 8192 4096; }

column_holes() {
	must write 36864 64 h
	ask map 36864 64
	[ "$answer" = data ] || fail "$row: what was written is no data, but $answer"
	ask map 40960 1024
	cell=$answer
}

column_growth() {
	cell=-
	row_has grow || return 0
	grow
	must open "$uri"
	ask size
	[ "$answer" -eq $grown ] || { cell="no"; return 0; }
	must write $((grown - 64)) 64 g fua
	must read $((grown - 64)) 64 g
	cell=yes
}

# A full storage: the first write that has no room, and the FLUSH after it.  When there is room
# again all is well, unless a FLUSH has failed: then the clients have to open the export again.
column_full() {
	local write

	cell=-
	row_has fill || return 0
	must write 0 64 b fua
	fill
	ask write $((full_at += 2048)) 1024 r
	write=$answer
	ask flush
	case $write/$answer in
	ok/ok) cell=stored; stored $full_at 1024 r || cell=LOST ;;
	*/ok) cell="WRITE $write" ;;
	*) cell="FLUSH $answer" ;;	# a WRITE before it may end well or not (sshfs)
	esac
	ask read 0 64 b
	[ "$answer" = ok ] || cell="$cell, READ $answer"
	! row_has renew || return 0
	unfill
	case $cell in
	*FLUSH* | LOST*) ;;
	*) must write $full_at 1024 r; must flush ;;
	esac
}

column_shrink() {
	cell=-
	row_has shrink || return 0
	shrink
	ask read 49152 64 0
	cell="READ $answer"
}

column_read_only() {
	cell=-
	if row_has read_only; then
		cell=busy
		if read_only; then cell='not refused'; fi
	fi
	row_has break_it || return 0
	break_it
	ask write 0 64 w
	case $cell in -) cell='' ;; *) cell="$cell; " ;; esac
	[ "$answer" = ok ] || { cell="${cell}WRITE $answer"; return 0; }
	ask flush
	cell="${cell}FLUSH $answer"
}

# The storage goes while the server is away, and comes back with other numbers.
column_identity() {
	cell=-
	row_has up_again || return 0
	must write 0 64 i
	must flush
	stop_server "$server_pid"
	down
	up_again
	port=$server_port
	serve ''
	port=
	ask write 0 64 j
	cell=same
	[ "$answer" = ok ] || cell=other
}

# second PATH: another server on it.
second() {
	local pid status=0

	"$RTRS_SERVER" --strict --listen "unix:$tmp/second.sock" --control none --lock-timeout 1 \
		--state-dir "$tmp/second" "disk=$1" </dev/null >"$tmp/second.log" 2>&1 &
	pid=$!
	wait_until "the second server" second_decides $pid
	cell='not refused'
	if grep -q 'info: ready, version' "$tmp/second.log"; then
		kill -TERM $pid
	else
		cell=refused
	fi
	wait $pid || status=$?
	[ "$cell" != refused ] || grep -q -E \
		'is (locked|in use) by|is mounted|is part of|is a part of|is used by' \
		"$tmp/second.log" ||
		fail "the second server: status $status: $(cat "$tmp/second.log")"
}

second_decides() { grep -q 'info: ready, version' "$tmp/second.log" || process_ended "$1"; }

column_lock() {
	local first

	second "$store"
	[ -n "$lower" ] || return 0
	first=$cell
	second "$lower"
	cell="$first; below: $cell"
}

# ---- rows ----

# make_row NAME: fails, with the reason in $why, if it cannot be made here.
make_row() {
	row=$1 lower='' disks='' port='' why=''
	echo "==== $row"
	"row_${row//[^A-Za-z0-9]/_}"
}

# see_row: sets seen to the row as it is seen here.
see_row() {
	local cached direct=no full_direct=- fua_direct=- identity shrink lock

	full_at=28672
	if serve ,direct; then
		attach
		direct=yes
		must write 0 1024 a
		must write 1 3 a
		must read 0 1024 a
		fua_at=16384
		column_fua; fua_direct=$cell
		column_full; full_direct=$cell
		leave
		! row_has renew || renew
	fi
	serve '' || fail "$row: the server refuses it"
	attach
	fua_at=17408
	column_fua; seen="| $row | $direct | $cell / $fua_direct"
	column_zero; seen="$seen | $cell"
	column_trim; seen="$seen | $cell"
	column_holes; seen="$seen | $cell"
	column_growth; seen="$seen | $cell"
	column_full; cached=$cell
	if row_has renew || [[ $cached = *FLUSH* || $cached = LOST* ]]; then
		leave
		! row_has renew || renew
		serve ''
		attach
	fi
	column_lock; lock=$cell
	column_identity; identity=$cell
	[ "$identity" != other ] || { leave; serve ''; attach; }
	column_shrink; shrink=$cell
	column_read_only
	seen="$seen | $cached / $full_direct | $shrink | $cell | $identity | $lock |"
	leave
	row_end
}

hear
[ "$answer" = ready ] || fail "the client does not start: $answer"

# The table's rows: those of this kernel, by name.
mapfile -t written < <(awk '/^\| storage / { inside = 1; next } inside && /^\| -/ { next }
	inside && !/^\|/ { exit } inside' "$document")
[ ${#written[@]} -gt 0 ] || fail "no table in $document"
declare -A expected
names=()
series=$(uname -r | cut -d . -f 1,2)
for line in "${written[@]}"; do
	name=$(sed 's/^| *//; s/ *|.*//' <<<"$line")
	case $name in
	*", Linux $series") expected[${name%, Linux*}]="| ${name%, Linux*} |${line#*"$name |"}" ;;
	*", Linux "*) ;;
	*) names+=("$name"); [ -n "${expected[$name]-}" ] || expected[$name]=$line ;;
	esac
done
skipped='' wrong=0
for name in "${names[@]}"; do
	case " ${STORAGE_ROWS-$name} " in *" ${name// /_} "* | *" $name "*) ;; *) continue ;; esac
	row_began=$SECONDS
	if ! make_row "$name"; then
		row_end
		echo "NOT TRIED: $name: $why"
		skipped="$skipped $name ($why);"
		continue
	fi
	see_row
	echo "SEEN $seen ($((SECONDS - row_began)) s)"
	if [ "$seen" != "${expected[$name]}" ]; then
		echo "SAID ${expected[$name]}"
		wrong=$((wrong + 1))
	fi
done
[ $wrong -eq 0 ] || fail "$wrong rows are not as $document says"
[ -z "$skipped" ] || skip "all passed but rows that were not tried:$skipped"
