#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# rtrsctl of one version and programs of the other one, and each member of the answers of before:
# it is in those of now, with the same type.  Each command of rtrsctl of before is carried out
# now, and a command that a program of before lacks is refused in words.  Each metric of before is
# there, with the same labels.
. ./tests/functions.sh
. "$top_srcdir/tests/versions/lib.sh"
requires_plugin; requires_gateway
requires nbdsh --version
requires curl --version

umask 077
"$top_builddir/rtrs-psk" alice >"$tmp/keys.psk"
truncate -s 16M "$tmp/disk" "$tmp/other" "$tmp/more" "$tmp/saved"
# asks PROGRAM: what rtrsctl asks it; nbdkit knows its NBD clients by itself.
asks() {
	echo list show stats status check
	[ "$1" = nbdkit ] || echo clients
}

# programs VERSION: a server with a client of each kind, all of this version.
programs() {
	local keys=(tls=require tls-psk="$tmp/keys.psk")

	use "$1"
	mkdir -p "$tmp/$1.conf.d"
	cat >"$tmp/$1.conf" <<-END
	[server]
	listen = unix:$tmp/$1.sock
	listen = tcp://127.0.0.1:0
	tls = on
	tls-psk = $tmp/keys.psk
	metrics = unix:$tmp/$1.metrics
	[export "disk"]
	path = $tmp/disk
	iops = 100000
	burst = 2s
	allow = unix, psk:alice, 127.0.0.1
	priority = best-effort:4
	[export "other"]
	path = $tmp/other
	mode = ro
	END
	start_server --config "$tmp/$1.conf"
	start_nbdkit "127.0.0.1:$server_port" path="unix:$tmp/$1.sock" export=disk sessname=vm \
		metrics="unix:$tmp/$1.metrics.vm"
	nbdkit_uri=$uri
	start_gateway "127.0.0.1:$server_port" sessname=proven "${keys[@]}"
	# Both have a client, and have done some work.
	: >"$tmp/go"
	rm -f "$tmp/open"
	nbdsh_run "$nbdkit_uri" <<-END &
	import os
	other = nbd.NBD()
	other.connect_uri("nbd+unix:///other?socket=$sock")
	h.pwrite(bytes(4096), 0)
	h.flush()
	h.trim(4096, 8192)
	other.pread(4096, 0)
	open("$tmp/open", "w").close()
	while os.path.exists("$tmp/go"):
	    try:
	        h.pread(4096, 0)
	    except nbd.Error as e:   # of a kick
	        assert e.errno, e
	END
	clients_pid=$!
	wait_until "both clients" test -e "$tmp/open"
}

programs_end() {
	rm "$tmp/go"
	expect_exit "$clients_pid" 0
	stop_process "$nbdkit_pid"
	stop_process "$gateway_pid"
	stop_process "$server_pid"
}

# ask PID WORD...
ask() {
	"$rtrsctl" --pid "$1" "${@:2}"
}

# What each program answers to its own rtrsctl, and to the other one.
for version in before now; do
	programs "$version"
	for program in server nbdkit gateway; do
		pid=${program}_pid pid=${!pid}
		for who in "$version" "$(other "$version")"; do
			use "$who"
			for word in $(asks $program); do
				ask "$pid" --json "$word" >"$tmp/$version.$who.$program.$word" ||
					[ $? -le 3 ] || fail \
						"rtrsctl $who --json $word of $program $version"
				ask "$pid" "$word" >"$tmp/text" || [ $? -le 3 ]
				[ -s "$tmp/text" ]
			done
		done
	done
	curl -s --unix-socket "$tmp/$version.metrics" http://localhost/metrics \
		>"$tmp/$version.server.metrics"
	curl -s --unix-socket "$tmp/$version.metrics.vm" http://localhost/metrics \
		>"$tmp/$version.nbdkit.metrics"
	programs_end
done
wrong=''
for program in server nbdkit gateway; do
	for word in $(asks $program); do
		for pair in before.before:now.now before.before:now.before \
			before.before:before.now; do
			/usr/bin/python3 "$top_srcdir/tests/versions/members.py" "$tmp/${pair%:*}.$program.$word" \
				"$tmp/${pair#*:}.$program.$word" || wrong+=" $pair.$program.$word"
		done
	done
done
# names_of FILE: the metrics with their labels, without the values.
names_of() {
	sed -E -n 's/^([a-z_]+(\{[^}]*\})?) .*/\1/p' "$1" | sed -E 's/="[^"]*"//g' | sort -u
}
for program in server nbdkit; do
	names_of "$tmp/before.$program.metrics" >"$tmp/names.before"
	names_of "$tmp/now.$program.metrics" >"$tmp/names.now"
	[ "$(wc -l <"$tmp/names.before")" -gt 20 ]
	gone=$(comm -23 "$tmp/names.before" "$tmp/names.now")
	[ -z "$gone" ] || { echo "metrics that are gone: $gone"; wrong+=" $program.metrics"; }
done
[ -z "$wrong" ] || fail "answers differ:$wrong"

# path_is PID PATH STATE
path_is() {
	ask "$1" --json show | /usr/bin/python3 -c "
import json, sys
paths = [p for s in json.load(sys.stdin)['sessions'] for p in s['paths']]
assert [p['state'] for p in paths if '$2' in p['name']] == ['$3'], paths"
}

# has_open SESSION: its export, at the server.
has_open() {
	"$rtrsctl" --server --json clients | /usr/bin/python3 -c "
import json, sys
assert [c for c in json.load(sys.stdin)['clients'] if c['session'] == '$1' and c['exports']]"
}

# Each command of before, given by its rtrsctl to programs of now, and by that of now to programs
# of before.
for version in now before; do
	programs "$version"
	use "$(other "$version")"
	for words in "export add more=$tmp/more" "export set more iops=500" "export resize more" "export kick other" \
		"--force export set disk iops=100000" "export add saved=$tmp/saved" save \
		"export remove more" "--force export remove saved" reload "--force reload" "stats reset" \
		"log-level debug" "session disconnect vm" "export kick disk vm"; do
		[ "$words" != "export kick disk vm" ] || wait_until "the export of vm" has_open vm
		# shellcheck disable=SC2086 # words
		ask "$server_pid" $words || fail \
			"rtrsctl $(other "$version") $words at a server $version"
	done
	for pid in "$nbdkit_pid" "$gateway_pid"; do
		for words in "policy round-robin" "policy" "max-reconnect-attempts 7" "max-reconnect-attempts -1" \
			"path add 127.0.0.2:$server_port" "path disconnect 127.0.0.1:$server_port" \
			"path reconnect 127.0.0.1:$server_port" \
				"path remove 127.0.0.2:$server_port" "stats reset"; do
			case $words in
			"path disconnect"*) wait_until "the path" path_is "$pid" \
				"127.0.0.1:$server_port" connected ;;
			"path reconnect"*) wait_until "the end of the path" path_is "$pid" \
				"127.0.0.1:$server_port" closed ;;
			esac
			# shellcheck disable=SC2086 # words
			ask "$pid" $words || fail \
				"rtrsctl $(other "$version") $words at a gateway $version"
		done
	done
	programs_end
done

# What programs of before lack.
programs before
use now
for words in "explain disk vm" "export snapshot disk"; do
	# shellcheck disable=SC2086 # words
	expect_failure 1 "rtrs-server has no command '.*" "$rtrsctl" --pid "$server_pid" $words
done
for words in "path save" "server accept"; do
	# shellcheck disable=SC2086 # words
	expect_failure 1 "has no command '$words'" "$rtrsctl" --pid "$gateway_pid" $words
done
programs_end
