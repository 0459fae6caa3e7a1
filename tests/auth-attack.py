#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Whoever is between client and server, over tcp without TLS: changes, cuts, repeats, turns around
and leaves out the messages of authentication (man/rtrs-protocol.pod), and connects with what was
heard.

	auth-attack.py BENCH PORT KEYS MODE...

BENCH is rtrs-bench, PORT that of a server with --auth=require and the keys of KEYS, which has one.
MODE is "between", "replay", "downgrade PORT-OF-A-SERVER-WITH-auth=psk", or "stall N".  Fails with a
line for each attack that worked."""
import select
import socket
import struct
import subprocess
import sys
import threading
import time

BENCH, PORT, KEYS, MODE = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
HDR = struct.Struct("<BBHIIIQ")
SEND, CONNECT, ACCEPT, REJECT = 1, 16, 17, 18
LIMIT_S = 20
failures = []


def check(good, what):
    if not good:
        failures.append(what)
        print("WORKED: " + what, flush=True)


def recv_exactly(sock, n):
    data = b""
    while len(data) < n:
        more = sock.recv(n - len(data))
        if not more:
            return None
        data += more
    return data


def recv_frame(sock):
    """A frame as [header fields, payload], or None at the end."""
    head = recv_exactly(sock, HDR.size)
    if head is None:
        return None
    fields = list(HDR.unpack(head))
    payload = recv_exactly(sock, fields[3])
    return None if payload is None else [fields, payload]


def frame_bytes(frame):
    fields, payload = frame
    fields[3] = len(payload)
    return HDR.pack(*fields) + payload


def kind(frame):
    """The message of authentication that a frame is, or ''."""
    op, payload = frame[0][0], frame[1]
    if op == CONNECT and len(payload) == 56:
        return {0xA1: "ask", 0xA2: "tag"}.get(payload[45], "")
    if op == ACCEPT and len(payload) == 56:
        return {0xA1: "wants", 0xA2: "accept"}.get(payload[20], "")
    if op == SEND and len(payload) in (40, 200):
        return {0x8101: "hello", 0x8102: "challenge", 0x8103: "proof",
                0x8104: "done"}.get(struct.unpack_from("<H", payload)[0], "")
    return ""


class Between:
    """A proxy: change(kind, frame) gives the frames to send on, and those to send back."""

    def __init__(self, change, to=PORT):
        self.change, self.to = change, to
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.lock = threading.Lock()
        self.heard = []             # the frames of the client, by connection
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self.to))
            said = []
            self.heard.append(said)
            for pair in ((client, server, said), (server, client, None)):
                threading.Thread(target=self.pump, args=pair, daemon=True).start()

    def pump(self, source, sink, said):
        try:
            while True:
                frame = recv_frame(source)
                if frame is None:
                    break
                if said is not None:
                    said.append([list(frame[0]), frame[1]])
                with self.lock:
                    on, back = self.change(kind(frame), frame)
                for f in on:
                    sink.sendall(frame_bytes(f))
                for f in back:
                    source.sendall(frame_bytes(f))
        except OSError:
            pass
        for sock in (source, sink):
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        self.listener.close()


def run_client(port, *options):
    """True if an honest client gets its IO done."""
    done = subprocess.run([BENCH, "--number-ios=1", *options, f"127.0.0.1:{port}", "disk"],
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=LIMIT_S * 3,
                          check=False)
    run_client.said = done.stderr.decode(errors="replace")
    return done.returncode == 0


def gets_through(change, to=PORT, options=("--auth-psk=" + KEYS,)):
    proxy = Between(change, to)
    done = run_client(proxy.port, *options)
    proxy.close()
    return done, proxy


def unchanged(_, frame):
    return [frame], []


def each(what, act):
    """Act on each frame of the kind, because a client tries a connection that was reset once more;
    all others go on."""
    met = []

    def change(this, frame):
        if this != what:
            return [frame], []
        met.append(1)
        return act(frame)
    change.met = met
    return change


def flipped(offset, bit):
    def act(frame):
        payload = bytearray(frame[1])
        payload[offset] ^= 1 << bit
        return [[frame[0], bytes(payload)]], []
    return act


def cut(length):
    return lambda frame: ([[frame[0], frame[1][:length]]], [])


PLACES = {
    "ask": (6, 12, 30, 44, 47, 55), "wants": (6, 16, 25, 33),
    "hello": (0, 3, 5, 7, 8, 39, 40, 71, 72, 199),
    "challenge": (0, 3, 4, 7, 8, 39, 40, 71, 72, 199), "proof": (0, 2, 4, 7, 8, 39),
    "done": (0, 2, 5, 7, 8, 39), "tag": (6, 8, 10, 12, 27, 28, 43, 44, 46, 55),
    "accept": (4, 6, 8, 12, 16, 24, 55),
}


def between():
    check(gets_through(unchanged)[0], "nothing: the honest client did not get through")
    for what, places in PLACES.items():
        for n, offset in enumerate(places):
            change = each(what, flipped(offset, n % 8))
            check(not gets_through(change)[0], f"{what}, byte {offset} changed")
            check(change.met, f"nothing: no {what} was met: {run_client.said}")
    for what in ("hello", "challenge", "proof", "done"):
        for length in (0, 1, 2, 7, 8, 39, 199 if what in ("hello", "challenge") else 24):
            check(not gets_through(each(what, cut(length)))[0], f"{what} cut at {length}")
        # After PROOF both have all they need: a second one of the same comes too late.
        if what in ("hello", "challenge"):
            check(not gets_through(each(what, lambda f: ([f, [list(f[0]), f[1]]], [])))[0],
                  f"{what} twice")
    for what in ("hello", "challenge", "proof"):
        check(not gets_through(each(what, lambda f: ([], [f])))[0], f"{what} reflected")


def connect_and_say(frames):
    """Say the frames of a connection that was heard; returns the kinds of the answers."""
    kinds = []
    with socket.create_connection(("127.0.0.1", PORT)) as sock:
        sock.settimeout(2)
        try:
            for frame in frames:
                sock.sendall(frame_bytes(frame))
                if kind(frame) in ("ask", "hello", "proof", "tag") or frame[0][0] == SEND:
                    answer = recv_frame(sock)
                    if answer is None:
                        break
                    kinds.append((answer[0][0], kind(answer), answer[1]))
        except OSError:
            pass
    return kinds


def replay():
    done, proxy = gets_through(unchanged)
    check(done, "nothing: the honest client did not get through")
    heard = [c for c in proxy.heard if c]
    check(len(heard) >= 3, "nothing: fewer connections than a proof and a path have")
    for frames in heard + heard[1:]:
        for op, what, payload in connect_and_say(frames):
            check(what != "accept", "a connection that was heard was let in again")
            check(op != ACCEPT or what == "wants", "a connection was accepted without a proof")
            if what == "done":
                check(payload[4:6] != b"\0\0", "a proof that was heard was believed")
    # A tag that is right for one connection, on another one.
    tags = [f for c in heard for f in c if kind(f) == "tag"]
    check(len(tags) >= 2, "nothing: fewer than two tags were heard")
    for frame in tags:
        forged = [list(frame[0]), frame[1][:46] + tags[0][1][46:]]
        for op, _, _ in connect_and_say([forged]):
            check(op == REJECT, "a tag of another connection was taken")


def without(what, first, last):
    """Zero bytes of a message: its end does not authenticate, or so it looks."""
    def change(this, frame):
        if this != what:
            return [frame], []
        payload = frame[1]
        return [[frame[0], payload[:first] + bytes(last - first) + payload[last:]]], []
    return change


def downgrade():
    lenient = int(sys.argv[5])
    for to in (PORT, lenient):
        check(not gets_through(without("ask", 45, 56), to)[0], "the ask left out")
        check(not gets_through(without("wants", 20, 56), to)[0], "the wish left out")
        check(not gets_through(without("tag", 45, 56), to)[0], "the tag left out")
        check(not gets_through(without("accept", 20, 56), to)[0], "the server's proof left out")
    # The first version, which binds no connection to its TLS, is not spoken over tcp.
    older = each("ask", lambda f: ([[f[0], f[1][:55] + b"\x01"]], []))
    check(not gets_through(older)[0], "the ask made one for version 1")
    check(older.met, "nothing: no ask was met")
    check(not gets_through(each("wants", lambda f: ([[f[0], f[1][:33] + b"\x01" + f[1][34:]]], [])),
                           lenient)[0], "the wish made one for version 1")
    # A client that does not require a proof goes on without: doc/promises.md does not promise more.
    check(gets_through(without("ask", 45, 56), lenient, ("--auth=psk", "--auth-psk=" + KEYS))[0],
          "nothing: a client that does not insist did not go on")
    check(not gets_through(without("ask", 45, 56), PORT, ("--auth=psk", "--auth-psk=" + KEYS))[0],
          "a server that insists took a client without")


def stall():
    """Many connections of a host that begin the proof and go no further: an honest client of
    another host gets in at once."""
    many = int(sys.argv[5])
    _, proxy = gets_through(unchanged)
    frames = next(c for c in proxy.heard if c and kind(c[0]) == "ask")
    socks = []
    for n in range(many):
        sock = socket.create_connection(("127.0.0.1", PORT), source_address=("127.0.0.2", 0))
        socks.append(sock)
        for frame in frames[:1 + n % 2]:
            sock.sendall(frame_bytes(frame))
        if n % 250 == 249:
            before = time.monotonic()
            check(run_client(PORT, "--auth-psk=" + KEYS), "the honest client stays out")
            check(time.monotonic() - before < LIMIT_S, "the honest client waits")
    # All of them are closed: the first ones to make room, the last ones by the limit of time.
    deadline = time.monotonic() + LIMIT_S
    left = set(socks)
    at_once = None
    while left and time.monotonic() < deadline:
        ready, _, _ = select.select(list(left)[:512], [], [], 0.2)
        for sock in ready:
            try:
                if not sock.recv(4096):
                    left.discard(sock)
            except OSError:
                left.discard(sock)
        if at_once is None and not ready:
            at_once = len(left)
    check(not left, f"{len(left)} stalled connections are still open")
    check(at_once is None or at_once <= 64, f"{at_once} connections of a host were open at once")


{"between": between, "replay": replay, "downgrade": downgrade, "stall": stall}[MODE]()
sys.exit(1 if failures else 0)
