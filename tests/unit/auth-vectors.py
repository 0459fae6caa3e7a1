#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Vectors of test-auth-chap.c, computed without the code under test: hmac and hashlib of Python,
X25519 of python3-cryptography (OpenSSL).  Follows man/rtrs-protocol.pod, AUTHENTICATION.

	auth-vectors.py >auth-vectors.h
"""
import hashlib
import hmac
import struct

from cryptography.hazmat.primitives.asymmetric import x25519


def raw_public(secret):
    return x25519.X25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()


def shared(secret, public):
    return x25519.X25519PrivateKey.from_private_bytes(secret).exchange(
        x25519.X25519PublicKey.from_public_bytes(public))


def label(text):
    return text.encode().ljust(24, b"\0")


def mac(key, *parts):
    return hmac.new(key, b"".join(parts), hashlib.sha256).digest()


def row(first, step, n):
    return bytes((first + step * i) & 255 for i in range(n))


key = row(0x01, 7, 32)
name, server_name = b"alice/2", b"store1"
client_nonce, client_secret = row(0x21, 9, 32), row(0x31, 11, 32)
server_nonce, server_secret = row(0x41, 13, 32), row(0x51, 17, 32)


def handshake(version, transport):
    """The messages of a version over its transport, and what follows."""
    def hello(kind, nonce, secret, who):
        return struct.pack("<HHHH", kind, version, len(who), 0) + nonce + raw_public(secret) + \
            who.ljust(128, b"\0")

    def text(what):
        return label(f"rtrs-auth {version} {what}")

    channel = transport.ljust(8, b"\0") + row(0xA0, 5, 32)
    hello_msg = hello(0x8101, client_nonce, client_secret, name)
    challenge = hello(0x8102, server_nonce, server_secret, server_name)
    transcript = hashlib.sha256(text("transcript") + row(0x10, 1, 54) + row(0x60, 3, 56) +
                                channel + hello_msg + challenge).digest()
    prk = mac(key, text("key"), bytes([len(key)]),
              shared(client_secret, raw_public(server_secret)))
    claim = mac(prk, text("client"), transcript)
    answer = mac(prk, text("server"), transcript, claim)
    conn_key = mac(prk, text("connections"), transcript, claim)
    bound = channel if version > 1 else b""
    req, rsp = row(0x07, 1, 43), row(0x09, 2, 24)
    return [
        ("hello", hello_msg),
        ("challenge", challenge),
        ("proof", struct.pack("<HHHH", 0x8103, version, 0, 0) + claim),
        ("done", struct.pack("<HHHH", 0x8104, version, 0, 0) + answer),
        ("conn_key", conn_key),
        ("tag", mac(conn_key, text("connect"), bound, req)[:10]),
        ("accept", mac(conn_key, text("accept"), bound, req, rsp)),
    ]


def show(what, data):
    print(f"static const uint8_t golden_{what}[{len(data)}] = {{")
    data = data.rstrip(b"\0")           # C fills it up
    for i in range(0, len(data), 12):
        print("\t" + " ".join(f"0x{b:02x}," for b in data[i:i + 12]))
    print("};")


print("/* SPDX-License-Identifier: BSD-3-Clause */")
print("/* Made by auth-vectors.py. */")
for version, transport in ((1, b"rdma"), (2, b"tcp")):
    for what, data in handshake(version, transport):
        show(f"{what}_{version}", data)
show("key_id", mac(key, label("rtrs-auth 1 key id"))[:16])
