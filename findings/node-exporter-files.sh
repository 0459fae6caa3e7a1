#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Guess: several programs of one kind may write a text file each, for one directory, and node_textfile_scrape_error
# tells when something is left out.  A sample with the name and labels of one in an earlier file, as of a second process
# of the program, is left out by node_exporter 1.5 and 1.9; so are all samples of a family whose HELP or TYPE differs, as
# during an upgrade.  The scrape is 200, and node_textfile_scrape_error 0, but for HELP with 1.9; a line in the log is all.
# So each process needs a label of its own.
. "$(dirname "$0")/common.sh"
command -v curl >/dev/null || skip "curl is not installed"

files=$tmp/files
mkdir "$files"
# scrape SUITE: status of HTTP, node_textfile_scrape_error, and who is there
scrape() {
	local port=19100

	# A network of its own: the port is free.
	unshare --net bash -c "
		ip link set lo up
		mkdir -p '$tmp/$1/files' && cp '$files'/*.prom '$tmp/$1/files'
		chroot '$tmp/$1' prometheus-node-exporter --web.listen-address=127.0.0.1:$port \
			--collector.disable-defaults --collector.textfile --collector.textfile.directory=/files 2>'$tmp/log' &
		pid=\$!
		for i in \$(seq 200); do
			status=\$(curl -s -o '$tmp/page' -w '%{http_code}' http://127.0.0.1:$port/metrics) && break
			sleep 0.1
		done
		kill \$pid
		wait \$pid
		echo \$status" 2>/dev/null | tr '\n' ' '
	sed -n 's/^node_textfile_scrape_error /error /p; s/^requests_total{host="\(.\)"}.*/\1/p' "$tmp/page" | sort -r | paste -sd' '
}
# write FILE HOST [LINE...]
write() {
	printf '%s\n' "${@:3}" "requests_total{host=\"$2\"} 1" >"$files/$1.prom"
}
packages bookworm prometheus-node-exporter=1.5.0-1+b6
packages trixie prometheus-node-exporter=1.9.0-1+b4
type='# TYPE requests_total counter'
for suite in bookworm trixie; do
	write 1 a '# HELP requests_total Requests.' "$type"
	write 2 b '# HELP requests_total Requests.' "$type"
	expect "$suite: two labels" "$(scrape $suite)" "200 error 0 b a"
	write 2 a '# HELP requests_total Requests.' "$type"
	expect "$suite: one label" "$(scrape $suite)" "200 error 0 a"
	write 2 b '# HELP requests_total Requests.' '# TYPE requests_total gauge'
	expect "$suite: TYPE of two kinds" "$(scrape $suite)" "200 error 0 a"
	write 2 b '# HELP requests_total Requests answered.' "$type"
	wanted='200 error 0 a'
	[ $suite = bookworm ] || wanted='200 error 1 a'
	expect "$suite: HELP of two kinds" "$(scrape $suite)" "$wanted"
	write 1 a "$type"
	write 2 b "$type"
	expect "$suite: no HELP" "$(scrape $suite)" "200 error 0 b a"
done
