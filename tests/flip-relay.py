# SPDX-License-Identifier: BSD-3-Clause
# A network that changes a bit: flip-relay.py PORT PLAN.  Listens at a port of 127.0.0.1, which is
# printed, and passes bytes on to PORT and back.  Each line "WAY OPCODE SKIP BIT" that comes to
# the fifo PLAN is carried out once: "plan" is printed when it holds, and the flip when it is done.
# Of the frames (rtrs-protocol(7)) that go to the "server" or the "client", and have OPCODE, bytes
# and BIT, SKIP pass, and BIT of the next is flipped: from the begin of its header, or, if negative,
# from its end.
import os, socket, struct, sys, threading

port, plan = int(sys.argv[1]), sys.argv[2]
lock = threading.Lock()
wanted = []		# at most one: [way, opcode, skip, bit]


def read_plan():
	while True:
		with open(plan) as lines:
			for line in lines:
				way, *numbers = line.split()
				with lock:
					wanted[:] = [[way, *map(int, numbers)]]
				print("plan", flush=True)


def change(way, frame):
	with lock:
		if not wanted or wanted[0][:2] != [way, frame[0]] or len(frame) == 24 or \
				8 * len(frame) <= wanted[0][3]:
			return
		wanted[0][2] -= 1
		if wanted[0][2] >= 0:
			return
		bit = wanted.pop()[3]
	bit += 8 * len(frame) if bit < 0 else 0
	frame[bit // 8] ^= 1 << bit % 8
	print(way, frame[0], bit, flush=True)


def pump(source, sink, way):
	try:
		with source.makefile("rb", 1 << 20) as stream:
			while head := stream.read(24):
				length = head[4:8] if len(head) == 24 else bytes(4)
				frame = bytearray(head + stream.read(*struct.unpack("<I", length)))
				change(way, frame)
				sink.sendall(frame)
	except OSError:
		pass
	for end in source, sink:
		try:
			end.shutdown(socket.SHUT_RDWR)
		except OSError:
			pass


threading.Thread(target=read_plan, daemon=True).start()
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
	client = listener.accept()[0]
	try:
		server = socket.create_connection(("127.0.0.1", port))
	except OSError:
		client.close()
		continue
	for end in client, server:
		end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
	for ends in (client, server, "server"), (server, client, "client"):
		threading.Thread(target=pump, args=ends, daemon=True).start()
