#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Guess: a connection by librdmacm is to the program as one of TCP: the kernel does the handshakes.  With librdmacm 56,
# Linux 6.12 and soft-RoCE:
# - The server has ESTABLISHED only when the client's program takes its event: the library sends the last message then.
# - DISCONNECTED of the peer flushes nothing: the queue pair stays in RTS, and its receives wait, until the program
#   itself calls rdma_disconnect().
# - An id that was REJECTED cannot connect again, rdma_connect() is EINVAL: it takes a new id, and a new queue pair.
# - A port that another listener has at another set of addresses is EADDRNOTAVAIL, "Cannot assign requested address",
#   as if the address were wrong.  Only the same address is EADDRINUSE.
# - A server that takes the request and does not answer holds its client for more than 120 s, whatever retries there
#   are: the client needs a time-out of its own.
. "$(dirname "$0")/guest.sh"

guest_packages linux-image-6.12.118+deb13-amd64=6.12.118-1 gcc=4:14.2.0-1 libc6-dev=2.41-12+deb13u5 \
	librdmacm-dev=56.1-1 ibverbs-providers=56.1-1
cp "$here/rdmacm-events.c" "$tmp/trixie"
chroot "$tmp/trixie" gcc -D_GNU_SOURCE -O1 -o /program /rdmacm-events.c -lrdmacm -libverbs
cat >"$tmp/job" <<'END'
ip addr add 10.0.2.15/24 dev eth0
ip link set eth0 up
rdma link add rxe0 type rxe netdev eth0
sleep 1
/program
END
seen=$(in_guest "$tmp/job" rdma_rxe ib_uverbs rdma_ucm)
expect "librdmacm" "$seen" \
"server: CONNECT_REQUEST, then nothing for 5 s; client takes ESTABLISHED; server: ESTABLISHED
server: DISCONNECTED, its receive waits, state RTS; after its rdma_disconnect: Work Request Flushed Error
nobody listens: REJECTED, once more: EINVAL
any address: listens, and one address: EADDRNOTAVAIL; one address: listens, and again: EADDRINUSE
silent server: CONNECT_REQUEST, client in 120 s: nothing"
