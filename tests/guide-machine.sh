# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# A machine for the commands of rtrs-guide(7): a network namespace with the addresses of the guide,
# programs as they are installed, and /etc, /run and /srv below $tmp.  A test sources this file
# first of all.
. "$(dirname "$0")/own-namespace.sh" --net
. ./tests/functions.sh
requires_server; requires_plugin; requires_gateway; requires_plain_build
[ "$IN_NAMESPACE" = yes ] || skip "no network namespace of its own"
requires ip -Version
requires nbdcopy --version
requires qemu-img --version
guide=$top_srcdir/man/rtrs-guide.pod
ip link set lo up
ip addr add 192.0.2.10/24 dev lo
ip addr add 198.51.100.10/24 dev lo

# Programs as they are installed; what is made in /etc, /run and /srv is made here.
mkdir "$tmp/bin" "$tmp/run" "$tmp/etc" "$tmp/client"
cat >"$tmp/bin/rtrs-server" <<END
#!/bin/bash
case " \$* " in *' --check '*) exec "$RTRS_SERVER" "\$@" ;; esac
exec "$RTRS_SERVER" --ready-fd 9 "\$@"
END
cat >"$tmp/bin/nbdkit" <<END
#!/bin/bash
export RUNTIME_DIRECTORY=$tmp/client
args=()
for arg; do
	[ "\$arg" != rtrs ] || arg=$(printf %q "$RTRS_PLUGIN")
	args+=("\$arg")
done
exec $(command -v nbdkit) "\${args[@]}"
END
cat >"$tmp/bin/rtrs-nbd" <<END
#!/bin/bash
export RUNTIME_DIRECTORY=$tmp/client
exec "$RTRS_NBD" "\$@"
END
cp "$top_builddir/rtrsctl" "$top_builddir/rtrs-psk" "$tmp/bin/"
chmod +x "$tmp"/bin/*
PATH=$tmp/bin:$PATH
export RUNTIME_DIRECTORY=$tmp/run

# started COMMAND: run what goes to the background by itself, and stop it at the end.
started() {
	rm -f "$tmp/pid"
	bash -c "$1 -P $tmp/pid" </dev/null
	wait_until "its process" test -s "$tmp/pid"
	cleanup_fn stop_daemon "$(cat "$tmp/pid")"
}

# serves COMMAND: the same for rtrs-server, whose log goes to $server_log.
serves() {
	server_log=$tmp/server$((++started)).log
	rm -f "$tmp/ready"
	mkfifo "$tmp/ready"
	bash -c "exec ${1% &}" >"$server_log" 2>&1 9>"$tmp/ready" </dev/null &
	server_pid=$!
	cleanup_fn stop_process "$server_pid"
	read -r -t "$TIMEOUT_S" ready <"$tmp/ready"
	[ -n "$ready" ]
}
