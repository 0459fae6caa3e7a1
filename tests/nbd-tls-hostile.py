# SPDX-License-Identifier: BSD-3-Clause
# A hostile NBD client of a gateway with TLS by certificates: nbd-tls-hostile.py SOCKET CA MODE
# CASE...  MODE is the gateway's --tls, on or require.  Each case is a function below, prints its
# name, and ends the program when the gateway at the unix socket SOCKET does what it should not.
import os, socket, ssl, struct, sys

path, authority, mode = sys.argv[1:4]
PATIENCE_S = float(os.environ["TIMEOUT_S"])
OPT_MAGIC, REQUEST_MAGIC = 0x49484156454f5054, 0x25609513
EXPORT_NAME, ABORT, LIST, STARTTLS, INFO, GO, STRUCTURED, LIST_META, SET_META, EXTENDED = \
	1, 2, 3, 5, 6, 7, 8, 9, 10, 11
READ, DISC = 0, 2
ACK, POLICY, INVALID, TLS_REQD = 1, 0x80000002, 0x80000003, 0x80000005
HANDSHAKES_NET_MAX = 64			# gate-tls.c; a user is a net
GO_DATA = struct.pack(">I4sH", 4, b"disk", 0)
META_DATA = struct.pack(">I4sII15s", 4, b"disk", 1, 15, b"base:allocation")

trust = ssl.create_default_context(cafile=authority)
trust.check_hostname = False


def take(s, n):
	got = b""
	while len(got) < n:
		more = s.recv(n - len(got))
		if not more:
			raise EOFError("the server has closed after %d of %d bytes" % (len(got), n))
		got += more
	return got


def option(number, data=b""):
	return struct.pack(">QII", OPT_MAGIC, number, len(data)) + data


def ask(s, number, data=b""):
	"""Send an option.  Returns the type of the last reply, and the replies in front."""
	s.sendall(option(number, data))
	infos = []
	while True:
		magic, answered, kind, length = struct.unpack(">QIII", take(s, 20))
		assert magic == 0x3e889045565a9 and answered == number, (hex(magic), answered)
		text = take(s, length)
		if kind == ACK or kind >= 0x80000000:
			return kind, infos
		infos.append(text)


def greeted():
	s = socket.socket(socket.AF_UNIX)
	s.settimeout(PATIENCE_S)
	s.connect(path)
	assert take(s, 18)[:16] == b"NBDMAGICIHAVEOPT"
	s.sendall(struct.pack(">I", 3))
	return s


def asked_tls():
	s = greeted()
	assert ask(s, STARTTLS) == (ACK, [])
	return s


def secured(s=None):
	return trust.wrap_socket(s or asked_tls())


def expect_end(s):
	try:
		rest = s.recv(1)
	except (ConnectionResetError, BrokenPipeError):
		rest = b""
	assert rest == b"", "the server says %r" % rest
	s.close()


def read(s, cookie):
	s.sendall(struct.pack(">IHHQQI", REQUEST_MAGIC, 0, READ, cookie, 0, 4096))
	assert struct.unpack(">IIQ", take(s, 16)) == (0x67446698, 0, cookie)
	return take(s, 4096)


def served():
	s = secured()
	assert ask(s, GO, GO_DATA)[0] == ACK
	return s


def good():
	s = served()
	for cookie in range(20):
		read(s, cookie)
	s.sendall(struct.pack(">IHHQQI", REQUEST_MAGIC, 0, DISC, 9, 0, 0))
	assert s.recv(1) == b""		# with an end of TLS: ssl raises else
	s.close()


def options_in_clear():
	s = greeted()
	options = [(LIST, b""), (INFO, GO_DATA), (STRUCTURED, b""), (LIST_META, META_DATA),
		   (SET_META, META_DATA), (EXTENDED, b""), (77, b"")]
	if mode == "require":
		options.append((GO, GO_DATA))
	for number, data in options:
		kind, infos = ask(s, number, data)
		assert (kind == TLS_REQD and not infos) == (mode == "require"), (number, hex(kind))
	assert ask(s, ABORT)[0] == ACK
	expect_end(s)


def export_name_in_clear():
	s = greeted()
	s.sendall(option(EXPORT_NAME, b"disk"))
	if mode == "require":
		expect_end(s)
	else:
		take(s, 10)
		read(s, 1)
		s.close()


