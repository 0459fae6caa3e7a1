# SPDX-License-Identifier: BSD-3-Clause
# An NBD client by hand, which stands one below each limit of a front end, at the limit, one beyond
# it and four times as far, and checks all data:
#
#	nbd-limits.py SOCKET FRONT HEADERS CASE...
#
# FRONT is rtrs-nbd or nbdkit, HEADERS simple, structured or extended, and CASE a function below.
# With $CA, a file with certificates, the client asks for TLS.  $SERVER_PID is the front end's, and
# $DISK the name of an export other than "disk".  doc/limits.md lists the limits.
import fcntl, os, random, select, socket, ssl, struct, sys, termios, time

from nbdwire import *

path, front, headers = sys.argv[1:4]
DISK = os.environ.get("DISK", "disk").encode()
SIZE = 384 << 20			# of this export
OFFSET_DATA, BLOCK_STATUS, BLOCK_STATUS_EXT, ERROR = 1, 5, 6, 0x8001
K, M = 1 << 10, 1 << 20
DATA_MAX = 64 * M			# NBD_DATA_MAX, of nbdkit, too
NAME_MAX = 254				# RNBD_NAME_MAX without its NUL
OPTION_MAX, SKIP_MAX, STRING_MAX = 16 * K, 1 * M, 4096
CONN_MEMORY, CONN_IOS = 64 * M, 256	# NBD_CONN_MEMORY, NBD_CONN_IOS

# Bytes that tell where they belong, and in which round they were written.
PERIOD = M + 13
TILE = random.Random(42).randbytes(PERIOD) * 70


def pattern(off, length, salt):
	start = (off + salt * 104729) % PERIOD
	return TILE[start:start + length]


def server_sleeps():
	"""Do all threads of the server sleep?"""
	tasks = "/proc/%s/task" % os.environ["SERVER_PID"]
	for task in os.listdir(tasks):
		with open("%s/%s/stat" % (tasks, task)) as f:
			if f.read().rsplit(")", 1)[1].split()[0] != "S":
				return False
	return True


def around(limit, most=1 << 64):
	return [n for n in (limit - 1, limit, limit + 1, 4 * limit) if n <= most]


