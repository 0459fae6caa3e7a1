# SPDX-License-Identifier: BSD-3-Clause
# Connections to a gateway's port from other addresses than 127.0.0.1, which open nothing:
# nbd-flood.py PORT KIND NUMBER NETS.  KIND is
#	idle	NUMBER that say nothing; then, again and again, one more in the place of the oldest
#	half	NUMBER that each send an option, in clear, without its last byte
# NETS is the number of addresses.  Prints a line when NUMBER have come, and ends when its input
# does.
import collections, os, resource, select, socket, struct, sys

port, kind, number, nets = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
PATIENCE_S = float(os.environ["TIMEOUT_S"])
OPT_MAGIC, GO, DATA = 0x49484156454f5054, 7, 16384

hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
held = collections.deque()


def come(i):
	s = socket.socket()
	s.settimeout(PATIENCE_S)
	s.bind(("127.0.0.%d" % (2 + i % nets), 0))
	s.connect(("127.0.0.1", port))
	held.append(s)
	return s


def send_half(s):
	try:
		# All of the greeting: the gateway has accepted the connection.
		assert len(s.recv(18, socket.MSG_WAITALL)) in (0, 18)
		s.sendall(struct.pack(">IQII", 3, OPT_MAGIC, GO, DATA) + b"x" * (DATA - 1))
	except (ConnectionResetError, BrokenPipeError):
		pass			# others have its place already


for n in range(number):
	client = come(n)
	if kind == "half":
		send_half(client)
print("come", flush=True)
while not select.select([sys.stdin], [], [], 0.001)[0]:
	if kind == "idle":
		come(n)
		n += 1
		held.popleft().close()
