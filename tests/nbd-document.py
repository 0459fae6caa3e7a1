# SPDX-License-Identifier: BSD-3-Clause
# What the document of NBD says, and other servers do differently: nbd-document.py SOCKET
# [CASE...].  The unix socket SOCKET is rtrs-nbd's, with its export "disk" of 6 TiB as its
# default, in which only the MiB at 2 TiB is data.  Each case is a function below; all of them
# run, and the ones that fail are named at the end.
import os, socket, struct, sys, traceback

path = sys.argv[1]
SIZE, DATA, DATA_LEN, TIB = 6 << 40, 2 << 40, 1 << 20, 1 << 40
OPT_MAGIC, REQUEST_MAGIC, EXT_REQUEST_MAGIC = 0x49484156454f5054, 0x25609513, 0x21e41c71
EXPORT_NAME, LIST, INFO, GO, STRUCTURED, LIST_META, SET_META, EXTENDED = 1, 3, 6, 7, 8, 9, 10, 11
READ, WRITE, DISC, FLUSH, STATUS = 0, 1, 2, 3, 7
REQ_ONE, PAYLOAD_LEN = 0x8, 0x20
EINVAL = 22
ACK, UNSUP, TOO_BIG = 1, 0x80000001, 0x80000009
PAYLOAD_FLAG = 0x1000


class Client:
	def __init__(self, *options):
		"""Greet, and negotiate these options, which succeed."""
		self.extended, self.structured = False, False
		self.s = socket.socket(socket.AF_UNIX)
		self.s.settimeout(float(os.environ["TIMEOUT_S"]))
		self.s.connect(path)
		self.take(18)
		self.s.sendall(struct.pack(">I", 3))
		for number, data in options:
			assert self.option(number, data)[0] == ACK, number
		numbers = [number for number, _ in options]
		self.extended = EXTENDED in numbers
		self.structured = STRUCTURED in numbers

	def take(self, n):
		got = b""
		while len(got) < n:
			more = self.s.recv(n - len(got))
			if not more:
				raise EOFError("the server has closed after %d of %d bytes" %
				               (len(got), n))
			got += more
		return got

	def reply(self):
		"""The next reply to an option: its type and data."""
		magic, _, kind, length = struct.unpack(">QIII", self.take(20))
		assert magic == 0x3e889045565a9, hex(magic)
		return kind, self.take(length)

	def option(self, number, data=b""):
		"""The last reply to this option, with a list of those in front."""
		self.s.sendall(option(number, data))
		before = []
		while True:
			kind, got = self.reply()
			if kind == ACK or kind & 0x80000000:
				return kind, before
			before.append((kind, got))

	def info(self, number, name=b""):
		"""The information of INFO or GO, by its number."""
		kind, got = self.option(number, named(name) + b"\0\0")
		assert kind == ACK, hex(kind)
		return {struct.unpack(">H", data[:2])[0]: data[2:] for _, data in got}

	def served(self):
		self.info(GO)
		return self

	def request(self, kind, off=0, length=0, flags=0, cookie=1):
		if self.extended:
			return struct.pack(">IHHQQQ", EXT_REQUEST_MAGIC, flags, kind, cookie, off,
			                   length)
		return struct.pack(">IHHQQI", REQUEST_MAGIC, flags, kind, cookie, off, length)

	def chunk(self):
		"""The next chunk, which ends its reply: type (0: a simple reply), payload."""
		magic, = struct.unpack(">I", self.take(4))
		if magic == 0x67446698:
			error, _ = struct.unpack(">IQ", self.take(12))
			return 0, error
		assert magic == (0x6e8a278c if self.extended else 0x668e33ef), hex(magic)
		flags, kind, _ = struct.unpack(">HHQ", self.take(12))
		assert flags == 1, flags
		length, = struct.unpack(">8xQ", self.take(16)) if self.extended else \
			struct.unpack(">I", self.take(4))
		return kind, self.take(length)

	def ask(self, *arguments, payload=b"", **others):
		self.s.sendall(self.request(*arguments, **others) + payload)
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

	def expect_end(self):
		try:
			rest = self.s.recv(1)
		except ConnectionResetError:
			rest = b""
		assert rest == b"", "the server says %r" % rest