class Client:
	"""Sends and receives without waiting for either, so that no size of a socket matters."""

	def __init__(self, export=DISK, context=False):
		self.input, self.output, self.outs = bytearray(), memoryview(b""), []
		self.asked, self.cookie, self.ended = {}, 0, False
		self.answered = None
		self.raw = self.s = socket.socket(socket.AF_UNIX)
		self.s.settimeout(PATIENCE_S)
		self.s.connect(path)
		assert self.s.recv(18, socket.MSG_WAITALL)[:16] == b"NBDMAGICIHAVEOPT"
		self.s.sendall(struct.pack(">I", 3))
		if os.environ.get("CA"):
			self.secure()
		self.s.setblocking(False)
		if headers != "simple":
			number = EXTENDED if headers == "extended" else STRUCTURED
			assert self.option(number)[0] == ACK
		if context:
			query = b"base:allocation"
			data = struct.pack(">I", len(export)) + export + \
				struct.pack(">II", 1, len(query)) + query
			assert self.option(SET_META, data)[0] == ACK
		if export is not None:
			assert self.go(export) == ACK

	def secure(self):
		self.s.sendall(struct.pack(">QII", OPT_MAGIC, STARTTLS, 0))
		reply = self.s.recv(20, socket.MSG_WAITALL)
		assert struct.unpack(">QIII", reply)[1:] == (STARTTLS, ACK, 0), reply
		trust = ssl.create_default_context(cafile=os.environ["CA"])
		trust.check_hostname = False
		self.raw = self.s = trust.wrap_socket(self.s)

	# ---- bytes ----

	def send(self, *pieces):
		self.outs += [memoryview(p) for p in pieces if len(p)]

	def has_output(self):
		if not self.output and self.outs:
			self.output = self.outs.pop(0)
		return len(self.output) > 0

	def move_out(self):
		try:
			while self.has_output():
				self.output = self.output[self.s.send(self.output[:M]):]
		except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
			pass
		except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
			self.outs, self.output = [], memoryview(b"")

	def send_until_paused(self):
		"""Take no reply until all is sent, or the server sleeps before input."""
		end = time.monotonic() + PATIENCE_S
		while self.has_output():
			self.move_out()
			queue = fcntl.ioctl(self.raw.fileno(), termios.TIOCOUTQ, b"1234")
			if queue != bytes(4) and self.has_output() and server_sleeps():
				return
			assert time.monotonic() < end, "nothing moves"
			# It needs the processor; look at it now and then.
			select.select([], [self.raw], [], 0.01)

	def move(self):
		"""Send and receive what can be now."""
		self.move_out()
		try:
			got = self.s.recv(M)
			while got:
				self.input += got
				got = self.s.recv(M)
			self.ended = True
		except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
			pass
		except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
			self.ended = True		# a recv() of TLS may send

	def wait(self):
		"""Until more of the input is there."""
		had = len(self.input)
		while True:
			self.move()
			if len(self.input) > had:
				return
			if self.ended:
				raise EOFError("the server has closed, with %d requests open" %
					       len(self.asked))
			ready = select.select([self.raw], [self.raw] if self.has_output() else [],
					      [], PATIENCE_S)
			assert ready[0] or ready[1], "nothing moves"

	def take(self, n):
		while len(self.input) < n:
			self.wait()
		got = bytes(memoryview(self.input)[:n])
		del self.input[:n]
		return got

	def expect_end(self):
		try:
			while True:
				self.wait()
		except EOFError:
			pass
		assert not self.input, "the server says %r" % bytes(self.input[:40])
		self.s.close()

	# ---- options ----

	def option(self, number, data=b""):
		self.send(struct.pack(">QII", OPT_MAGIC, number, len(data)), data)
		infos = []
		while True:
			magic, answered, kind, n = struct.unpack(">QIII", self.take(20))
			assert magic == REPLY_MAGIC and answered == number, answered
			infos.append(self.take(n))
			if kind == ACK or kind >= 0x80000000:
				return kind, infos

	def go(self, name):
		return self.option(GO, struct.pack(">I", len(name)) + name + b"\0\0")[0]

	# ---- requests ----

	def ask(self, kind, off=0, length=0, salt=None, flags=0):
		"""Send a request.  A WRITE has the pattern with this salt, and of a READ the
		pattern is expected."""
		self.cookie += 1
		self.asked[self.cookie] = (kind, off, length, salt)
		if headers == "extended":
			flags |= PAYLOAD_LEN if kind == WRITE and self.cookie % 2 else 0
			head = struct.pack(">IHHQQQ", EXT_REQUEST_MAGIC, flags, kind,
					   self.cookie, off, length)
		else:
			head = struct.pack(">IHHQQI", REQUEST_MAGIC, flags, kind,
					   self.cookie, off, length)
		self.send(head, pattern(off, length, salt) if kind == WRITE else b"")

	def chunk(self):
		if headers == "extended":
			magic, flags, kind, cookie, _, n = struct.unpack(">IHHQQQ", self.take(32))
			assert magic == EXT_CHUNK_MAGIC, hex(magic)
		else:
			magic, flags, kind, cookie, n = struct.unpack(">IHHQI", self.take(20))
			assert magic == CHUNK_MAGIC, hex(magic)
		return flags & 1, kind, cookie, self.take(n)

	def answer(self):
		"""Take the next reply.  Returns its error, and its data or extents."""
		self.take_head()
		magic = struct.unpack(">I", self.input[:4])[0]
		if magic == SIMPLE_MAGIC:
			assert headers != "extended"
			_, error, cookie = struct.unpack(">IIQ", self.take(16))
			asked = self.asked.pop(cookie)
			assert headers == "simple" or asked[0] not in (READ, STATUS)
			if asked[0] == READ and not error:
				return self.check(asked, error, self.take(asked[2]))
			return self.check(asked, error, b"")
		done, error, whole = 0, 0, bytearray()
		while not done:
			done, kind, cookie, data = self.chunk()
			if kind == OFFSET_DATA:
				off = struct.unpack(">Q", data[:8])[0]
				assert off == self.asked[cookie][1] + len(whole)
				whole += memoryview(data)[8:]
			elif kind & 0x8000:
				error = struct.unpack(">I", data[:4])[0]
			elif kind == BLOCK_STATUS:
				whole = list(struct.iter_unpack(">II", data[4:]))
			elif kind == BLOCK_STATUS_EXT:
				whole = list(struct.iter_unpack(">QQ", data[8:]))
		return self.check(self.asked.pop(cookie), error, whole)

	def take_head(self):
		while len(self.input) < 4:
			self.wait()

	def check(self, asked, error, data):
		self.answered = kind, off, length, salt = asked
		if kind == READ and not error:
			assert len(data) == length
			if data != pattern(off, length, salt):
				at = next(i for i, b in enumerate(pattern(off, length, salt))
					  if data[i] != b)
				raise AssertionError("READ of %d at %d differs at %d" %
						     (length, off, at))
		return error, data

	def answers(self, n=None):
		n = len(self.asked) if n is None else n
		for _ in range(n):
			error, _ = self.answer()
			assert error == 0, error

	def do(self, *request, **more):
		self.ask(*request, **more)
		return self.answer()

	def leave(self):
		"""rtrs-nbd closes at a DISC; nbdkit 1.42 may wait until the client does."""
		self.ask(DISC)
		if front == "nbdkit":
			while self.has_output():
				select.select([], [self.raw], [], PATIENCE_S)
				self.move_out()
			self.raw.shutdown(socket.SHUT_WR)
		self.expect_end()


