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

bad 'server'
bad 'server' export=disk
bad 'server' server= export=disk
bad 'server.*127\.0\.0\.1:0' server=127.0.0.1:0 export=disk
bad 'server.*127\.0\.0\.1:65536' server=127.0.0.1:65536 export=disk
bad 'server.*127\.0\.0\.1:port' server=127.0.0.1:port export=disk
bad 'server.*\[::1' 'server=[::1' export=disk
bad 'server' "server=$server" server=127.0.0.2 export=disk
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
bad "'EXPORT' \(did you mean export=" "server=$server" EXPORT=disk
bad "'threads': it is an option of rtrs-nbd: give nbdkit's options" \
	"server=$server" export=disk threads=4
bad "server=\*: '\*' is no address: 0\.0\.0\.0 " 'server=*' export=disk
bad "path=$server,127\.0\.0\.2:9: '$server' in front of '@' or ',' .*path= again" "server=$server" \
	"path=$server,127.0.0.2:9" export=disk
bad "metrics=\*:9: expected PORT .*0\.0\.0\.0: all of IPv4" \
	"server=$server" export=disk 'metrics=*:9'
bad "metrics=localhost:9: expected PORT .*a numeric address" "server=$server" export=disk \
	metrics=localhost:9
bad "server=$server and path=$server are one path" "server=$server" "path=$server" export=disk
bad "server=$server and path=tcp://$server are one path" "server=$server" path=127.0.0.1@127.0.0.1 \
	"path=tcp://$server" export=disk
bad "path=127.0.0.1@$server and path=127.0.0.1,$server are one path" "server=$server" \
	"path=127.0.0.1@$server" "path=127.0.0.1,$server" export=disk
bad "path=@$server: nothing before '@': expected \[SOURCE@\]HOST" "server=$server" \
	"path=@$server" export=disk
bad "server=tpc://$server: unknown transport \"tpc\" \(did you mean tcp\?\): expected" \
	"server=tpc://$server" export=disk
bad 'mode.*rx' "server=$server" export=disk mode=rx
bad 'mode' "server=$server" export=disk mode=
bad 'transport.*pigeon' "server=$server" export=disk transport=pigeon
bad 'transport=tcp.*server=rdma://127\.0\.0\.1' server=rdma://127.0.0.1 export=disk transport=tcp
bad 'connections.*0' "server=$server" export=disk connections=0
bad 'connections.*-1' "server=$server" export=disk connections=-1
bad 'connections.*100000' "server=$server" export=disk connections=100000
bad 'connections.*two' "server=$server" export=disk connections=two
bad 'io-timeout=never.*forever' "server=$server" export=disk io-timeout=never
bad 'io-timeout.*soon' "server=$server" export=disk io-timeout=soon
bad 'io-timeout.*-5' "server=$server" export=disk io-timeout=-5
bad 'io-timeout.*99999999999999999999' "server=$server" export=disk io-timeout=99999999999999999999
bad 'sessname.*a/b' "server=$server" export=disk sessname=a/b
bad 'sessname.*a\.b' "server=$server" export=disk sessname=a.b
bad 'sessname' "server=$server" export=disk sessname=
bad 'sessname' "server=$server" export=disk "sessname=$(printf 's%.0s' {1..256})"
bad 'export' "server=$server" export=
bad 'export' "server=$server" "export=$(printf 'e%.0s' {1..256})"
bad 'export.*a\.\.b' "server=$server" export=a..b
# What only the server knows.
bad 'nothing' "server=$server" export=nothing
[ ! -e "$tmp/failure.sock" ]
# The server is none the worse.
start_nbdkit "server=$server" export=disk
timeout "$TIMEOUT_S" nbdinfo --size "$uri"

# A number has a unit.
expect_nbdkit_failure 'heartbeat=5s: expected a number of milliseconds from 100 to 60000$' \
	"server=127.0.0.1" heartbeat=5s
expect_nbdkit_failure 'poll=1ms: expected a number of microseconds from 0 to 1000000$' \
	"server=127.0.0.1" poll=1ms
expect_nbdkit_failure 'io-timeout=2m: expected a number of seconds from 0 to ' "server=127.0.0.1" \
	io-timeout=2m
