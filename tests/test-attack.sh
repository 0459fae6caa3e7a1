#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A hostile client writes to chunks that are not its own, or not any more, with each --invalidate,
# while the storage holds the IO (tests/hostile/cases-attack.c): what reaches the file, and what
# becomes of the client, is what the table in doc/promises.md says.  ATTACK_ARGS chooses cases;
# ATTACK_SERVER is where the server is to listen, tcp unless it says rdma://.

. "$(dirname "$0")/own-namespace.sh" --mount
. ./tests/functions.sh
. "$top_srcdir/tests/storage.sh"
requires_server
requires_root

random_file "$tmp/disk" $((1 << 20))
random_file "$tmp/good" $((1 << 20))
held_fs "$tmp/disk"

# Over soft-RoCE auto is copy.
case ${ATTACK_SERVER-} in
rdma*) modes=(always copy never) ;;
*) modes=(always auto copy never) ;;
esac
for invalidate in "${modes[@]}"; do
	start_server ${ATTACK_SERVER:+--listen "$ATTACK_SERVER"} --threads=2 --queue-depth=32 \
		--max-io-size=131072 --invalidate="$invalidate" \
		"held=$tmp/mnt/disk" "good=$tmp/good"
	# shellcheck disable=SC2086 # words
	ASAN_OPTIONS=detect_leaks=0 ./tests/hostile/hostile \
		--server="${ATTACK_SERVER-127.0.0.1:$server_port}" \
		--pid="$server_pid" --log="$server_log" --timeout="$TIMEOUT_S" \
		--invalidate=$invalidate --held-fs="$tmp/held.sock" --held-file="$tmp/disk" \
		${ATTACK_ARGS-attack}
	stop_server "$server_pid"
done
