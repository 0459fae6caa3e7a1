#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write tests/unit/golden.h from what capture.sh has recorded.

extract.py KERNEL FILE.pcap [KERNEL FILE.pcap]... >golden.h

Takes RoCEv2 packets (UDP port 4791) apart into CM messages and the messages of RC connections, and
keeps the first of each kind, for each kernel, with always_invalidate=Y and N.
"""
import struct
import sys

ROCE_PORT = 4791
DEPTH = 16                      # capture.sh asks the server for it
OFF_BITS = 28 - 4
CM_REQ, CM_REJ, CM_REP = 0x10, 0x12, 0x13

# RC opcodes: (message, first, last, has RETH, has ImmDt, has IETH)
RC = {
    0x00: ("SEND", True, False, False, False, False),
    0x01: ("SEND", False, False, False, False, False),
    0x02: ("SEND", False, True, False, False, False),
    0x03: ("SEND_WITH_IMM", False, True, False, True, False),
    0x04: ("SEND", True, True, False, False, False),
    0x05: ("SEND_WITH_IMM", True, True, False, True, False),
    0x06: ("RDMA_WRITE", True, False, True, False, False),
    0x07: ("RDMA_WRITE", False, False, False, False, False),
    0x08: ("RDMA_WRITE", False, True, False, False, False),
    0x09: ("RDMA_WRITE_WITH_IMM", False, True, False, True, False),
    0x0a: ("RDMA_WRITE", True, True, True, False, False),
    0x0b: ("RDMA_WRITE_WITH_IMM", True, True, True, True, False),
    0x17: ("SEND_WITH_INV", True, True, False, False, True),
}


def packets(path):
    """(source address, BTH and what follows, without ICRC) of each RoCE packet."""
    with open(path, "rb") as f:
        data = f.read()
    order = "<" if data[:4] == b"\xd4\xc3\xb2\xa1" else ">"
    at = 24
    while at + 16 <= len(data):
        length = struct.unpack_from(order + "I", data, at + 8)[0]
        frame = data[at + 16:at + 16 + length]
        at += 16 + length
        if frame[12:14] != b"\x08\x00":
            continue
        ip = frame[14:14 + struct.unpack_from(">H", frame, 16)[0]]
        udp = ip[(ip[0] & 15) * 4:]
        if ip[9] == 17 and struct.unpack_from(">H", udp, 2)[0] == ROCE_PORT:
            yield ip[12:16], udp[8:struct.unpack_from(">H", udp, 4)[0] - 4]


class Conn:
    def __init__(self, cid):
        self.cid, self.rsp, self.front = cid, None, []


class Capture:
    """conns, and in order of their end: messages {conn, to_server, op, addr, rkey, imm, inv,
    data}"""

    def __init__(self, path):
        self.requests = {}      # local id of a REQ: (Conn, client's address, its QP)
        self.by_qp = {}         # (receiver is the server, QP): Conn
        self.cm = []            # (name, Conn, private data)
        self.messages = []
        self.partial, self.seen = {}, set()
        self.client = None
        for source, bth in packets(path):
            opcode, qp = bth[0], int.from_bytes(bth[5:8], "big")
            psn = int.from_bytes(bth[9:12], "big")
            body = bth[12:len(bth) - (bth[1] >> 4 & 3)]
            if opcode == 0x64 and qp == 1:
                self.mad(source, body[8:])
            elif opcode in RC:
                self.packet(source, qp, psn, RC[opcode], body)

    def mad(self, source, mad):
        attr = struct.unpack_from(">H", mad, 16)[0]
        if mad[1] != 7:
            return
        cm = mad[24:]
        mine, other = cm[0:4], cm[4:8]
        if attr == CM_REQ:
            if (source, mine) in self.seen:
                return          # sent again
            self.seen.add((source, mine))
            private = cm[140:140 + 92][36:]
            conn = Conn(struct.unpack_from("<H", private, 6)[0])
            qp = int.from_bytes(cm[32:35], "big")
            self.requests[mine] = conn
            self.by_qp[(False, qp)] = conn
            self.client = source
            self.cm.append(("conn_req", conn, private))
        elif attr == CM_REP and other in self.requests and not self.requests[other].rsp:
            conn = self.requests[other]
            conn.rsp = cm[36:36 + 56]
            assert not any(cm[36 + 56:36 + 196])
            self.by_qp[(True, int.from_bytes(cm[12:15], "big"))] = conn
            self.cm.append(("conn_rsp", conn, conn.rsp))
        elif attr == CM_REJ and other in self.requests:
            reason = struct.unpack_from(">H", cm, 10)[0]
            if reason == 28:
                self.cm.append(("conn_rej", self.requests[other], cm[84:84 + 56]))

    def packet(self, source, qp, psn, kind, body):
        op, first, last, reth, imm, ieth = kind
        to_server = source == self.client
        key = (to_server, qp)
        conn = self.by_qp.get(key)
        if conn is None or (key, psn, id(conn)) in self.seen:
            return
        self.seen.add((key, psn, id(conn)))
        if first:
            self.partial[key] = dict(conn=conn, to_server=to_server, addr=0, rkey=0, imm=0, inv=0,
                                     data=b"")
        m = self.partial[key]
        if reth:
            m["addr"], m["rkey"], m["len"] = struct.unpack_from(">QII", body)
            body = body[16:]
        if imm:
            m["imm"] = struct.unpack_from(">I", body)[0]
            body = body[4:]
        if ieth:
            m["inv"] = struct.unpack_from(">I", body)[0]
            body = body[4:]
        m["data"] += body
        if last:
            m["op"] = op
            self.messages.append(m)
            del self.partial[key]


def rnbd_name(m):
    """Name of a request's RNBD message."""
    user = m["user"]
    kind = struct.unpack_from("<H", user)[0]
    if kind == 4:
        op = user[16]
        return {0: "read", 1: "write", 2: "flush", 3: "discard", 5: "write_zeroes"}[op]
    if kind == 2 and user[6:].startswith(b"/dev/missing"):
        return "open_missing"
    return {0: "sess_info", 2: "open", 5: "close"}[kind]