def option(number, data=b""):
	return struct.pack(">QII", OPT_MAGIC, number, len(data)) + data


def named(name=b""):
	return struct.pack(">I", len(name)) + name


CONTEXT = named() + struct.pack(">I", 1) + named(b"base:allocation")
WAYS = [(), ((STRUCTURED, b""),), ((STRUCTURED, b""), (SET_META, CONTEXT)),
	((EXTENDED, b""),), ((EXTENDED, b""), (SET_META, CONTEXT))]


# ---- the handshake ----

def info_and_go_have_the_same_flags():
	for way in WAYS:
		c = Client(*way)
		flags = [struct.unpack(">QH", c.info(number)[0])[1] for number in (INFO, GO)]
		assert flags[0] == flags[1], "%r: %#x, then %#x" % (way, *flags)
		assert bool(flags[0] & PAYLOAD_FLAG) == (way == WAYS[4]), \
			"%r: %#x" % (way, flags[0])


def name_is_the_name_of_the_list():
	kind, got = Client().option(LIST)
	assert kind == ACK
	names = [data[4:] for _, data in got]
	assert names == [b"disk"], names
	for asked in b"", b"disk":
		for number in INFO, GO:
			name = Client().info(number, asked)[1]
			assert name in names, "%r is %r" % (asked, name)


def unknown_options_of_any_length():
	c = Client()
	for length in 0, 1, 16384, 16385, 1 << 20:
		kind, _ = c.option(99, b"u" * length)
		assert kind == UNSUP, "%d bytes: %#x" % (length, kind)
	assert c.option(LIST)[0] == ACK


def choice_that_is_too_long_clears_the_old_one():
	c = Client(*WAYS[4])
	kind, _ = c.option(SET_META, CONTEXT[:-15] + b"x" * 20000)
	assert kind == TOO_BIG, hex(kind)
	assert struct.unpack(">QH", c.info(GO)[0])[1] & PAYLOAD_FLAG == 0
	error = c.status(0, 4096)
	assert error == EINVAL, error


def export_name_has_no_error_reply():
	c = Client()
	c.s.sendall(option(EXPORT_NAME, b"n" * 20000))
	c.expect_end()


# ---- errors and ends ----

def error_chunks_have_a_text():
	for way in WAYS[1:]:
		c = Client(*way).served()
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
	assert Client().served().ask(READ, SIZE, 1) == (0, EINVAL)


def half_closed_client_gets_its_replies():
	for way in WAYS:
		c = Client(*way).served()
		c.s.sendall(c.request(FLUSH) + c.request(READ, SIZE, 1) + c.request(FLUSH))
		c.s.shutdown(socket.SHUT_WR)
		for _ in range(3):
			c.chunk()
		c.expect_end()
	c = Client()
	c.s.sendall(option(LIST))
	c.s.shutdown(socket.SHUT_WR)
	assert c.reply()[0] == 2 and c.reply()[0] == ACK
	c.expect_end()


def replies_in_front_of_a_wrong_magic():
	for way in WAYS:
		c = Client(*way).served()
		c.s.sendall(c.request(FLUSH) + c.request(FLUSH, cookie=2) +
		            b"GET / HTTP/1.1\r\n\r\n" + b"." * 64)
		for _ in range(2):
			c.chunk()
		c.expect_end()
	c = Client()
	c.s.sendall(option(99, b"data") + b"GET / HTTP/1.1\r\n\r\n" + b"." * 64)
	assert c.reply()[0] == UNSUP
	c.expect_end()


# ---- BLOCK_STATUS ----

def hole_of_1_tib_is_one_reply():
	c = Client(*WAYS[4]).served()
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
	c = Client(*WAYS[2]).served()
	assert c.status(3 * TIB, 0xfffff000) == [(0xfffff000, 3)]


def status_follows_the_rules():
	for way in WAYS[2], WAYS[4]:
		c = Client(*way).served()
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
		assert Client(*way).served().status(0, 4096) == EINVAL


def status_payload():
	c = Client(*WAYS[4]).served()

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
	c = Client(*WAYS[3]).served()
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
