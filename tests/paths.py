# SPDX-License-Identifier: BSD-3-Clause
# paths.py SOURCE SERVER PORT NPATHS CONNECTIONS OF: as a client at SOURCE begin NPATHS paths with
# the first CONNECTIONS of OF connections each, over tcp.  Prints "up", or "refused" when one was,
# and closes all of them when its input ends.
import resource, socket, struct, sys, uuid
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
source, server = sys.argv[1:3]
port, npaths, ncons, of = map(int, sys.argv[3:])
ACCEPT, MAGIC = 17, 0x0070637453525452
socks = []
for _ in range(npaths):
    path, session = uuid.uuid4().bytes, uuid.uuid4().bytes
    for cid in range(ncons):
        s = socket.create_connection((server, port), source_address=(source, 0))
        socks.append(s)
        s.settimeout(30)
        s.sendall(struct.pack("<BBHI4sIQ", 16, 0, 0, 56, bytes(4), 1, MAGIC) +
                  struct.pack("<BBHHHHH16s16sB11s", 0, 0, 0x1BBD, 0x200, cid, of, 0, path,
                              session, cid == 0, bytes(11)))
        answer = s.recv(24)
        if not answer or answer[0] != ACCEPT:
            print("refused", flush=True)
            sys.exit()
print("up", flush=True)
sys.stdin.read()
