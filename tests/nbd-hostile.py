# SPDX-License-Identifier: BSD-3-Clause
# A hostile NBD client by hand: nbd-hostile.py SOCKET PID [CASE...].  Each case is a function
# below, prints its name, and ends the program when the server at the unix socket SOCKET, process
# PID, does what it should not.
import os, resource, select, sys, time

import nbdwire
from nbdwire import *

path, pid = sys.argv[1], int(sys.argv[2])
SIZE = 8 << 20


def rss_kb():
	with open("/proc/%d/status" % pid) as f:
		return next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))


def connect():
	return nbdwire.connect(path)


def greeted():
	return nbdwire.greeted(path)


def serve(*options):
	return nbdwire.serve(path, *options)


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


def status_storm():
	"""So many questions that nobody reads an answer to; another client has its turn."""
	storm = []
	for _ in range(4):
		s = serve((STRUCTURED, b""), (SET_META, CONTEXT))
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


CASES = (slow_reader, status_storm, many)
LIMIT_KB = int(os.environ["LIMIT_KB"])

for case in CASES:
	if sys.argv[3:] and case.__name__ not in sys.argv[3:]:
		continue
	print(case.__name__, flush=True)
	case()
	good()
	print("\t%d KB" % rss_kb(), flush=True)
	assert rss_kb() < LIMIT_KB, "more memory than --memory and what a client may take"
