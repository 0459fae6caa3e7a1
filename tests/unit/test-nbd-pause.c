/* SPDX-License-Identifier: BSD-3-Clause */
/* Input of the NBD engine that pauses: wherever a limit of requests cuts the stream, each WRITE has
 * its own data, and the next request begins where the last one ends. */
#include <sys/socket.h>

#include "fsm-rules.h"
#include "nbd-by-hand.h"
#include "nbd-priv.h"
#include "share.h"
#include "unit.h"

TestSuite(pause, .init = by_hand_begin, .fini = by_hand_end);

#define LEN 40000u			/* of a WRITE: too large to be used in its block */
#define SLOTS (RIG_DISK / LEN)
#define BEHIND 4u			/* WRITEs behind the limit */

/* How the client speaks. */
struct way {
	const char *name;
	enum nbd_headers headers;
	bool tls;
	uint16_t flags;			/* of a WRITE */
};

static const struct way ways[] = {
	{ "simple", NBD_HEADERS_SIMPLE, false, 0 },
	{ "structured", NBD_HEADERS_STRUCTURED, false, 0 },
	{ "extended", NBD_HEADERS_EXTENDED, false, NBD_CMD_FLAG_PAYLOAD_LEN },
	{ "simple, TLS", NBD_HEADERS_SIMPLE, true, 0 },
	{ "extended, TLS", NBD_HEADERS_EXTENDED, true, NBD_CMD_FLAG_PAYLOAD_LEN },
	{ "extended, as QEMU 10", NBD_HEADERS_EXTENDED, false, 0 },
};

/* ---- the client ---- */

static void choose(int fd, uint32_t option)
{
	uint8_t buf[64];

	say(fd, buf, put_option(buf, option, NULL, 0));
	cr_assert_eq(hear(fd, buf, sizeof(buf)), (ssize_t)sizeof(struct nbd_msg_option_reply));
}

static int serve_way(const struct way *way)
{
	uint8_t buf[512], data[64];
	int fd = rig_connect(&rig);

	cr_assert_gt(hear(fd, buf, sizeof(buf)), 0);
	greet(fd);
	if (way->tls)
		choose(fd, NBD_OPT_STARTTLS);
	if (way->headers == NBD_HEADERS_STRUCTURED)
		choose(fd, NBD_OPT_STRUCTURED_REPLY);
	if (way->headers == NBD_HEADERS_EXTENDED)
		choose(fd, NBD_OPT_EXTENDED_HEADERS);
	say(fd, buf, put_option(buf, NBD_OPT_GO, data, put_go(data, "disk")));
	cr_assert_gt(hear(fd, buf, sizeof(buf)), 60);
	return fd;
}

/* Write the header of a request of @len bytes, a FLUSH if none, to @buf.  Returns its bytes. */
static size_t put_header(uint8_t *buf, const struct way *way, uint64_t cookie, uint64_t off,
			 uint32_t len)
{
	struct nbd_msg_request m = request(len ? NBD_CMD_WRITE : NBD_CMD_FLUSH, cookie, off, len);
	struct nbd_msg_request_ext ext = {
		.magic = be32_put(NBD_EXTENDED_REQUEST_MAGIC), .type = m.type,
		.flags = be16_put(len ? way->flags : 0), .cookie = m.cookie,
		.offset = m.offset, .length = be64_put(len),
	};

	if (way->headers == NBD_HEADERS_EXTENDED)
		memcpy(buf, &ext, sizeof(ext));
	else
		memcpy(buf, &m, sizeof(m));
	return nbd_request_size(way->headers);
}

/* The data of WRITE @n. */
static void put_data(uint8_t buf[LEN], unsigned n)
{
	for (uint32_t i = 0; i < LEN; i++)
		buf[i] = (uint8_t)(n * 7 + i % 251);
}

/* Write WRITE @n, with its header, to @buf.  Returns its bytes. */
static size_t put_write(uint8_t *buf, const struct way *way, unsigned n)
{
	size_t size = put_header(buf, way, n, n % SLOTS * LEN, LEN);

	put_data(buf + size, n);
	return size + LEN;
}

/* The next reply is a success.  Returns its cookie. */
static unsigned take_reply(int fd, const struct way *way)
{
	size_t size = way->headers == NBD_HEADERS_EXTENDED ? sizeof(struct nbd_msg_chunk_ext) :
							     sizeof(struct nbd_msg_simple_reply);
	uint8_t buf[sizeof(struct nbd_msg_chunk_ext)];
	const struct nbd_msg_simple_reply *simple = (void *)buf;
	const struct nbd_msg_chunk_ext *ext = (void *)buf;

	cr_assert_eq(recv(fd, buf, size, 0), (ssize_t)size, "%s: no reply", way->name);
	if (way->headers == NBD_HEADERS_EXTENDED) {
		cr_assert_eq(be16_get(ext->type), NBD_REPLY_TYPE_NONE);
		return (unsigned)be64_get(ext->cookie);
	}
	cr_assert_eq(be32_get(simple->error), 0);
	return (unsigned)be64_get(simple->cookie);
}

