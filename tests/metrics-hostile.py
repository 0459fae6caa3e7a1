#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Clients that a server of metrics must stand, one after another, at each address:

	metrics-hostile.py PID ADDRESS...

An ADDRESS is PORT of 127.0.0.1, or a path.  After each kind of client another one asks, and must
get all of the metrics while the hostile ones still hold their connections.  At the end the
descriptors of PID are as many as before.
"""
import os
import random
import resource
import socket
import sys
import time

TIMEOUT_S = float(os.environ.get("TIMEOUT_S", "30"))
MANY = 1000
GET = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"


def connect(address):
    if address.isdigit():
        s = socket.socket(socket.AF_INET)
        where = ("127.0.0.1", int(address))
    else:
        s = socket.socket(socket.AF_UNIX)
        where = address
    # Before the time-out: it would make a connect to a full backlog an error.
    s.connect(where)
    s.settimeout(TIMEOUT_S)
    return s


def send(s, data):
    """What the server does not want to hear any more is no error."""
    try:
        s.sendall(data)
    except (BrokenPipeError, ConnectionResetError):
        pass
    return s


def hear(s):
    text = b""
    try:
        while True:
            more = s.recv(65536)
            if not more:
                break
            text += more
    except ConnectionResetError:
        pass
    s.close()
    return text


def expect_metrics(address):
    text = hear(send(connect(address), GET))
    head, _, body = text.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 "), text[:200]
    length = [line for line in head.split(b"\r\n") if line.startswith(b"Content-Length: ")]
    assert len(body) == int(length[0].split()[1]), (len(body), head)


def silent(address):
    return [connect(address) for _ in range(MANY)]


def halves(address):
    return [send(connect(address), GET[:random.randrange(1, len(GET))]) for _ in range(100)]


def garbage(address):
    return [send(connect(address), random.randbytes(random.randrange(1, 4096)))
            for _ in range(100)]


def headers(address):
    """Heads without an end."""
    line = b"X-Line: " + b"a" * 500 + b"\r\n"
    return [send(connect(address), GET[:-2] + line * 1000) for _ in range(20)]


def long_line(address):
    return [send(connect(address), b"GET /" + b"%2e" * 100000) for _ in range(20)]


def readers_that_do_not(address):
    held = []
    for _ in range(100):
        s = connect(address)
        if s.family == socket.AF_INET:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        held.append(send(s, GET * 100))
    return held


def bodies(address):
    return [send(connect(address), b"POST /metrics HTTP/1.1\r\nHost: localhost\r\n"
                 b"Content-Length: 99999999999\r\n\r\n" + b"a" * 100000) for _ in range(20)]


def resets(address):
    for _ in range(100):
        s = send(connect(address), GET)
        # A close that is a reset.
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        s.close()
    return []


def descriptors(pid):
    return len(os.listdir("/proc/%s/fd" % pid))


def main():
    pid, addresses = sys.argv[1], sys.argv[2:]
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    before = descriptors(pid)
    for kind in (silent, halves, garbage, headers, long_line, readers_that_do_not, bodies, resets):
        for address in addresses:
            held = kind(address)
            expect_metrics(address)
            print(kind.__name__, address, len(held), "held, descriptors", descriptors(pid),
                  flush=True)
            assert descriptors(pid) < before + 70
            for s in held:
                s.close()
    deadline = time.monotonic() + TIMEOUT_S
    while descriptors(pid) > before:
        assert time.monotonic() < deadline, "%d descriptors are left" % descriptors(pid)
        time.sleep(0.05)


main()
