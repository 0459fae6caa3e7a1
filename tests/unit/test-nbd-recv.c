/* SPDX-License-Identifier: BSD-3-Clause */
/* Input of the NBD engine: WRITEs that follow each other come with few system calls, and whatever
 * follows a WRITE in place of the expected one is found. */
#include <errno.h>
#include <sys/socket.h>

#include "nbd-by-hand.h"
#include "unit.h"

TestSuite(recv, .init = by_hand_begin, .fini = by_hand_end);

#define LARGE 100000u			/* bytes of a WRITE that comes ahead */

static unsigned ncalls;

ssize_t __real_recvmsg(int fd, struct msghdr *msg, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags);

ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags)
{
	ncalls++;
	return __real_recvmsg(fd, msg, flags);
}

/* ---- a stream of requests ---- */

static struct {
	uint8_t bytes[4u << 20];
	size_t len;
	unsigned n;			/* requests */
} stream;

static void put(uint16_t type, uint64_t off, uint32_t len)
{
	struct nbd_msg_request m = request(type, stream.n, off, len);

	memcpy(stream.bytes + stream.len, &m, sizeof(m));
	stream.len += sizeof(m);
	if (type == NBD_CMD_WRITE) {
		for (uint32_t i = 0; i < len; i++)
			stream.bytes[stream.len + i] = (uint8_t)(stream.n + i % 251);
		stream.len += len;
	}
	stream.n++;
}

static void stream_begin(void)
{
	stream.len = 0;
	stream.n = 0;
}

/* Send the stream in pieces of @piece bytes at most, and expect that each request succeeds. */
static void stream_send(int fd, size_t piece)
{
	unsigned answered = 0;

	for (size_t at = 0, n; at < stream.len; at += n) {
		struct nbd_msg_simple_reply m;

		n = MIN(stream.len - at, piece);
		say(fd, stream.bytes + at, n);
		while (recv(fd, &m, sizeof(m), 0) == sizeof(m)) {
			cr_assert_eq(be32_get(m.error), 0, "request %u", answered);
			cr_assert_eq(be64_get(m.cookie), answered);
			answered++;
		}
	}
	cr_assert_eq(answered, stream.n);
}

/* What request @n has written at @off is there. */
static void expect_written(unsigned n, uint64_t off, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		cr_assert_eq(rig.disk[off + i], (uint8_t)(n + i % 251), "request %u, byte %u", n,
			     i);
}

/* ---- tests ---- */

/* A socket that has the rest of a WRITE, a header and the next data is read by one call. */
Test(recv, one_call_for_each_write)
{
	uint32_t len = 100000;
	int fd = serve("disk");

	stream_begin();
	for (unsigned i = 0; i < 10; i++)
		put(NBD_CMD_WRITE, i * len, len);
	ncalls = 0;
	stream_send(fd, len + sizeof(struct nbd_msg_request));
	/* The first one has two, because its length is not known before. */
	cr_assert_leq(ncalls, 11, "%u calls for 10 WRITEs", ncalls);
	for (unsigned i = 0; i < 10; i++)
		expect_written(i, i * len, len);
	leave(fd);
}

/* Of all lengths of pieces: the expected WRITE has come in part, and not at all. */
Test(recv, expected_writes_in_pieces)
{
	static const size_t pieces[] = { 60000, 77777, 99999, 100027, 100029, 150000 };
	uint32_t len = 100000;
	int fd = serve("disk");

	for_each_case(piece, pieces) {
		stream_begin();
		memset(rig.disk, 0, RIG_DISK);
		for (unsigned i = 0; i < 10; i++)
			put(NBD_CMD_WRITE, i * len, len);
		stream_send(fd, *piece);
		for (unsigned i = 0; i < 10; i++)
			expect_written(i, i * len, len);
	}
	leave(fd);
}

/* A WRITE of another length, small WRITEs, and requests without data follow a large WRITE. */
Test(recv, other_requests_than_expected)
{
	static const uint32_t lens[] = { 100000, 60000, 100000, 3000, 3000, 100000, 0, 100000,
					 140000, 33000, 0, 0, 0, 33000, 33000, 1, 32768 };
	static const size_t pieces[] = { 50001, 100028, 150000 };
	int fd = serve("disk");

	for_each_case(piece, pieces) {
		uint64_t off = 0;

		stream_begin();
		memset(rig.disk, 0, RIG_DISK);
		for_each_case(len, lens) {
			put(*len ? NBD_CMD_WRITE : NBD_CMD_FLUSH, *len ? off : 0, *len);
			off += *len;
		}
		stream_send(fd, *piece);
		off = 0;
		for (unsigned i = 0; i < ARRAY_SIZE(lens); off += lens[i++])
			expect_written(i, off, lens[i]);
	}
	leave(fd);
}

/* The bytes behind a wrong WRITE are dropped, and those that came ahead with them. */
Test(recv, wrong_write_among_large_ones)
{
	uint32_t len = 100000;
	int fd = serve("disk");

	stream_begin();
	put(NBD_CMD_WRITE, 0, len);
	put(NBD_CMD_WRITE, RIG_DISK - 1, len);
	put(NBD_CMD_WRITE, len, len);
	for (size_t at = 0, n; at < stream.len; at += n) {
		n = MIN(stream.len - at, (size_t)150000);
		say(fd, stream.bytes + at, n);
	}
	expect_reply(fd, 0, 0);
	expect_reply(fd, 1, NBD_ENOSPC);
	expect_reply(fd, 2, 0);
	expect_written(0, 0, len);
	expect_written(2, len, len);
	leave(fd);
}

/* The data of a WRITE has its memory, whatever memory is left for input. */
Test(recv, data_needs_no_block)
{
	int fd = serve("disk");

	stream_begin();
	put(NBD_CMD_WRITE, 0, LARGE);
	say(fd, stream.bytes, 50000);
	nbd_server_set_memory(rig.server, 0);
	say(fd, stream.bytes + 50000, stream.len - 50000);
	expect_reply(fd, 0, 0);
	expect_written(0, 0, LARGE);
	leave(fd);
}

/* A connection that ends in the middle of all this keeps no memory (rig_end()). */
Test(recv, cut_in_the_expected_write)
{
	uint32_t len = 100000;
	int fd = serve("disk");

	stream_begin();
	put(NBD_CMD_WRITE, 0, len);
	put(NBD_CMD_WRITE, len, len);
	say(fd, stream.bytes, 150000);
	expect_reply(fd, 0, 0);
	leave(fd);
	cr_assert(strstr(last_line, "in the middle of a request"), "%s", last_line);
}

/* The largest request comes where a WRITE was expected, with bytes behind: the memory in which
 * these came belongs to no request, and does not hold this one up. */
Test(recv, largest_where_a_write_was_expected)
{
	struct nbd_msg_request m[3] = { request(NBD_CMD_WRITE, 1, 0, LARGE),
					request(NBD_CMD_READ, 2, 0, NBD_DATA_MAX),
					request(NBD_CMD_FLUSH, 3, 0, 0) };
	static const uint8_t data[LARGE];
	int fd = serve("large");

	say(fd, &m[0], sizeof(m[0]));
	say(fd, data, sizeof(data));
	expect_reply(fd, 1, 0);
	rig.mode = RIG_HOLDS;
	say(fd, &m[1], sizeof(m[1]) + sizeof(m[2]));
	cr_assert_eq(rig.nheld, 2, "%u in flight", rig.nheld);
	leave(fd);
	rig_finish_all(&rig, 0);
}