def good(salt=99):
	c = Client()
	for off in (0, 4096 + 3):
		assert c.do(WRITE, off, 5000, salt)[0] == 0
		c.do(READ, off, 5000, salt)
	assert c.do(FLUSH)[0] == 0
	c.leave()


# ---- cases ----

# The limits on the way of one request: a sector, a small block of input, a page, a record of TLS,
# IN_PLACE_MAX, NBD_BLOCK, one part of the wire (max-io-size), AHEAD_MAX, BOUNCE_MAX, and the parts
# that are in flight together, CLT_OP_PARTS.
SIZES = sorted({n for limit in (512, 512 - 8, 4 * K, 16 * K, 32 * K, 64 * K - 8, 64 * K, 128 * K,
				256 * K, M, 2 * M) for n in around(limit)})


def sizes():
	"""Each size several times in a row, with smaller requests between, at odd places, too."""
	c = Client()
	for round, size in enumerate(SIZES):
		off, salt = (round % 3) * 4096 + (round % 2) * 7, 2 * round
		times = 5 if size <= M else 2
		for i in range(times):
			c.ask(WRITE, off + i * size, size, salt)
		c.ask(WRITE, off + times * size, 100, salt)
		c.ask(WRITE, off + times * size + 100, size, salt)
		c.answers()
		c.ask(READ, off, (times + 1) * size + 100, salt)
		for i in range(times):
			c.ask(READ, off + i * size, size, salt)
		c.answers()
	c.leave()


