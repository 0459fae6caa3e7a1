#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A real Prometheus scrapes a server and a client: each expression of contrib/grafana.json has a
# value, each rule of contrib/alerts.yml is tested by promtool and evaluated, and a path that goes
# becomes an alert.
. ./tests/functions.sh
requires_server; requires_gateway
command -v prometheus >/dev/null && command -v promtool >/dev/null ||
	skip "a dashboard and alert rules are not tested: install prometheus"
requires fio --enghelp=nbd
requires /usr/bin/python3 --version

promtool check rules "$top_srcdir/contrib/alerts.yml"
promtool test rules "$top_srcdir/contrib/alerts-test.yml"

# port LOG: where a program tells its metrics.
port() {
	sed -n 's,.*metrics: http://127\.0\.0\.1:\([0-9]*\)/metrics$,\1,p' "$1"
}

truncate -s 32M "$tmp/disk"
start_server --metrics 0 --invalidate=always "disk=$tmp/disk"
wait_line "$server_log" ' metrics: '
start_gateway -v "server=127.0.0.1:$server_port" "path=127.0.0.2@127.0.0.1:$server_port" \
	metrics=0 heartbeat=200 \
	control="$tmp/control.sock"
wait_line "$gateway_log" ' metrics: '

cat >"$tmp/prometheus.yml" <<END
global:
  scrape_interval: 1s
  evaluation_interval: 1s
rule_files:
  - '$top_srcdir/contrib/alerts.yml'
scrape_configs:
  - job_name: rtrs
    static_configs:
      - targets: ['127.0.0.1:$(port "$server_log")', '127.0.0.1:$(port "$gateway_log")']
END
prometheus --config.file="$tmp/prometheus.yml" --storage.tsdb.path="$tmp/data" \
	--web.listen-address=127.0.0.1:0 </dev/null >"$tmp/prometheus.log" 2>&1 &
prometheus=$!
cleanup_fn stop_process "$prometheus"
# Prometheus 3 names its component in between.
wait_line "$tmp/prometheus.log" 'Listening on".* address=127'
url=http://$(sed -n 's/.*Listening on".* address=\(127[0-9.:]*\).*/\1/p' "$tmp/prometheus.log")

ask() {
	/usr/bin/python3 "$top_srcdir/tests/prometheus-ask.py" "$url" "$@"
}

# IO while Prometheus looks.
touch "$tmp/busy"
work() {
	cd "$tmp" || return
	while [ -e "$tmp/busy" ]; do
		timeout $((4 * TIMEOUT_S)) fio --name=work --ioengine=nbd --uri="${uri/\?/disk?}" \
			--rw=randrw --bs=4k --size=8M --iodepth=64 --fsync=8 --rate_iops=500 \
			--time_based --runtime=2 || return
	done
}
work >"$tmp/fio.log" 2>&1 &
fio=$!
wait_until "both targets" ask targets 2
wait_until "values of the dashboard" ask dashboard "$top_srcdir/contrib/grafana.json"
wait_until "metrics of the rules" ask rules "$top_srcdir/contrib/alerts.yml"

# A path goes, and its alert comes; then all, and another one comes.
must_fail ask alert RtrsClientPathDown
"$top_builddir/rtrsctl" --socket "$tmp/control.sock" path disconnect \
	"127.0.0.2@127.0.0.1:$server_port"
wait_until "an alert" ask alert RtrsClientPathDown
rm "$tmp/busy"
wait "$fio" || { cat "$tmp/fio.log"; fail "IO failed"; }
"$top_builddir/rtrsctl" --socket "$tmp/control.sock" path disconnect "127.0.0.1:$server_port"
wait_until "an alert" ask alert RtrsClientDown