def select(cap, suffix, new_rkey):
    """Yield (name, message) of the sessions that have or have not NEW_RKEY."""
    def wanted(conn):
        return conn.rsp and bool(conn.rsp[16] & 2) == new_rkey

    have = {}

    def once(name, m):
        if name not in have:
            have[name] = m

    for name, conn, private in cap.cm:
        if name == "conn_rej":
            if new_rkey:
                once("conn_rej", dict(data=private))
                for n, c, p in cap.cm:
                    if n == "conn_req" and c is conn:
                        once("conn_req_rejected", dict(data=p))
        elif wanted(conn):
            once("%s_%d" % (name, conn.cid), dict(data=private))
    chunks, pending = [], {}
    for m in cap.messages:
        conn = m["conn"]
        if not wanted(conn):
            continue
        side = "clt" if m["to_server"] else "srv"
        kind = m["imm"] >> 28
        if m["op"] == "SEND":
            if m["to_server"]:
                once("info_req", m)
            else:
                once("info_rsp", m)
                n = struct.unpack_from("<H", m["data"], 2)[0]
                chunks = []
                for i in range(n):
                    addr, _, size = struct.unpack_from("<QII", m["data"], 8 + 16 * i)
                    each = size // (DEPTH // n)
                    chunks += [addr + k * each for k in range(DEPTH // n)]
        elif kind in (8, 9) and m["op"].endswith("IMM"):
            once("%s_%s" % ("hb" if kind == 8 else "hb_ack", side), m)
        elif m["to_server"]:
            buf_id, off = (m["imm"] & 0xfffffff) >> OFF_BITS, m["imm"] & (1 << OFF_BITS) - 1
            m["start"] = m["addr"] - chunks[buf_id]
            header = m["data"][off - m["start"]:]
            usr_len = struct.unpack_from("<H", header, 2)[0]
            m["user"] = m["data"][off - m["start"] - usr_len:off - m["start"]]
            m["chunk"] = chunks[buf_id]
            name = rnbd_name(m)
            if name in ("read", "write") and m["user"][8:16] != struct.pack("<Q", 2048):
                name = None     # of somebody who looks for partitions
            if name and name not in have:
                have[name] = m
                pending[buf_id] = name
            else:
                pending.pop(buf_id, None)
        elif not m["op"].endswith("IMM"):
            # In front of the answer of this connection that comes next.
            conn.front.append(m)
        else:
            name = pending.pop(m["imm"] & 0x7ffff, None)
            front, conn.front = conn.front, []
            if name:
                for f in front:
                    once(name + ("_inv" if f["op"] == "SEND_WITH_INV" else "_data"), f)
                once(name + "_answer", m)
    for name in have:
        yield name + "_" + suffix, have[name]


def emit(name, m, rows):
    data, fill = m["data"], 0
    # What is one byte again and again need not be written out.
    while fill < len(data) and data[fill] == data[0]:
        fill += 1
    if fill < 512:
        fill = 0
    tail = data[fill:]
    row = [".name = \"%s\"" % name, ".op = %s" % m.get("op", "CM")]
    if fill:
        row += [".fill = 0x%02x, .nfill = %d" % (data[0], fill)]
    if tail:
        print("static const uint8_t bytes_of_%s[] = {" % name)
        for i in range(0, len(tail), 16):
            print("    " + " ".join("0x%02x," % b for b in tail[i:i + 16]))
        print("};\n")
        row += [".bytes = bytes_of_%s, .len = %d" % (name, len(tail))]
    row += [".%s = 0x%x" % (f, m[f]) for f in ("addr", "chunk", "rkey", "imm", "inv") if m.get(f)]
    rows.append("\t{ " + ",\n\t  ".join(row) + " },")


def main():
    kernels, rows = sys.argv[1::2], []
    print("""/* SPDX-License-Identifier: BSD-3-Clause */
/* What rnbd-client and rnbd-server of Linux %s said to each other, queue depth %d.
 * _y: with always_invalidate=Y, _n: with N.  Written by tests/golden/extract.py; see the README
 * there. */
#ifndef TESTS_GOLDEN_H
#define TESTS_GOLDEN_H

#include <stddef.h>
#include <stdint.h>

enum golden_op { CM, SEND, SEND_WITH_IMM, SEND_WITH_INV, RDMA_WRITE, RDMA_WRITE_WITH_IMM };

struct golden {
	const char *name;
	enum golden_op op;	/* CM: private data */
	uint8_t fill;		/* the data begins with nfill of these, and goes on with bytes */
	size_t nfill;
	const uint8_t *bytes;
	size_t len;
	/* where it was written, under which key; without data both mean nothing */
	uint64_t addr;
	uint32_t rkey;
	uint64_t chunk;		/* of a request: address of its chunk */
	uint32_t imm, inv;	/* immediate; key that is invalidated */
};
""" % (" and of ".join(kernels), DEPTH))
    for kernel, path in zip(kernels, sys.argv[2::2]):
        cap = Capture(path)
        for mode, new_rkey in (("y_", True), ("n_", False)):
            for name, m in select(cap, mode + kernel.replace(".", "_"), new_rkey):
                emit(name, m, rows)
    print("static const struct golden golden[] = {\n%s\n};\n\n#endif" % "\n".join(rows))


main()