def largest():
	"""A request of 64 MiB and around; and one for which 32 MiB is the most."""
	c = Client()
	for salt, size in enumerate(around(DATA_MAX // 2, DATA_MAX - 1) + [DATA_MAX - 1, DATA_MAX]):
		assert c.do(WRITE, 3, size, salt)[0] == 0
		c.ask(READ, 3, size, salt)
		c.answers()
	# A READ of more is an error, and the connection goes on.
	for size in (DATA_MAX + 1, 4 * DATA_MAX):
		assert c.do(READ, 0, size)[0] == (EINVAL if front == "rtrs-nbd" else ENOMEM)
		c.ask(READ, 3, DATA_MAX, salt)
		c.answers()
	c.leave()
	# A WRITE of more hides the next request: the connection ends, and nothing is written.
	for size in (DATA_MAX + 1, 4 * DATA_MAX):
		w = Client()
		w.ask(FLUSH)
		w.answers()
		w.asked.clear()
		number = REQUEST_MAGIC if headers != "extended" else EXT_REQUEST_MAGIC
		w.send(struct.pack(">IHHQQI" if headers != "extended" else ">IHHQQQ", number,
				   PAYLOAD_LEN if headers == "extended" else 0, WRITE, 1, 0, size))
		w.send(b"w" * 4096)
		if front == "rtrs-nbd":
			w.expect_end()
		else:
			w.s.close()
		c = Client()
		c.ask(READ, 3, DATA_MAX, salt)
		c.answers()
		c.leave()


def ranges():
	"""Requests without data: around what one READ may have, and of all lengths."""
	c = Client()
	c.ask(WRITE, 0, DATA_MAX, 5)
	for n in around(DATA_MAX):
		c.ask(CACHE, 0, n)
	c.answers()
	for kind in (TRIM, ZEROES):
		for length in around(M, DATA_MAX) + around(2 * M, DATA_MAX):
			# What is before it and behind it stays.
			assert c.do(WRITE, 0, 16 * M, 6)[0] == 0
			assert c.do(kind, 4096 + 512, length)[0] == 0
			c.ask(READ, 0, 4096 + 512, 6)
			c.ask(READ, 4096 + 512 + length, 16 * M - 4096 - 512 - length, 6)
			c.answers()
			if kind == ZEROES:
				c.asked[c.cookie + 1] = None
				c.ask(READ, 4096 + 512, length, None)
				zeroes(c, length)
	for length in around(DATA_MAX, SIZE):
		c.ask(ZEROES, 0, length)
	c.answers()
	c.leave()


def zeroes(c, length):
	"""Take the reply to a READ, which is all zeroes."""
	c.check = lambda asked, error, data: (error, data)
	error, data = c.answer()
	del c.check
	assert error == 0 and data == bytes(length), "not all zeroes"


def pieces():
	"""So many replies at once as fit into one sendmsg() (128 pieces, two for each), and around;
	so many requests at once as one connection starts in a turn (NBD_TURN), and around."""
	c = Client()
	for salt, n in enumerate(around(16, 252) + around(64, 252) + [252]):
		for i in range(n):
			c.ask(WRITE, i * 8192, 100 + 37 * i % 8000, salt)
		c.answers()
		for i in range(n):
			c.ask(READ, i * 8192, 100 + 37 * i % 8000, salt)
		c.answers()
	c.leave()


def memory():
	"""So much data in flight as one connection may have."""
	c = Client()
	assert c.do(WRITE, 0, DATA_MAX, 1)[0] == 0
	for n in around(CONN_MEMORY // M, 252) + [252]:
		for i in range(n):
			c.ask(READ, i * M % DATA_MAX, M, 1)
		c.answers()
	c.leave()


def questions():
	"""So many questions for extents in flight as the client library asks at once, DEV_CTL_MAX:
	later ones wait."""
	c = Client(b"holes", context=True)
	for n in around(64, 252) + [252]:
		for i in range(n):
			c.ask(STATUS, i * STEP, STEP)
		for _ in range(n):
			error, found = c.answer()
			want = 3 if c.answered[1] // STEP % 2 else 0
			assert error == 0 and found[0][1] & 3 == want, (c.answered, found)
	c.leave()


def paused():
	"""Replies that wait have nearly all memory of the connection, or all, or the pause is in
	front of them: the connection pauses amid WRITEs, and each has its own data."""
	cases = ((100, 0), (32 * K, 0), (32 * K + 1, 1), (32 * K + 1, -1), (256 * K, 1),
		 (256 * K + 1, 0), (256 * K + 1, -1), (M, 1))
	for salt, (size, left) in enumerate(cases):
		c, writes = Client(), 24
		assert c.do(WRITE, 0, M, 1)[0] == 0
		for _ in range(CONN_MEMORY // M - left):
			c.ask(READ, 0, M, 1)
		for i in range(writes):
			c.ask(WRITE, M + i * size, size, salt)
		c.send_until_paused()
		c.answers()
		for i in range(writes):
			c.ask(READ, M + i * size, size, salt)
		c.answers()
		c.leave()


def in_flight():
	"""So many requests in flight as one connection may have: replies to READs wait, and the
	limit is amid WRITEs, each of which has its own data."""
	c = Client()
	assert c.do(WRITE, 0, 16 * K, 1)[0] == 0
	for salt, n in enumerate(around(CONN_IOS)):
		for size in (5000, 40 * K, 100 * K, 256 * K):
			for _ in range(n - 12):
				c.ask(READ, 0, 16 * K, 1)
			for i in range(24):
				c.ask(WRITE, M + i * size, size, salt)
			c.send_until_paused()
			c.answers()
			for i in range(24):
				c.ask(READ, M + i * size, size, salt)
			c.answers()
	c.leave()


def memory_of_all():
	"""So much data in flight as all connections may have together (--memory=128M)."""
	c = Client()
	assert c.do(WRITE, 0, DATA_MAX, 1)[0] == 0
	c.leave()
	for n in around(128):
		clients = [Client() for _ in range(9)]
		for i in range(n):
			clients[i % 9].ask(READ, i * M % DATA_MAX, M, 1)
		while any(c.asked for c in clients):
			select.select([c.raw for c in clients if c.asked],
				      [c.raw for c in clients if c.has_output()], [], PATIENCE_S)
			for c in clients:
				c.move()
				while c.asked and len(c.input) > M + 64:
					c.answers(1)
				if c.asked and len(c.input) > M and len(c.asked) == 1:
					c.answers(1)
		for c in clients:
			c.leave()


def names():
	"""Names of exports: the two longest have their own data; longer ones are nobody's."""
	served = []
	for salt, n in enumerate((NAME_MAX - 1, NAME_MAX)):
		c = Client(b"n" * n)
		assert c.do(WRITE, 5, 70000, salt)[0] == 0
		served.append((c, salt))
	for c, salt in served:
		c.ask(READ, 5, 70000, salt)
		c.answers()
		c.leave()
	c = Client(None)
	for n in (NAME_MAX + 1, 4 * NAME_MAX, STRING_MAX - 1, STRING_MAX):
		assert c.go(b"n" * n) == UNKNOWN, n
	for n in (STRING_MAX + 1, 4 * STRING_MAX - 6, 4 * STRING_MAX):
		kind = c.go(b"n" * n)
		assert kind in (INVALID, TOO_BIG), (n, hex(kind))
	assert c.go(b"n" * NAME_MAX) == ACK
	c.ask(READ, 5, 70000, 1)
	c.answers()
	c.leave()
	for n in (NAME_MAX + 1, STRING_MAX, STRING_MAX + 1):
		c = Client(None)
		c.send(struct.pack(">QII", OPT_MAGIC, EXPORT_NAME, n), b"n" * n)
		c.expect_end()
	if headers != "extended":
		c = Client(None)
		c.send(struct.pack(">QII", OPT_MAGIC, EXPORT_NAME, NAME_MAX), b"n" * NAME_MAX)
		c.take(10)
		c.ask(READ, 5, 70000, 1)
		c.answers()
		c.leave()


def options():
	"""Options that are parsed, that are skipped, and that end the connection."""
	c = Client(None)
	for n in around(OPTION_MAX) + around(SKIP_MAX, SKIP_MAX):
		kind, _ = c.option(99, b"o" * n)
		assert kind == UNSUP, (n, hex(kind))
		kind, _ = c.option(LIST, b"o" * n)
		assert kind == (INVALID if n <= OPTION_MAX else TOO_BIG), (n, hex(kind))
	assert c.go(DISK) == ACK
	assert c.do(WRITE, 9, 3000, 3)[0] == 0
	c.ask(READ, 9, 3000, 3)
	c.answers()
	c.leave()
	for n in (SKIP_MAX + 1, 4 * SKIP_MAX):
		c = Client(None)
		c.send(struct.pack(">QII", OPT_MAGIC, 99, n), b"o" * n)
		c.expect_end()


# Extents of one answer: RNBD_EXTENTS_ROOM on the wire, NBD_STATUS_ROOM with 64 bits, with 32.
STATUS_SIZES = sorted({n for limit in (255, 511, 1023) for n in around(limit)})
STEP = 4096


def extents():
	"""The export "holes" has data and holes in turns of 4 KiB, then 20 GiB of nothing."""
	c = Client(b"holes", context=True)
	turns = 4 * 1023 + 8
	for n in STATUS_SIZES:
		off, end, seen = STEP, STEP + n * STEP, []
		while off < end:
			error, found = c.do(STATUS, off, end - off)
			assert error == 0 and found
			for length, flags in found:
				length = min(length, end - off)
				seen += [(off, length, flags & 3)]
				off += length
		merged = []
		for off, length, flags in seen:
			if merged and merged[-1][2] == flags:
				merged[-1][1] += length
			else:
				merged.append([off, length, flags])
		want = [[STEP + i * STEP, STEP, 0 if i % 2 else 3] for i in range(n)]
		assert merged == want, (n, [x for x in zip(merged, want) if x[0] != x[1]][:3])
	# Around 2 GiB, EXTENTS_LEN_MAX, and around the longest that 32 bits tell.
	off, most = turns * STEP, 0xffffffff if headers != "extended" else 1 << 63
	for length in around(1 << 31, most) + around(0xfffff000, most):
		error, found = c.do(STATUS, off, min(length, 20 << 30))
		assert error == 0 and {flags & 3 for _, flags in found} == {3}
		assert 0 < sum(n for n, _ in found) <= 20 << 30
	at, end = off, off + (20 << 30)
	while at < end:
		error, found = c.do(STATUS, at, min(end - at, most))
		assert error == 0 and {flags & 3 for _, flags in found} == {3}
		at += sum(n for n, _ in found)
	c.leave()


def payloads():
	"""A BLOCK_STATUS with a payload, STATUS_PAYLOAD_MAX: only one that names our context is
	right, and the next request is found behind each."""
	c = Client(b"holes", context=True)
	for n in around(64) + [0, 1, 12, 12 + 4]:
		c.cookie += 1
		c.asked[c.cookie] = (STATUS, 0, n, None)
		data = struct.pack(">QI", 2 * STEP, 1) + bytes(4) * 64
		c.send(struct.pack(">IHHQQQ", EXT_REQUEST_MAGIC, PAYLOAD_LEN, STATUS, c.cookie,
				   0, n), data[:n])
		error, found = c.answer()
		assert error == (0 if n == 12 else EINVAL), (n, error)
		error, found = c.do(STATUS, STEP, STEP)
		assert error == 0 and found[0][1] & 3 == 3
	c.leave()


def given():
	"""Each of $GIVEN sockets, SOCKET with a number behind."""
	global path
	base = path
	for i in range(int(os.environ["GIVEN"])):
		path = "%s%d" % (base, i)
		good(i)
	path = base + "0"


for name in sys.argv[4:]:
	print(front, headers, name, flush=True)
	globals()[name]()
	if name not in ("extents", "questions", "payloads"):
		good()
