#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A command line rtrs-server cannot use ends it with one line that names the thing and its value,
# and the right status: 2 when the line cannot be understood, 1 when what it names cannot be used.
. ./tests/functions.sh
requires_server

cd "$tmp" || exit
truncate -s 1M disk other
: >journal
listen=(--listen tcp://127.0.0.1:0)
usage() { local regex=$1; shift; expect_failure 2 "$regex" "$RTRS_SERVER" "$@"; }
unusable() {
	local regex=$1
	shift
	expect_failure 1 "$regex" "$RTRS_SERVER" --strict "${listen[@]}" "$@"
}

# options (what each of them takes, and the words: unit/opt-rules.c, unit/test-conf.c)
usage 'NAME=PATH'
usage "'--lsiten=.*did you mean --listen\?" --lsiten=tcp://127.0.0.1 disk=disk
usage "'-x'" disk=disk -xh
usage "'-x'" --allow 127.0.0.1 -xh disk=disk
usage 'queue-depth.*65536' --queue-depth 65536 disk=disk
# Each is possible, together they are not: the immediate has too few bits.
usage '--queue-depth 65535.*--max-io-size 16777216.*at most 8$' --queue-depth 65535 \
	--max-io-size 16M disk=disk
# It will be closed.
usage 'ready-fd.*2.*from 3' --ready-fd 2 disk=disk
unusable 'ready-fd.*77' --ready-fd 77 disk=disk

# addresses (each mistake: fabric/test-addr.c, unit/test-conf.c)
usage 'allow.*nowhere' --allow nowhere disk=disk
unusable "--allow 'uid:no-such-user': expected uid:" --allow uid:no-such-user disk=disk
usage 'listen.*pigeon://127\.0\.0\.1' --listen pigeon://127.0.0.1:1 disk=disk
usage "listen '192\.0\.2\.1:1,192\.0\.2\.2:1': expected one address, without a ','" \
	--listen 192.0.2.1:1,192.0.2.2:1 disk=disk
usage "metrics '\*:9091': expected PORT .*0\.0\.0\.0: all of IPv4" --metrics '*:9091' disk=disk
unusable \
	"--listen 'foo\.invalid': cannot resolve \"foo\.invalid\": [^:]*$" \
	--listen foo.invalid disk=disk
# Not an address of this machine.
expect_failure 1 '192\.0\.2\.1' "$RTRS_SERVER" --listen tcp://192.0.2.1:0 disk=disk

# exports: what is wrong on any machine, and what cannot be used here (each: unit/test-export.c)
usage 'NAME=PATH' disk
usage "'twice'" twice=disk twice=other
usage "readonly and force together" disk=disk,readonly,force
unusable "'disk' is a file: ',force' is for block devices" disk=disk,force
unusable "'missing'.*No such file" disk=missing

# The port is in use.
start_server disk=disk
expect_failure 1 "127\.0\.0\.1:$server_port.*in use" "$RTRS_SERVER" \
	--listen "tcp://127.0.0.1:$server_port" disk=other

# The address cannot be had.
expect_failure 1 \
	"cannot listen on unix:$tmp/none/s: No such file or directory: the directory is missing\$" \
	"$RTRS_SERVER" --control none --listen "unix:$tmp/none/s" disk=other
if [ "$(id -u)" -eq 0 ] && setpriv --version >/dev/null 2>&1; then
	chmod 711 "$tmp"
	cp "$RTRS_SERVER" "$tmp/rtrs-server"
	mkdir "$tmp/nobody"
	truncate -s 1M "$tmp/nobody/disk"
	chown -R 65534 "$tmp/nobody"
	# as_nobody REGEX LISTEN
	as_nobody() {
		expect_failure 1 "cannot listen on $2: Permission denied: $1" setpriv \
			--reuid=65534 --clear-groups \
			"$tmp/rtrs-server" --control none --state-dir "$tmp/nobody" \
			--listen "$2" "disk=$tmp/nobody/disk"
	}
	as_nobody 'no permission to create a socket in the directory$' "unix:$tmp/s"
	[ "$(cat /proc/sys/net/ipv4/ip_unprivileged_port_start)" -le 1 ] ||
		as_nobody 'a port this low needs root or CAP_NET_BIND_SERVICE$' \
			tcp://127.0.0.1:1
fi

# A directory for state that was asked for; the default one may be missing.
mkdir -p bad/id
for dir in "$tmp/none/state:No such file or directory" disk:'Not a directory' \
	bad:'Is a directory'; do
	expect_failure 1 "error: --state-dir '${dir%%:*}' cannot be used: ${dir#*:}\$" \
		"$RTRS_SERVER" --control none --state-dir "${dir%%:*}" disk=other
done
must_fail ls bad/*.lock bad/*.state
RUNTIME_DIRECTORY=$tmp/bad start_server --control none disk=other
grep "warning: state directory '$tmp/bad' cannot be used: Is a directory: " "$server_log"

# The log has all limits, and a warning of each one that process or machine cannot reach.
SERVER_PREFIX="prlimit --nofile=4096:4096" \
	start_server --control none --max-connections 4097 --max-memory 16T \
	mem=mem:1M
grep ' limits: 256 sessions, 512 paths, 4097 connections, 16 TiB for paths of 16.5 MiB; of them one'\
' host may have 3073 connections and 4 TiB$' "$server_log"
grep 'warning: --max-connections is 4097, and each .* RLIMIT_NOFILE allows 4096 ' "$server_log"
grep 'warning: --max-memory is 16 TiB, and this machine, or its control group, allows' "$server_log"
SERVER_PREFIX="prlimit --nofile=4096:4096" start_server --control none --max-connections 4096 \
	mem=mem:1M
must_fail grep "warning: --max-" "$server_log"

# What a service is told of its journal is not for all that it starts.
expect_failure 1 '^rtrs-server: error: .*missing' env JOURNAL_STREAM=1:2 \
	"$RTRS_SERVER" --strict disk=missing
stream=$(stat -c %d:%i journal)
JOURNAL_STREAM=$stream "$RTRS_SERVER" --strict disk=missing 2>journal || true
grep -q '^<3>export .*missing' journal

# Help is no error.
"$RTRS_SERVER" --help >help
grep -q -- --listen help
# But for the line of a path that configure was given.
[ "$(grep -v "^ *(/.*)$" help | wc -L)" -le 80 ]
"$RTRS_SERVER" --version | grep -q -E '[0-9]+\.[0-9]+'
