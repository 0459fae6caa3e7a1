# SPDX-License-Identifier: BSD-3-Clause
# A hostile NBD client of a gateway with TLS by certificates, which it requires: nbd-tls-hostile.py
# SOCKET CA CASE...  Each case is a function below, prints its name, and ends the program when the
# gateway at the unix socket SOCKET does what it should not.
import os, select, socket, ssl, struct, sys

import nbdwire
from nbdwire import *

path, authority = sys.argv[1:3]
HANDSHAKES_NET_MAX = 64			# gate-tls.c; a user is a net

trust = ssl.create_default_context(cafile=authority)
trust.check_hostname = False


def greeted():
	return nbdwire.greeted(path)


def asked_tls():
	s = greeted()
	assert ask(s, STARTTLS) == (ACK, [])
	return s


def secured(s=None):
	return trust.wrap_socket(s or asked_tls())


def read(s, cookie):
	s.sendall(request(READ, 0, 4096, cookie=cookie))
	assert reply(s, cookie) == 0
	return take(s, 4096)


def served():
	s = secured()
	assert ask(s, GO, GO_DATA)[0] == ACK
	return s


def good():
	s = served()
	for cookie in range(20):
		read(s, cookie)
	s.sendall(request(DISC))
	assert s.recv(1) == b""		# with an end of TLS: ssl raises else
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
	for _ in range(44):
		ended = select.select(many, [], [], PATIENCE_S)[0][0]
		expect_end(ended)
		many.remove(ended)
	for _ in range(10):
		good()
	for s in many:
		s.close()
	read(client, 1)
	client.close()


for case in sys.argv[3:]:
	print(case, flush=True)
	globals()[case]()
	good()
