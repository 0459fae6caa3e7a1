#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Somebody between client and server who passes some connections through and ends TLS on others.

	auth-relay.py CERTIFICATES PORT SECRET DO,DO,...

Listens at a port of 127.0.0.1, which is printed, for connections to the server at PORT.  What
happens to each, in their order and from the begin again, is DO:

pass	bytes as they are
tls	TLS with the client, by server-cert.pem and server-key.pem of CERTIFICATES, and TLS with the
	server
plain	the client is told that there is no TLS; TLS with the server
clear	no TLS with the client, nor with the server

Each connection ends with a line: its number, what happened, and "read" if SECRET was in its bytes,
else "blind"."""
import os
import select
import socket
import ssl
import struct
import sys
import threading

CERTIFICATES, PORT, SECRET, PLAN = sys.argv[1], int(sys.argv[2]), sys.argv[3].encode(), \
    sys.argv[4].split(",")
LIMIT_S = 60
# rtrs-protocol(7): REJECT with flag bit 1, the version and the magic.
NO_TLS = struct.pack("<BBHIIIQ", 18, 2, 0, 0, 0, 1, int.from_bytes(b"RTRStcp\0", "little"))


def as_server():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.num_tickets = 0
    context.load_cert_chain(os.path.join(CERTIFICATES, "server-cert.pem"),
                            os.path.join(CERTIFICATES, "server-key.pem"))
    context.set_alpn_protocols(["rtrs"])
    return context


def as_client():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["rtrs"])
    return context


def refuse_tls(client):
    """Read a ClientHello, if the client sends one, and answer that there is no TLS."""
    if client.recv(1, socket.MSG_PEEK) != b"\x16":
        return
    head = client.recv(5, socket.MSG_WAITALL)
    client.recv(int.from_bytes(head[3:5], "big"), socket.MSG_WAITALL)
    client.sendall(NO_TLS)


def pump(client, server, heard):
    """Pass bytes on, and keep them in heard, both ways, until either end closes."""
    other = {client: server, server: client}
    heard.update({client: b"", server: b""})
    while True:
        ready = [s for s in other if isinstance(s, ssl.SSLSocket) and s.pending()] or \
            select.select(list(other), [], [], LIMIT_S)[0]
        for sock in ready:
            data = sock.recv(1 << 16)
            if not data:
                return
            heard[sock] += data
            other[sock].sendall(data)


def between(client, number, what):
    """Relay a connection, and tell what was read of it."""
    heard = {}
    server = socket.create_connection(("127.0.0.1", PORT))
    for sock in (client, server):
        sock.settimeout(LIMIT_S)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        if what in ("plain", "clear"):
            refuse_tls(client)
        if what == "tls":
            client = as_server().wrap_socket(client, server_side=True)
        if what in ("tls", "plain"):
            server = as_client().wrap_socket(server)
        pump(client, server, heard)
    except OSError as why:
        print(f"{number} {what}: {why}", file=sys.stderr, flush=True)
    for sock in (client, server):
        sock.close()
    read = any(SECRET in data for data in heard.values())
    # print() writes a line in pieces, and the connections end at the same time.
    os.write(1, f"{number} {what} {'read' if read else 'blind'}\n".encode())


def main():
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    number = 0
    while True:
        client, _ = listener.accept()
        threading.Thread(target=between, args=(client, number, PLAN[number % len(PLAN)]),
                         daemon=True).start()
        number += 1


main()
