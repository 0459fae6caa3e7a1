# SPDX-License-Identifier: BSD-3-Clause
# A hostile NBD client by hand: nbd-hostile.py SOCKET PID [CASE...].  Each case is a function
# below, prints its name, and ends the program when the server at the unix socket SOCKET, process
# PID, does what it should not.
import os, resource, select, socket, struct, sys, time

path, pid = sys.argv[1], int(sys.argv[2])
PATIENCE_S = float(os.environ["TIMEOUT_S"])
SIZE = 8 << 20
OPT_MAGIC, REQUEST_MAGIC, EXT_REQUEST_MAGIC = 0x49484156454f5054, 0x25609513, 0x21e41c71
EXPORT_NAME, ABORT, LIST, INFO, GO, STRUCTURED, LIST_META, SET_META, EXTENDED = \
	1, 2, 3, 6, 7, 8, 9, 10, 11
READ, WRITE, DISC, FLUSH, TRIM, CACHE, ZEROES, STATUS = range(8)
EINVAL, ENOSPC = 22, 28
UNSUP, TOO_BIG = 0x80000001, 0x80000009


def rss_kb():
	with open("/proc/%d/status" % pid) as f:
		return next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))


def connect():
	s = socket.socket(socket.AF_UNIX)
	s.settimeout(PATIENCE_S)
	s.connect(path)
	return s


def take(s, n):
	got = b""
	while len(got) < n:
		more = s.recv(n - len(got))
		if not more:
			raise EOFError("the server has closed after %d of %d bytes" % (len(got), n))
		got += more
	return got


def option(number, data=b"", length=None):
	length = len(data) if length is None else length
	return struct.pack(">QII", OPT_MAGIC, number, length) + data


def name_data(name=b""):
	return struct.pack(">I", len(name)) + name + b"\0\0"


def greeted():
	s = connect()
	take(s, 18)
	s.sendall(struct.pack(">I", 3))
	return s


def option_reply(s):
	magic, number, kind, length = struct.unpack(">QIII", take(s, 20))
	assert magic == 0x3e889045565a9, hex(magic)
	return kind, take(s, length)


def serve(*options):
	s = greeted()
	for number, data in options + ((GO, name_data()),):
		s.sendall(option(number, data))
		while True:
			kind, _ = option_reply(s)
			assert kind < 0x80000000, hex(kind)
			if kind == 1:
				break
	return s


def request(kind, off=0, length=0, flags=0, cookie=1):
	return struct.pack(">IHHQQI", REQUEST_MAGIC, flags, kind, cookie, off, length)


def reply(s, cookie=1):
	magic, error, got = struct.unpack(">IIQ", take(s, 16))
	assert magic == 0x67446698 and got == cookie, (hex(magic), got)
	return error


def expect_end(s):
	try:
		rest = s.recv(1)
	except ConnectionResetError:
		rest = b""
	assert rest == b"", "the server says %r" % rest
	s.close()


def good():
	"""Another client notices nothing: one round of requests."""
	s = serve()
	for cookie, (kind, length, data) in enumerate((
			(WRITE, 4096, b"g" * 4096), (READ, 4096, b""), (FLUSH, 0, b""))):
		s.sendall(request(kind, 0, length, cookie=cookie) + data)
		assert reply(s, cookie) == 0
		if kind == READ:
			assert take(s, length) == b"g" * 4096
	s.sendall(request(DISC))
	expect_end(s)


def slow_reader():
	slow = []
	for _ in range(4):
		s = serve()
		for i in range(64):
			s.sendall(request(READ, 0, 1 << 20, cookie=i))
		slow.append(s)
	for _ in range(20):
		good()
	for s in slow:
		s.close()


def half_frames():
	whole = [option(GO, name_data()), option(SET_META, name_data())]
	for frame in whole:
		for n in range(len(frame)):
			s = greeted()
			s.sendall(frame[:n])
			s.close()
	frame = request(WRITE, 0, 100) + b"x" * 100
	kept = []
	for n in range(len(frame)):
		s = serve()
		s.sendall(frame[:n])
		if n % 2:
			s.close()
		else:
			kept.append(s)
	good()
	for s in kept:
		s.close()