/* Have @n FLUSHes held. */
static void hold_flushes(int fd, const struct way *way, unsigned n)
{
	static uint8_t buf[NBD_CONN_IOS * NBD_REQUEST_MAX];
	size_t len = 0;

	for (unsigned i = 0; i < n; i++)
		len += put_header(buf + len, way, i, 0, 0);
	say(fd, buf, len);
}

/* End the request that is held last.  A WRITE has its own data on the disk. */
static void finish_last(int fd, const struct way *way)
{
	uint16_t cmd = rig.held[rig.nheld - 1]->cmd;
	static uint8_t data[LEN];
	unsigned n;

	rig_finish(&rig, rig.nheld - 1, 0);
	n = take_reply(fd, way);
	put_data(data, n);
	if (cmd == NBD_CMD_WRITE)
		cr_assert_eq(memcmp(rig.disk + n % SLOTS * LEN, data, LEN), 0,
			     "%s: WRITE %u has other data", way->name, n);
}

/* ---- cuts ---- */

/* The requests of @fd are at a limit if @nflushes of it are held, and two WRITEs.  The stream
 * behind is cut at @first, and at @second: a request ends at each cut. */
static void pause_at(const struct way *way, unsigned nflushes, size_t first, size_t second)
{
	static uint8_t buf[BEHIND * (NBD_REQUEST_MAX + LEN)];
	unsigned others = rig.nheld, started;
	int fd = serve_way(way);
	size_t len = 0;

	hold_flushes(fd, way, nflushes);
	for (unsigned n = 0; n < 2; n++)
		say(fd, buf, put_write(buf, way, n));
	cr_assert_eq(rig.nheld, others + nflushes + 2);
	started = rig.nstarted;
	for (unsigned n = 2; n < BEHIND + 2; n++)
		len += put_write(buf + len, way, n);

	say(fd, buf, first);
	cr_assert_eq(rig.nstarted, started, "%s: more than the limit", way->name);
	cr_assert_eq(send(fd, buf + first, second - first, MSG_NOSIGNAL),
		     (ssize_t)(second - first));
	finish_last(fd, way);
	finish_last(fd, way);
	say(fd, buf + second, len - second);
	while (rig.nheld > others)
		finish_last(fd, way);
	cr_assert_eq(rig.nstarted, started + BEHIND, "%s, cut at %zu and %zu: %s", way->name,
		     first, second, last_line);
	leave(fd);
}

/* The first cut lies in and around the request that pauses, the second one in and around the
 * requests behind it. */
static void pause_at_each_cut(const struct way *way, unsigned nflushes)
{
	const size_t h = nbd_request_size(way->headers), w = h + LEN;
	const size_t firsts[] = { 1, h - 1, h, h + 1, h + LEN / 2, w - 1, w, w + 1, w + h,
				  w + h + 1 };
	const size_t seconds[] = { w, w + 1, w + h - 1, w + h, w + h + LEN / 4, 2 * w - 1, 2 * w,
				   2 * w + h + 1, 3 * w };

	for_each_case(first, firsts) {
		for_each_case(second, seconds) {
			if (*first < *second)
				pause_at(way, nflushes, *first, *second);
		}
	}
}

/* The connection has NBD_CONN_IOS requests. */
Test(pause, at_the_limit_of_a_connection)
{
	rig.mode = RIG_HOLDS;
	for_each_case(way, ways)
		pause_at_each_cut(way, NBD_CONN_IOS - 2);
}

/* How many requests connections may begin that have some. */
static unsigned beyond_reserve(void)
{
	unsigned nfree = NBD_IOS_MAX - rig.server->nios;

	return nfree - (unsigned)share_reserve(NBD_IOS_MAX, rig.server->nbusy, 1);
}

#define MANY 200u			/* requests that a connection may have while 25 are free */

/* Connections have so many requests together that this one, which has two, goes hungry: what is
 * free is for the first requests of others. */
Test(pause, at_the_limit_of_all_connections)
{
	int others[128];
	unsigned n = 0, left;

	rig.mode = RIG_HOLDS;
	while ((left = beyond_reserve()) > 2) {
		cr_assert_lt(n, ARRAY_SIZE(others));
		others[n] = serve_way(&ways[0]);
		/* one of them is the first one */
		hold_flushes(others[n++], &ways[0],
			     left > MANY + 25 ? MANY : left > 35 ? left - 30 : 2);
	}
	cr_assert_eq(left, 2);
	for_each_case(way, ways)
		pause_at_each_cut(way, 0);
	rig_finish_all(&rig, 0);
	while (n--)
		leave(others[n]);
}

