#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Parameters the plugin cannot use: nbdkit does not start, and one line names the parameter and
# value.
. ./tests/functions.sh
requires_server; requires_plugin

truncate -s 1M "$tmp/disk"
start_server "disk=$tmp/disk"
server=127.0.0.1:$server_port
bad() { expect_nbdkit_failure "$@"; }

# One of each kind: values, names and files have their words in unit/test-clt-conf.c, addresses in
# fabric/test-addr.c, ranges in unit/opt-rules.c.
bad 'server' export=disk
bad 'server.*127\.0\.0\.1:0' server=127.0.0.1:0 export=disk
bad 'colour' "server=$server" export=disk colour=blue
bad "exprot.*did you mean export=" "server=$server" exprot=disk
bad 'export=other: given twice, the first is export=disk' "server=$server" export=disk export=other
bad "'port': write server=HOST:1234" "server=$server" port=1234 export=disk
bad "'hostname': write server=h" "server=$server" hostname=h export=disk
bad "'socket': write server=unix:/s" "server=$server" socket=/s export=disk
bad "server=disk: given twice, .*export=disk names an export, path=disk is one more path" \
	"$server" disk
bad "server=1234: given twice, .*server=127\.0\.0\.1:1234 has a port" 127.0.0.1 1234 export=disk
bad "'exportname': write export=disk" "server=$server" exportname=disk
bad "'timeout': write io-timeout=5" "server=$server" export=disk timeout=5
bad "'threads': it is an option of rtrs-nbd: give nbdkit's options" \
	"server=$server" export=disk threads=4
bad "path=$server,127\.0\.0\.2:9: '$server' in front of '@' or ',' .*path= again" "server=$server" \
	"path=$server,127.0.0.2:9" export=disk
bad "metrics=localhost:9: expected PORT .*a numeric address" "server=$server" export=disk \
	metrics=localhost:9
bad "server=$server and path=tcp://$server are one path" "server=$server" path=127.0.0.1@127.0.0.1 \
	"path=tcp://$server" export=disk
bad "path=127.0.0.1@$server and path=127.0.0.1,$server are one path" "server=$server" \
	"path=127.0.0.1@$server" "path=127.0.0.1,$server" export=disk
bad "path=@$server: nothing before '@': expected \[SOURCE@\]HOST" "server=$server" \
	"path=@$server" export=disk
bad 'transport=tcp.*server=rdma://127\.0\.0\.1' server=rdma://127.0.0.1 export=disk transport=tcp
bad 'heartbeat=5s: expected a number of milliseconds from 100 to 60000$' "server=$server" \
	heartbeat=5s
# What only the server knows.
bad 'nothing' "server=$server" export=nothing
[ ! -e "$tmp/failure.sock" ]
# The server is none the worse.
start_nbdkit "server=$server" export=disk
timeout "$TIMEOUT_S" nbdinfo --size "$uri"
