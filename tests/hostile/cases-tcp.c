/* SPDX-License-Identifier: BSD-3-Clause */
/* What the fabric would never send: bytes on the tcp socket itself (rtrs-protocol(7)).  Each row is
 * a stage that is reached by the rules, then bytes that are not by the rules; the server has to
 * hang up. */
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hostile.h"
#include "rtrs-imm.h"
#include "raw.h"

enum stage { STRANGER, ACCEPTED, IN_SERVICE };

static const struct raw_row {
	const char *name;
	enum stage stage;
	/* One frame ... */
	struct tcp_frame f;
	size_t payload;			/* bytes that really follow it */
	/* ... with one byte replaced (at > 0) ... */
	size_t at;
	uint8_t value;
	/* ... or so many bytes of this kind instead. */
	enum { FRAME, ZEROES, ONES, RANDOM, HTTP } kind;
	size_t len;
	bool good_rkey;			/* rkey and addr of the first chunk */
} raw_rows[] = {
	{ "zeroes", STRANGER, .kind = ZEROES, .len = 65536 },
	{ "ones", STRANGER, .kind = ONES, .len = 65536 },
	{ "random bytes", STRANGER, .kind = RANDOM, .len = 65536 },
	{ "HTTP", STRANGER, .kind = HTTP },
	{ "CONNECT without magic", STRANGER, { .op = TCP_FRAME_CONNECT, .rkey = 1 }, 0 },
	{ "CONNECT with 57 bytes", STRANGER, { .op = TCP_FRAME_CONNECT, .rkey = 1,
	  .addr = TCP_FRAME_MAGIC, .length = 57 }, 57 },
	{ "CONNECT with 4 GiB", STRANGER, { .op = TCP_FRAME_CONNECT, .rkey = 1,
	  .addr = TCP_FRAME_MAGIC, .length = UINT32_MAX }, 1000 },
	{ "CONNECT of version 0", STRANGER, { .op = TCP_FRAME_CONNECT, .rkey = 0,
	  .addr = TCP_FRAME_MAGIC, .length = 56 }, 56 },
	{ "CONNECT of version max", STRANGER, { .op = TCP_FRAME_CONNECT, .rkey = UINT32_MAX,
	  .addr = TCP_FRAME_MAGIC, .length = 56 }, 56 },
	{ "CONNECT with an immediate", STRANGER, { .op = TCP_FRAME_CONNECT, .rkey = 1,
	  .addr = TCP_FRAME_MAGIC, .length = 56, .imm = 1 }, 56 },
	{ "CONNECT with a flag", STRANGER, { .op = TCP_FRAME_CONNECT, .rkey = 1,
	  .addr = TCP_FRAME_MAGIC, .length = 56 }, 56, 1, 0x80 },
	{ "ACCEPT instead of CONNECT", STRANGER, { .op = TCP_FRAME_ACCEPT, .rkey = 1,
	  .addr = TCP_FRAME_MAGIC, .length = 56 }, 56 },
	{ "SEND instead of CONNECT", STRANGER, { .op = TCP_FRAME_SEND, .length = 272 }, 272 },
	{ "DISCONNECT instead of CONNECT", STRANGER, { .op = TCP_FRAME_DISCONNECT }, 0 },

	{ "zeroes after ACCEPT", ACCEPTED, .kind = ZEROES, .len = 65536 },
	{ "random bytes after ACCEPT", ACCEPTED, .kind = RANDOM, .len = 65536 },
	{ "CONNECT again", ACCEPTED, { .op = TCP_FRAME_CONNECT, .rkey = 1,
	  .addr = TCP_FRAME_MAGIC, .length = 56 }, 56 },
	{ "SEND of 4 GiB", ACCEPTED, { .op = TCP_FRAME_SEND, .length = UINT32_MAX }, 1000 },
	{ "SEND of 1 GiB", ACCEPTED, { .op = TCP_FRAME_SEND, .length = 1u << 30 }, 1000 },
	{ "SEND with an address", ACCEPTED, { .op = TCP_FRAME_SEND, .length = 272, .addr = 1 },
	  272 },
	{ "SEND with reserved bits", ACCEPTED, { .op = TCP_FRAME_SEND, .length = 272 }, 272, 2, 1 },
	{ "SEND_WITH_INV", ACCEPTED, { .op = TCP_FRAME_SEND_WITH_INV, .rkey = 1 }, 0 },
	{ "write before INFO_REQ, guessed key", ACCEPTED, { .op = TCP_FRAME_RDMA_WRITE, .rkey = 1,
	  .addr = 1 << 20, .length = 4096 }, 4096 },
	{ "opcode 0", ACCEPTED, { .op = 0 }, 0 },
	{ "opcode 6", ACCEPTED, { .op = 6 }, 0 },
	{ "opcode max", ACCEPTED, { .op = 255, .length = 100 }, 100 },

	{ "zeroes in service", IN_SERVICE, .kind = ZEROES, .len = 65536 },
	{ "ones in service", IN_SERVICE, .kind = ONES, .len = 65536 },
	{ "random bytes in service", IN_SERVICE, .kind = RANDOM, .len = 65536 },
	{ "write of 4 GiB", IN_SERVICE, { .op = TCP_FRAME_RDMA_WRITE, .length = UINT32_MAX }, 1000,
	  .good_rkey = true },
	{ "write of 1 GiB", IN_SERVICE, { .op = TCP_FRAME_RDMA_WRITE, .length = 1u << 30 }, 1000,
	  .good_rkey = true },
	{ "write of all chunks and a byte", IN_SERVICE, { .op = TCP_FRAME_RDMA_WRITE,
	  .length = 100 * (131072 + 4096) + 1 }, 1000, .good_rkey = true },
	{ "write under key 0", IN_SERVICE, { .op = TCP_FRAME_RDMA_WRITE, .length = 16 }, 16 },
	{ "write with an immediate that is none", IN_SERVICE, { .op = TCP_FRAME_RDMA_WRITE,
	  .length = 16, .imm = 5 }, 16, .good_rkey = true },
	{ "write with a flag", IN_SERVICE, { .op = TCP_FRAME_RDMA_WRITE, .length = 16 }, 16, 1, 1,
	  .good_rkey = true },
	{ "DISCONNECT with a length", IN_SERVICE, { .op = TCP_FRAME_DISCONNECT, .length = 5 }, 5 },
	{ "DISCONNECT with a status", IN_SERVICE, { .op = TCP_FRAME_DISCONNECT, .imm = 0xffffffff },
	  0 },
	{ "REJECT in service", IN_SERVICE, { .op = TCP_FRAME_REJECT, .rkey = 1,
	  .addr = TCP_FRAME_MAGIC, .length = 56 }, 56 },
};

