#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Limits of an export, with fio through two gateways: the export keeps its rate by the server's own
# clock, the gateways share the rate whatever their depth, limits change while they work and without
# a new export, and a server that stops does not wait for its limits.
. ./tests/functions.sh
requires_server; requires_plugin
requires fio --enghelp=nbd
requires curl --version

truncate -s 16M "$tmp/disk" "$tmp/free"
conf=$tmp/conf
write_conf() {
	printf '%s\n' '[server]' "listen = unix:$tmp/sock" "allow = uid:$(id -u)" \
		'[export "disk"]' "path = $tmp/disk" "$@" \
		'[export "free"]' "path = $tmp/free" >"$conf"
}
write_conf 'iops = 200'
start_server --control "$tmp/control" --state-dir "$tmp/state" --config "$conf" \
	--metrics "unix:$tmp/metrics"
grep -q "disk: iops none -> 200" <("$RTRS_SERVER" --config "$conf" --check)
ctl=(timeout "$TIMEOUT_S" "$top_builddir/rtrsctl" --socket "$tmp/control")

# json EXPRESSION: of the stats, a; disk is the export, and reads has the answered reads of each
# session
json() {
	"${ctl[@]}" --json stats | with_json "
disk = [e for e in a['exports'] if e['name'] == 'disk'][0]
reads = {s['name']: sum(p['stats']['read']['count'] for p in s['paths'])
         for s in a['sessions'] if s['devices']}
print($1)"
}
says() {
	local want=$1
	shift
	"${ctl[@]}" "$@" | diff -u <(printf '%s\n' "$want") -
}

# Both read: one writer at a time may open an export.
fios=() gateways=()
for name in deep flat; do
	start_nbdkit "server=unix:$tmp/sock" export=disk sessname=$name mode=ro
	gateways+=("$nbdkit_pid")
	depth=32
	[ $name = deep ] || depth=16
	timeout $((8 * TIMEOUT_S)) fio --name=$name --ioengine=nbd --uri="$uri" \
		--rw=randread --bs=4k \
		--size=16M --iodepth=$depth --time_based --runtime=$((8 * TIMEOUT_S)) \
		--output="$tmp/fio.$name" &
	fios+=($!)
done
all_read() {
	[ "$(json "'deep' in reads and 'flat' in reads and
		min(reads['deep'], reads['flat']) >= $1")" = True ]
}
wait_until "both read" all_read 50
told=$(wc -l <"$server_log")
read -r deep flat now < <(json "reads['deep'], reads['flat'], a['now_ns']" | tr -d '(),')
wait_until "both go on" all_read 500
read -r deep2 flat2 now2 < <(json "reads['deep'], reads['flat'], a['now_ns']" | tr -d '(),')
# Slow clients with half the depth may take less than their share.
fair=1.2
[ -z "${VALGRIND_TESTS-}" ] || fair=1.6
/usr/bin/python3 - <<END
deep, flat, s = $deep2 - $deep, $flat2 - $flat, ($now2 - $now) / 1e9
print(f"deep {deep}, flat {flat} in {s:.2f} s: {(deep + flat) / s:.0f} a second")
assert deep + flat <= 200 * (s + 0.1) + 48, "more than the limit"
assert deep <= $fair * flat and flat <= $fair * deep, "not fair"
END
[ "$(json "disk['limit_iops'], disk['limit_burst_ns'], disk['throttled_requests'] > 500,
	disk['throttled_ns'] > 0")" = "200 100000000 True True" ]
[ "$(json "[(e['throttled_requests'], 'limit_iops' in e)
	for e in a['exports'] if e['name'] == 'free']")" = \
	"[(0, False)]" ]

# The metrics and the answer to "stats" count the same, and the metrics also do after a reset.
# throttled EXPORT: the samples of an export, s and n.
throttled() {
	curl --silent --show-error --fail --max-time "$TIMEOUT_S" --unix-socket "$tmp/metrics" \
		http://localhost/metrics |
		sed -n "s/^rtrs_server_export_throttled_[a-z]*_total{export=\"$1\"} //p" |
			paste -s -d ' '
}
waited() {
	json "disk['throttled_ns'] / 1e9, disk['throttled_requests']" | tr -d '(),'
}
before=$(waited)
metrics=$(throttled disk)
after=$(waited)
"${ctl[@]}" stats reset
reset=$(waited)
later=$(throttled disk)
/usr/bin/python3 - <<END
before, metrics, after, reset, later = (
    [float(n) for n in text.split()]
    for text in ("$before", "$metrics", "$after", "$reset", "$later"))
print(before, metrics, after, reset, later)
assert len(metrics) == 2
for i in range(2):
    assert before[i] <= metrics[i] + 1e-6 and metrics[i] <= after[i] + 1e-6, "not the same"
    assert reset[i] < after[i] <= later[i] + 1e-6, "a reset makes a rate jump"
END
[ "$(throttled free)" = "0 0" ]

# metric SAMPLE: its value.
metric() {
	curl --silent --show-error --fail --max-time "$TIMEOUT_S" --unix-socket "$tmp/metrics" \
		http://localhost/metrics >"$tmp/text"
	sed -n "s/^rtrs_server_export_$1 //p" "$tmp/text"
}
[ "$(metric 'limit{export="disk",limit="iops"}')" = 200 ]
[ "$(grep -c '^rtrs_server_export_limit{' "$tmp/text")" -eq 1 ]
[ "$(metric 'throttled_requests_total{export="disk"}')" -gt 500 ]
[ "$(metric 'throttled_requests_total{export="free"}')" = 0 ]
# Each waits for most of the time that a request of a full queue takes: far more than a millisecond.
awk -v "requests=$(metric 'throttled_requests_total{export="disk"}')" \
	-v "s=$(metric 'throttled_seconds_total{export="disk"}')" \
	'BEGIN { exit !(s > requests / 1000 && s < requests * '"$TIMEOUT_S"') }'

# Other limits hold for those that wait, and nobody loses the export.
says "disk: iops 200 -> none, bps-read none -> 64M, burst none -> 2s" \
	export set disk iops=none bps-read=64M burst=2s
wait_until "nothing keeps them" all_read 20000
write_conf 'iops-read = 1'
says "disk: iops-read none -> 1, bps-read 64M -> none, burst 2s -> none" reload
expect_failure 1 "there is no option 'ipos' .did you mean iops" "${ctl[@]}" export set disk ipos=1
expect_failure 1 "there is no export 'dusk'" "${ctl[@]}" export set dusk iops=1
expect_failure 2 "export set: expected KEY=VALUE after 'disk'" "${ctl[@]}" export set disk
"${ctl[@]}" show | grep -q 'limit_iops_read *1$'
if tail -n "+$((told + 1))" "$server_log" | grep -e "path down" -e "closed: disk"; then
	fail "a gateway has lost the export"
fi

# 48 reads wait, a second each, but for one that has just gone.
waits() {
	[ "$(json "sum(p['inflight'] for s in a['sessions'] for p in s['paths'])")" -ge 40 ]
}
wait_until "all wait" waits
stop_server "$server_pid"
kill "${fios[@]}"
# Requests wait two minutes for a server, but not in an nbdkit that is stopped, which leaks the
# connections that it has.
for pid in "${gateways[@]}"; do
	[ -n "$leaks_count" ] || stop_process "$pid"
done
wait "${fios[@]}" || true