def huge_options():
	for number in (EXPORT_NAME, ABORT, LIST, GO, INFO, STRUCTURED, LIST_META, SET_META,
			EXTENDED, 99):
		s = greeted()
		s.sendall(option(number, b"x" * 100, length=0xffffffff))
		expect_end(s)
	# One that can be skipped is, and the handshake goes on.
	s = greeted()
	s.sendall(option(99, b"y" * 100000) + option(LIST))
	kind, _ = option_reply(s)
	assert kind in (UNSUP, TOO_BIG), hex(kind)
	kind, _ = option_reply(s)
	assert kind in (1, 2), kind
	s.close()


def out_of_range():
	top = (1 << 64) - 1
	s = serve()
	for cookie, (kind, off, length, want) in enumerate((
			(READ, SIZE, 1, EINVAL), (READ, SIZE - 1, 2, EINVAL),
			(READ, top, 1, EINVAL), (READ, top, 0xffffffff, EINVAL),
			(READ, 0, 0xffffffff, EINVAL),
			(TRIM, SIZE, 1, EINVAL), (ZEROES, SIZE - 1, 2, ENOSPC),
			(ZEROES, top, 0xffffffff, ENOSPC), (CACHE, SIZE, 1, EINVAL),
			(FLUSH, 0, 1, EINVAL), (0xffff, 0, 0, EINVAL))):
		s.sendall(request(kind, off, length, cookie=cookie))
		error = reply(s, cookie)
		assert error == want, "request %d: error %d, not %d" % (cookie, error, want)
	for cookie, off in enumerate((SIZE, SIZE - 99, top, top - 99)):
		s.sendall(request(WRITE, off, 100, cookie=cookie) + b"w" * 100)
		assert reply(s, cookie) == ENOSPC
	s.sendall(request(FLUSH, cookie=7))
	assert reply(s, 7) == 0
	s.close()


def write_of_4_gib():
	s = serve()
	s.sendall(request(WRITE, 0, 0xffffffff))
	expect_end(s)
	s = serve((EXTENDED, b""))
	s.sendall(struct.pack(">IHHQQQ", EXT_REQUEST_MAGIC, 0x20, WRITE, 1, 0, (1 << 64) - 1))
	expect_end(s)


def status_storm():
	"""So many questions that nobody reads an answer to; another client has its turn."""
	context = name_data()[:-2] + struct.pack(">II", 1, 15) + b"base:allocation"
	storm = []
	for _ in range(4):
		s = serve((STRUCTURED, b""), (SET_META, context))
		s.setblocking(False)
		storm.append(s)
	sent = 0
	batch = b"".join(request(STATUS, i * 4096, 4096, cookie=i) for i in range(1000))
	end = time.monotonic() + PATIENCE_S
	while sent < 40 << 20 and select.select([], storm, [], 0.2)[1]:
		assert time.monotonic() < end
		for s in storm:
			try:
				sent += s.send(batch)
			except BlockingIOError:
				pass
	good()
	for s in storm:
		s.close()


def many():
	"""So many clients, silent, in the handshake, or served: all are answered."""
	soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
	resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
	n = int(os.environ["NCLIENTS"])
	before, crowd = rss_kb(), []
	begin = time.monotonic()
	for i in range(n):
		s = (connect, greeted, serve)[i % 3]()
		crowd.append(s)
	up = time.monotonic()
	good()
	full = rss_kb()
	for i, s in enumerate(crowd):
		if i % 3 == 2:
			s.sendall(request(READ, 0, 512))
			assert reply(s) == 0 and len(take(s, 512)) == 512
	answered = time.monotonic()
	print("%d clients: %.1f s to come, %.1f s for a request of each third, %d KB, then %d KB" %
	      (n, up - begin, answered - up, before, full))
	assert full - before < 16 * n, "more than 16 KB for a client"
	for s in crowd:
		s.close()


CASES = (slow_reader, half_frames, huge_options, out_of_range, write_of_4_gib, status_storm, many)
LIMIT_KB = int(os.environ["LIMIT_KB"])

for case in CASES:
	if sys.argv[3:] and case.__name__ not in sys.argv[3:]:
		continue
	print(case.__name__, flush=True)
	case()
	good()
	print("\t%d KB" % rss_kb(), flush=True)
	assert rss_kb() < LIMIT_KB, "more memory than --memory and what a client may take"