static int reach(enum stage stage, struct rtrs_region *chunks)
{
	int fd = raw_connect();

	if (stage >= ACCEPTED)
		raw_handshake(fd);
	if (stage == IN_SERVICE)
		raw_info(fd, chunks);
	return fd;
}

static size_t fill(const struct raw_row *row, const struct rtrs_region *chunks, uint8_t *buf)
{
	static const char http[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
	struct tcp_frame f = row->f;

	switch (row->kind) {
	case ZEROES:
	case ONES:
		memset(buf, row->kind == ONES ? 0xff : 0, row->len);
		return row->len;
	case RANDOM:
		for (size_t n = 0; n < row->len; n += 256)
			expect(getrandom(buf + n, 256, 0) == 256);
		return row->len;
	case HTTP:
		memcpy(buf, http, sizeof(http) - 1);
		return sizeof(http) - 1;
	case FRAME:
		break;
	}
	if (row->good_rkey) {
		f.rkey = chunks->key;
		f.addr = chunks->addr;
	}
	tcp_frame_encode(buf, &f);
	if (row->at)
		buf[row->at] = row->value;
	memset(buf + TCP_FRAME_HDR_LEN, 0, row->payload);
	return TCP_FRAME_HDR_LEN + row->payload;
}

static void raw_run(const void *arg)
{
	static uint8_t buf[1 << 20];
	const struct raw_row *row = arg;
	struct rtrs_region chunks = { 0 };
	int fd = reach(row->stage, &chunks);
	size_t len = fill(row, &chunks, buf);

	raw_send_some(fd, buf, len);
	raw_expect_end(fd);
}

const struct hgroup tcp_cases = HGROUP("tcp", raw_rows, raw_run);