/* The same in the middle of the reserve: a connection without a request has its first one. */
Test(pause, first_requests_have_a_reserve)
{
	const unsigned all = NBD_IOS_MAX / SHARE_RESERVE;
	int greedy[NBD_IOS_MAX / NBD_CONN_IOS], fd;

	rig.mode = RIG_HOLDS;
	for_each_case(g, greedy) {
		*g = serve_way(&ways[0]);
		hold_flushes(*g, &ways[0], NBD_CONN_IOS);
	}
	cr_assert_geq(NBD_IOS_MAX - rig.nheld, all - ARRAY_SIZE(greedy));
	cr_assert_leq(NBD_IOS_MAX - rig.nheld, all);
	fd = serve_way(&ways[0]);
	hold_flushes(fd, &ways[0], 1);
	rig_finish(&rig, rig.nheld - 1, 0);
	take_reply(fd, &ways[0]);
	leave(fd);
	while (rig.nheld)
		rig_finish_all(&rig, 0);
	for_each_case(g, greedy)
		leave(*g);
}

/* ---- the tables ---- */

Test(pause, rules)
{
	fsm_rules(&nbd_ahead_fsm);
	fsm_rules(&nbd_input_fsm);
}

/* ---- the flag of a WRITE's data ---- */

/* QEMU 10 and 11 omit NBD_CMD_FLAG_PAYLOAD_LEN: the log says so once for each connection. */
Test(pause, p39_write_without_its_flag)
{
	static uint8_t buf[NBD_REQUEST_MAX + LEN];

	for_each_case(way, ways) {
		bool omits = way->headers == NBD_HEADERS_EXTENDED && !way->flags;
		int fd = serve_way(way);

		nlines = 0;
		for (unsigned n = 0; n < 3; n++) {
			say(fd, buf, put_write(buf, way, n));
			cr_assert_eq(take_reply(fd, way), n);
		}
		cr_assert_eq(nlines, omits, "%s: %u lines", way->name, nlines);
		cr_assert(!omits || strstr(last_line, "NBD_CMD_FLAG_PAYLOAD_LEN"), "%s", last_line);
		leave(fd);
	}
}

/* The next reply is an error; with extended headers @error, for a reason that says @why. */
static void take_error(int fd, const struct way *way, uint8_t error, const char *why)
{
	struct nbd_msg_chunk_ext reply;
	bool extended = way->headers == NBD_HEADERS_EXTENDED;
	size_t n = extended ? sizeof(reply) : sizeof(struct nbd_msg_simple_reply);
	char text[256] = "";

	cr_assert_eq(recv(fd, &reply, n, 0), (ssize_t)n, "%s: no reply", way->name);
	if (!extended)
		return;
	/* The number and the text of the error. */
	n = be64_get(reply.length);
	cr_assert(n > 6 && n < sizeof(text));
	cr_assert_eq(recv(fd, text, n, 0), (ssize_t)n);
	cr_assert_eq(text[3], error);
	cr_assert_eq((uint8_t)text[5], n - 6);
	cr_assert(strstr(text + 6, why), "%s", text + 6);
}

/* A wrong WRITE has its data dropped with the flag and without: the next request is found. */
Test(pause, p39_wrong_write_without_its_flag)
{
	static uint8_t buf[2 * (NBD_REQUEST_MAX + LEN)];

	for_each_case(way, ways) {
		int fd = serve_way(way);
		size_t len = put_header(buf, way, 0, RIG_DISK, LEN) + LEN;

		say(fd, buf, len + put_write(buf + len, way, 1));
		take_error(fd, way, NBD_ENOSPC, "end");
		cr_assert_eq(take_reply(fd, way), 1, "%s", way->name);
		leave(fd);
	}
}

/* A BLOCK_STATUS whose payload names more contexts than there are is refused at once, and the next
 * request is found behind the payload. */
Test(pause, long_payload_of_a_status)
{
	static uint8_t buf[2 * (NBD_REQUEST_MAX + LEN)];
	static const uint32_t lens[] = { 65, 200, LEN };
	const struct way *way = &ways[2];
	int fd = serve_way(way);

	for_each_case(len, lens) {
		size_t n = put_header(buf, way, 0, 0, *len);

		((struct nbd_msg_request_ext *)buf)->type = be16_put(NBD_CMD_BLOCK_STATUS);
		memset(buf + n, 0, *len);
		n += *len;
		say(fd, buf, n + put_write(buf + n, way, 1));
		take_error(fd, way, NBD_EINVAL, "more contexts than there are");
		cr_assert_eq(take_reply(fd, way), 1);
	}
	leave(fd);
}
