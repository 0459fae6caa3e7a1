# SPDX-License-Identifier: BSD-3-Clause
# What the document of NBD says of errors and extents: nbd-document.py SOCKET
# [CASE...].  The unix socket SOCKET is rtrs-nbd's, with its export "disk" of 6 TiB as its
# default, in which only the MiB at 2 TiB is data.  Each case is a function below; all of them
# run, and the ones that fail are named at the end.
import struct, sys, traceback

from nbdwire import *

path = sys.argv[1]
SIZE, DATA, DATA_LEN, TIB = 6 << 40, 2 << 40, 1 << 20, 1 << 40


class Client:
	def __init__(self, *options):
		"""Negotiate these options, and open the default export."""
		self.extended = EXTENDED in [number for number, _ in options]
		self.s = serve(path, *options)

	def take(self, n):
		return take(self.s, n)

	def chunk(self):
		"""The next chunk, which ends its reply: type (0: a simple reply), payload."""
		magic, = struct.unpack(">I", self.take(4))
		if magic == SIMPLE_MAGIC:
			error, _ = struct.unpack(">IQ", self.take(12))
			return 0, error
		assert magic == (EXT_CHUNK_MAGIC if self.extended else CHUNK_MAGIC), hex(magic)
		flags, kind, _ = struct.unpack(">HHQ", self.take(12))
		assert flags == 1, flags
		length, = struct.unpack(">8xQ", self.take(16)) if self.extended else \
			struct.unpack(">I", self.take(4))
		return kind, self.take(length)

	def ask(self, *arguments, payload=b"", **others):
		self.s.sendall(request(*arguments, extended=self.extended, **others) + payload)
		return self.chunk()

	def status(self, off, length, flags=0, payload=b""):
		"""The extents of a BLOCK_STATUS, or the number of its error."""
		kind, data = self.ask(STATUS, off, length, flags, payload=payload)
		if kind == 0x8001:
			return struct.unpack(">I", data[:4])[0]
		if kind == 5:
			assert not self.extended
			assert struct.unpack(">I", data[:4])[0] == 1
			return list(struct.iter_unpack(">II", data[4:]))
		assert kind == 6 and self.extended, kind
		context, count = struct.unpack(">II", data[:8])
		extents = list(struct.iter_unpack(">QQ", data[8:]))
		assert context == 1 and count == len(extents), (context, count)
		return extents


WAYS = [(), ((STRUCTURED, b""),), ((STRUCTURED, b""), (SET_META, CONTEXT)),
	((EXTENDED, b""),), ((EXTENDED, b""), (SET_META, CONTEXT))]


def error_chunks_have_a_text():
	for way in WAYS[1:]:
		c = Client(*way)
		cases = [(READ, SIZE, 1), (READ, 0, 0), (READ, 0, (64 << 20) + 1),
		         (READ, 0, 1, 0x8000),
			(STATUS, SIZE, 1), (STATUS, 0, 4096, 0x2)]
		if c.extended:
			cases += [(99, 0, 0), (FLUSH, 0, 1)]
		for case in cases:
			kind, data = c.ask(*case)
			assert kind == 0x8001, (case, kind)
			error, length = struct.unpack(">IH", data[:6])
			assert error == EINVAL, (case, error)
			assert length == len(data) - 6 > 10, (case, data)
			assert data[6:].decode("ascii").isprintable(), data
	# A simple reply has no room for one.
	assert Client().ask(READ, SIZE, 1) == (0, EINVAL)


# ---- BLOCK_STATUS ----

def hole_of_1_tib_is_one_reply():
	c = Client(*WAYS[4])
	off = replies = 0
	while off < SIZE:
		extents = c.status(off, min(TIB, SIZE - off))
		off += sum(length for length, _ in extents)
		replies += 1
	assert replies <= 8, replies
	assert c.status(3 * TIB, TIB) == [(TIB, 3)]
	assert c.status(3 * TIB, TIB, REQ_ONE) == [(TIB, 3)]
	# The bound of one reply: RELAY_ASKS.
	assert c.status(3 * TIB, 3 * TIB) == [(TIB, 3)]
	# Data in the middle of it is no end of the reply, but of REQ_ONE's.
	off = DATA - (5 << 30) - 512
	extents = [(DATA - off, 3), (DATA_LEN, 0), (TIB - (DATA - off) - DATA_LEN, 3)]
	assert c.status(off, TIB) == extents, c.status(off, TIB)
	assert c.status(off, TIB, REQ_ONE) == extents[:1]
	# With lengths of 32 bits a reply covers what it can.
	c = Client(*WAYS[2])
	assert c.status(3 * TIB, 0xfffff000) == [(0xfffff000, 3)]


def status_follows_the_rules():
	for way in WAYS[2], WAYS[4]:
		c = Client(*way)
		for off, length in ((DATA - 7, 4096), (DATA - 513, 1026), (DATA + 1, 1),
		                    (SIZE - 1, 1),
				(DATA - (1 << 20), 3 << 20), (DATA + DATA_LEN - 1, 2)):
			end = off + length
			one = c.status(off, length, REQ_ONE)
			assert len(one) == 1 and 0 < one[0][0] <= length, (off, length, one)
			seen = []
			while off < end:
				extents = c.status(off, end - off)
				assert extents and all(length for length, _ in extents), extents
				for length, flags in extents:
					assert flags in (0, 3), flags
					if length:
						seen.append((off, flags))
						off += length
			assert one[0][1] == seen[0][1]
			for at, flags in seen:
				assert flags == (0 if DATA <= at < DATA + DATA_LEN else 3), \
					(at - DATA, flags)
			# Neighbours differ.
			assert all(a[1] != b[1] for a, b in zip(seen, seen[1:])), seen
		assert c.status(0, 0) == EINVAL
		assert c.status(SIZE - 1, 2) == EINVAL
		assert c.status(0, 4096, 0x1) != EINVAL		# FUA has no meaning here
		assert c.status(0, 4096, 0x10) == EINVAL
	for way in WAYS[1], WAYS[3]:
		assert Client(*way).status(0, 4096) == EINVAL


def status_payload():
	c = Client(*WAYS[4])

	def ask(length, *contexts):
		payload = struct.pack(">Q", length)
		payload += b"".join(struct.pack(">I", x) for x in contexts)
		return c.status(0, len(payload), PAYLOAD_LEN, payload)
	assert ask(4096, 1) == [(4096, 3)]
	assert ask(4096, 2) == EINVAL
	assert ask(4096, 1, 1) == EINVAL
	assert ask(SIZE + 1, 1) == EINVAL
	assert c.status(0, 7, PAYLOAD_LEN, b"1234567") == EINVAL
	assert c.status(0, 4096) == [(4096, 3)]
	c = Client(*WAYS[3])
	assert ask(4096, 1) == EINVAL
	assert c.ask(FLUSH)[0] == 0


failed = []
for case in [f for f in globals().values() if callable(f) and getattr(f, "__code__", None) and
		f.__code__.co_argcount == 0]:
	if sys.argv[2:] and case.__name__ not in sys.argv[2:]:
		continue
	print(case.__name__, flush=True)
	try:
		case()
	except (AssertionError, OSError, EOFError):
		traceback.print_exc(file=sys.stdout)
		failed.append(case.__name__)
if failed:
	sys.exit("FAIL: " + ", ".join(failed))
