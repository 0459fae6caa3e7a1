#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write the messages that capture.sh has recorded to files, one for each kernel and mode.

extract.py DIRECTORY KERNEL FILE.pcap [KERNEL FILE.pcap]...

Takes RoCEv2 packets (UDP port 4791) apart into CM messages and the messages of RC connections, and
keeps the first of each kind, for each kernel, with always_invalidate=Y and N.
"""
import os
import re
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


def select(cap, new_rkey):
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
        yield name, have[name]


def lines_of(data):
    """@data in hexadecimal, 32 bytes a line; what is one byte 16 times or more is BYTE*COUNT."""
    for part in re.finditer(rb"(.)\1{15,}|(?:(?!(.)\2{15})(?s:.)){1,32}", data, re.S):
        one = part[0][:1]
        yield "%s*%d" % (one.hex(), len(part[0])) if part[1] else part[0].hex()


def text_of(name, m):
    """A line of what the message is, and its data."""
    fields = ["%s=%x" % (f, m[f]) for f in ("addr", "chunk", "rkey", "imm", "inv") if m.get(f)]
    return "\n ".join([" ".join([name, m.get("op", "CM")] + fields), *lines_of(m["data"])])


def write(directory, kernel, mode, messages):
    """The file of @mode, always_invalidate=Y or N, and @kernel."""
    file = "%s_%s" % (mode, kernel.replace(".", "_"))
    with open(os.path.join(directory, file), "w") as f:
        print("# SPDX-License-Identifier: BSD-3-Clause\n"
              "# rnbd-client and rnbd-server of Linux %s, queue depth %d, always_invalidate=%s: "
              "see README." % (kernel, DEPTH, mode.upper()), file=f)
        for name, m in messages:
            print(text_of(name, m), file=f)


def main():
    directory, kernels = sys.argv[1], sys.argv[2::2]
    for kernel, path in zip(kernels, sys.argv[3::2]):
        cap = Capture(path)
        for mode in "yn":
            write(directory, kernel, mode, select(cap, mode == "y"))


if __name__ == "__main__":
    main()