def starttls_with_data():
	s = greeted()
	assert ask(s, STARTTLS, b"x")[0] == INVALID
	assert ask(s, STARTTLS)[0] == ACK
	s = secured(s)
	assert ask(s, GO, GO_DATA)[0] == ACK
	s.close()


def starttls_twice():
	s = secured()
	assert ask(s, STARTTLS)[0] == INVALID
	assert ask(s, GO, GO_DATA)[0] == ACK
	s.close()


def injected():
	"""Bytes in clear behind the option are nobody's: they are not answered under TLS."""
	for behind in (option(GO, GO_DATA), option(ABORT), option(LIST), b"x", b"\x16\x03\x01"):
		s = greeted()
		s.sendall(option(STARTTLS) + behind)
		expect_end(s)


def clear_for_a_hello():
	for instead in (option(GO, GO_DATA), option(ABORT), b"\x16\x03\x01\xff\xff" + b"y" * 16384):
		s = asked_tls()
		try:
			s.sendall(instead)
			rest = s.recv(4096)
		except (ConnectionResetError, BrokenPipeError):
			rest = b""
		# An alert at most: no reply to an option.
		assert rest == b"" or rest[0] == 0x15, rest
		s.close()


def forgotten():
	"""What was negotiated in clear does not hold under TLS."""
	s = greeted()
	if mode == "on":
		assert ask(s, STRUCTURED)[0] == ACK
		kind, infos = ask(s, SET_META, META_DATA)
		assert kind == ACK and len(infos) == 1
		assert ask(s, EXTENDED)[0] == ACK
	assert ask(s, STARTTLS)[0] == ACK
	s = secured(s)
	assert ask(s, SET_META, META_DATA)[0] == INVALID	# structured replies come first
	kind, infos = ask(s, GO, GO_DATA)
	assert kind == ACK
	flags = [struct.unpack(">HQH", i)[2] for i in infos if i[:2] == b"\0\0"]
	assert flags and not flags[0] & 1 << 7, flags		# NBD_FLAG_SEND_DF
	read(s, 5)						# a simple reply
	s.close()


def old_version():
	"""nbd-client offers this by itself."""
	old = ssl.create_default_context(cafile=authority)
	old.check_hostname = False
	old.maximum_version = ssl.TLSVersion.TLSv1_2
	try:
		old.wrap_socket(asked_tls())
	except (ssl.SSLError, ConnectionResetError):
		return
	raise SystemExit("a handshake of TLS 1.2")


def cut():
	"""The socket ends in the place of the stream."""
	s = served()
	read(s, 1)
	raw = socket.socket(fileno=os.dup(s.fileno()))
	s.detach()
	raw.shutdown(socket.SHUT_RDWR)
	raw.close()


def spliced():
	"""A record of somebody else in the stream."""
	s = served()
	read(s, 1)
	raw = socket.socket(fileno=os.dup(s.fileno()))
	raw.settimeout(PATIENCE_S)
	raw.sendall(b"\x17\x03\x03\0\x30" + b"z" * 48)
	while raw.recv(4096):
		pass
	raw.close()
	s.detach()


def one_byte_at_a_time():
	incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
	tls = trust.wrap_bio(incoming, outgoing)
	s = asked_tls()

	def flush():
		for byte in outgoing.read():
			s.sendall(bytes((byte,)))

	def run(fn, *args):
		while True:
			try:
				got = fn(*args)
				flush()
				return got
			except ssl.SSLWantReadError:
				flush()
				incoming.write(s.recv(1))

	run(tls.do_handshake)
	run(tls.write, option(GO, GO_DATA))
	got = b""
	while not got.endswith(struct.pack(">QIII", 0x3e889045565a9, GO, ACK, 0)):
		got += run(tls.read, 4096)
	s.close()


def stalled():
	"""Who does not go on with the handshake holds up nobody, and not for ever."""
	client, many = served(), []
	for i in range(HANDSHAKES_NET_MAX + 44):
		many.append(asked_tls())
		read(client, i)
	for s in many[:44]:
		expect_end(s)
	for _ in range(10):
		good()
	for s in many[44:]:
		s.close()
	read(client, 1)
	client.close()


for case in sys.argv[4:]:
	print(case, flush=True)
	globals()[case]()
	good()
