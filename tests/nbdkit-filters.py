# SPDX-License-Identifier: BSD-3-Clause
# What filters of nbdkit make of a disk of 16 MiB that is theirs to write: nbdkit-filters.py URI
# LOG.  LOG is the file of nbdkit's filter "log" next to the plugin: it has what reaches the
# plugin.  Prints one row: what becomes of FUA, FLUSH, multi-conn, WRITE_ZEROES, TRIM, and
# extents, and the block sizes.
#
#	-	the client is not offered it
#	y	it reaches the plugin as what it is
#	flush	it reaches the plugin as a FLUSH
#	write	it reaches the plugin as writes
#	end	it ends in the filter
#
# Data that a filter keeps until a FLUSH is flushed first.
import os, re, sys
import nbd

uri, log = sys.argv[1], sys.argv[2]
h = nbd.NBD()
h.add_meta_context(nbd.CONTEXT_BASE_ALLOCATION)
h.connect_uri(uri)
MIN = max(h.get_block_size(nbd.SIZE_MINIMUM), 512)
OFF = 1 << 20


def reached(*calls):
	"""What reaches the plugin while these run: Write, Zero, ..., and FUA if a flag says so."""
	start = os.path.getsize(log)
	for call in calls:
		call()
	with open(log) as f:
		f.seek(start)
		line = r" (Write|Zero|Trim|Flush|Extents) id=\d+ ?(.*)\.\.\.$"
		found = re.findall(line, f.read(), re.M)
	return {kind for kind, _ in found} | {"FUA" for _, rest in found if "fua=1" in rest}


def fua():
	if not h.can_fua():
		return "-"
	words = reached(lambda: h.pwrite(bytearray(b"f" * MIN), OFF, nbd.CMD_FLAG_FUA))
	return "y" if "FUA" in words else "flush" if "Flush" in words else "end"


def flush():
	if not h.can_flush():
		return "-"
	h.pwrite(bytearray(b"w" * MIN), OFF)
	return "y" if "Flush" in reached(h.flush) else "end"


def zeroes():
	if not h.can_zero():
		return "-"
	words = reached(lambda: h.zero(65536, OFF), h.flush)
	return "y" if "Zero" in words else "write" if "Write" in words else "end"


def trim():
	if not h.can_trim():
		return "-"
	words = reached(lambda: h.trim(65536, OFF), h.flush)
	return "y" if "Trim" in words else "write" if "Write" in words else "end"


def extents():
	if not h.can_meta_context(nbd.CONTEXT_BASE_ALLOCATION):
		return "-"
	words = reached(lambda: h.block_status(65536, OFF + 65536, lambda *_: 0))
	return "y" if "Extents" in words else "end"


def size(kind):
	n = h.get_block_size(kind)
	for unit, word in ((1 << 20, "M"), (1 << 10, "K")):
		if n and n % unit == 0:
			return "%d%s" % (n // unit, word)
	return "4G-1" if n == 0xffffffff else str(n)


def sizes():
	return "/".join(map(size, (nbd.SIZE_MINIMUM, nbd.SIZE_PREFERRED, nbd.SIZE_MAXIMUM)))


print(fua(), flush(), "y" if h.can_multi_conn() else "-", zeroes(), trim(), extents(), sizes())
h.shutdown()
