# SPDX-License-Identifier: BSD-3-Clause
# The bytes of NBD, for clients by hand (nbd-*.py).  Sockets block, for $TIMEOUT_S at most.
import os, socket, struct

PATIENCE_S = float(os.environ["TIMEOUT_S"])
OPT_MAGIC, REPLY_MAGIC = 0x49484156454f5054, 0x3e889045565a9
REQUEST_MAGIC, EXT_REQUEST_MAGIC = 0x25609513, 0x21e41c71
SIMPLE_MAGIC, CHUNK_MAGIC, EXT_CHUNK_MAGIC = 0x67446698, 0x668e33ef, 0x6e8a278c
EXPORT_NAME, ABORT, LIST, STARTTLS, INFO, GO, STRUCTURED, LIST_META, SET_META, EXTENDED = \
	1, 2, 3, 5, 6, 7, 8, 9, 10, 11
READ, WRITE, DISC, FLUSH, TRIM, CACHE, ZEROES, STATUS = range(8)
REQ_ONE, PAYLOAD_LEN = 0x8, 0x20
ACK, UNSUP, INVALID, UNKNOWN, TOO_BIG = 1, 0x80000001, 0x80000003, 0x80000006, 0x80000009
ENOMEM, EINVAL = 12, 22


def take(s, n):
	got = b""
	while len(got) < n:
		more = s.recv(n - len(got))
		if not more:
			raise EOFError("the server has closed after %d of %d bytes" % (len(got), n))
		got += more
	return got


def connect(path):
	s = socket.socket(socket.AF_UNIX)
	s.settimeout(PATIENCE_S)
	s.connect(path)
	return s


def greeted(path):
	s = connect(path)
	assert take(s, 18)[:16] == b"NBDMAGICIHAVEOPT"
	s.sendall(struct.pack(">I", 3))
	return s


def named(name=b""):
	return struct.pack(">I", len(name)) + name


GO_DATA = named() + b"\0\0"
CONTEXT = named() + struct.pack(">I", 1) + named(b"base:allocation")


def option(number, data=b""):
	return struct.pack(">QII", OPT_MAGIC, number, len(data)) + data


def ask(s, number, data=b""):
	"""Send an option.  Returns the type of the last reply, and the data of those in front."""
	s.sendall(option(number, data))
	infos = []
	while True:
		magic, answered, kind, length = struct.unpack(">QIII", take(s, 20))
		assert magic == REPLY_MAGIC and answered == number, (hex(magic), answered)
		text = take(s, length)
		if kind == ACK or kind >= 0x80000000:
			return kind, infos
		infos.append(text)


def serve(path, *options):
	"""A client of the default export, behind options that succeed."""
	s = greeted(path)
	for number, data in options + ((GO, GO_DATA),):
		assert ask(s, number, data)[0] == ACK, number
	return s


def request(kind, off=0, length=0, flags=0, cookie=1, extended=False):
	if extended:
		return struct.pack(">IHHQQQ", EXT_REQUEST_MAGIC, flags, kind, cookie, off, length)
	return struct.pack(">IHHQQI", REQUEST_MAGIC, flags, kind, cookie, off, length)


def reply(s, cookie=1):
	"""The error of the next reply, a simple one."""
	magic, error, got = struct.unpack(">IIQ", take(s, 16))
	assert magic == SIMPLE_MAGIC and got == cookie, (hex(magic), got)
	return error


def expect_end(s):
	try:
		rest = s.recv(1)
	except (ConnectionResetError, BrokenPipeError):
		rest = b""
	assert rest == b"", "the server says %r" % rest
	s.close()
