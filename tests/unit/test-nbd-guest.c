/* SPDX-License-Identifier: BSD-3-Clause */
/* Guests of the NBD engine: which connection goes when one more comes, and the memory they hold. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nbd-by-hand.h"
#include "nbd-priv.h"
#include "unit.h"

/* Here chance always picks the oldest (unproven.h). */
void random_bytes(void *buf, size_t len)
{
	memset(buf, 0, len);
}

enum { ALL = 8, NET = 3 };		/* limits; the engine's own are shared out by the program */

static void begin(void)
{
	by_hand_begin();
	rig.server->unproven.max = ALL;
	rig.server->unproven.net_max = NET;
}

TestSuite(guest, .init = begin, .fini = by_hand_end);

static bool stays(int fd)
{
	char bytes[64];

	return hear(fd, bytes, sizeof(bytes)) >= 0;
}

static void connect_from(uint64_t net, int *fds, unsigned n)
{
	char bytes[64];

	for (unsigned i = 0; i < n; i++) {
		fds[i] = rig_connect_from(&rig, net);
		hear(fds[i], bytes, sizeof(bytes));
	}
}

static void leave_all(const int *fds, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		leave(fds[i]);
}

/* A connection that opens "disk", or asks for it. */
static void open_disk(int fd)
{
	uint8_t buf[256], data[64];
	uint32_t len = put_go(data, "disk");

	greet(fd);
	say(fd, buf, put_option(buf, NBD_OPT_GO, data, len));
	hear(fd, buf, sizeof(buf));
}

static void expect_driven_out(int fd)
{
	cr_assert(!stays(fd));
	cr_assert(strstr(last_line, "too many clients have opened no export"), "%s", last_line);
}

Test(guest, oldest_of_its_own_net_goes)
{
	int other, fds[NET + 2];

	connect_from(2, &other, 1);
	connect_from(1, fds, NET);
	cr_assert(stays(fds[0]));
	connect_from(1, fds + NET, 2);
	expect_driven_out(fds[0]);
	cr_assert(!stays(fds[1]) && stays(fds[2]) && stays(fds[NET + 1]) && stays(other));
	cr_assert_eq(nlines, 2);
	leave_all(fds, NET + 2);
	leave(other);
}

/* The newcomer's net has one guest only: the other net gives way, whoever is older. */
Test(guest, oldest_of_the_most_goes)
{
	int a[2], b[NET], c[NET], d;

	connect_from(1, a, 2);
	connect_from(2, b, NET);
	connect_from(3, c, NET);
	cr_assert_eq(nlines, 0);
	connect_from(4, &d, 1);
	expect_driven_out(b[0]);
	cr_assert(stays(a[0]) && stays(b[1]) && stays(c[0]) && stays(d));
	cr_assert_eq(rig.server->unproven.n, ALL);
	leave_all(a, 2);
	leave_all(b, NET);
	leave_all(c, NET);
	leave(d);
}

Test(guest, this_machine_may_have_all)
{
	int fds[ALL + 1];

	connect_from(NBD_NET_LOCAL, fds, ALL);
	for (unsigned i = 0; i < ALL; i++)
		cr_assert(stays(fds[i]));
	connect_from(NBD_NET_LOCAL, fds + ALL, 1);
	expect_driven_out(fds[0]);
	cr_assert(stays(fds[1]) && stays(fds[ALL]));
	leave_all(fds, ALL + 1);
}

/* Who has an export is no guest, and who has left none either. */
Test(guest, served_ones_stay)
{
	int served[NET + 1], fds[NET];

	for (unsigned i = 0; i < NET + 1; i++) {
		connect_from(1, &served[i], 1);
		open_disk(served[i]);
	}
	cr_assert_eq(rig.server->unproven.n, 0);
	connect_from(1, fds, NET);
	leave_all(fds, NET);
	cr_assert_eq(rig.server->unproven.n, 0);
	connect_from(1, fds, NET);
	cr_assert_eq(nlines, 0, "%s", last_line);
	for (unsigned i = 0; i < NET + 1; i++) {
		ask(served[i], NBD_CMD_FLUSH, i, 0, 0);
		expect_reply(served[i], i, 0);
	}
	leave_all(served, NET + 1);
	leave_all(fds, NET);
}

/* While the backend has the question, nobody takes the place of the connection.  After a refusal it
 * is the youngest guest. */
Test(guest, who_waits_for_the_server_stays)
{
	int waits, fds[NET + 1];

	rig.mode = RIG_OPENS_LATE;
	connect_from(1, &waits, 1);
	open_disk(waits);
	cr_assert_not_null(rig.late);
	connect_from(1, fds, NET);
	connect_from(1, fds + NET, 1);
	expect_driven_out(fds[0]);
	cr_assert(stays(waits));
	nbd_ask_opened(rig.late, -ENOENT, "none", NULL);
	rig.late = NULL;
	rig_run(&rig);
	expect_driven_out(fds[1]);
	cr_assert(stays(waits) && stays(fds[2]));
	leave_all(fds, NET + 1);
	leave(waits);
}

/* A flood has a few lines of its own, and leaves the others theirs. */
Test(guest, lines_are_bounded)
{
	int fds[40], wrong;
	unsigned before;

	connect_from(1, fds, 40);
	cr_assert(nlines >= 1 && nlines <= 5, "%u lines", nlines);
	before = nlines;
	connect_from(2, &wrong, 1);
	say(wrong, "\xff\xff\xff\xff", 4);
	cr_assert_eq(nlines, before + 1);
	leave_all(fds, 40);
	leave(wrong);
}

/* ---- memory ---- */

/* Give @len bytes of a GO for a name of @name bytes, and the rest later.  Returns the memory for
 * data that the part holds. */
static size_t held_by_half(uint32_t name, size_t len)
{
	static uint8_t option[8192], data[8192], reply[8192];
	static char text[NBD_STRING_MAX + 1];
	size_t used, whole;
	int fd;

	memset(text, 'n', name);
	text[name] = '\0';
	whole = put_option(option, NBD_OPT_INFO, data, put_go(data, text));
	connect_from(1, &fd, 1);
	greet(fd);
	cr_assert_lt(len, whole);
	for (size_t i = 0; i < len; i++)
		say(fd, option + i, 1);
	used = rig.server->mem.used;
	say(fd, option + len, whole - len);
	cr_assert_gt(hear(fd, reply, sizeof(reply)), 20, "the option is answered");
	cr_assert_eq(rig.server->mem.used, 0);
	leave(fd);
	return used;
}

/* A part of an ordinary option holds no memory for data, one with a long name a block. */
Test(guest, half_an_option)
{
	cr_assert_eq(held_by_half(4, 15), 0);
	cr_assert_eq(held_by_half(4, 25), 0);
	cr_assert_eq(held_by_half(400, 400), 0);
	cr_assert_eq(held_by_half(4000, NBD_SMALL_ROOM - 1), 0);
	cr_assert_eq(held_by_half(4000, 4000), NBD_BLOCK);
}

/* Options and requests in one piece, of which each size of the first part is tried. */
Test(guest, requests_behind_an_option)
{
	static uint8_t bytes[1024], data[512], reply[8192];
	struct nbd_msg_request m;
	size_t len, n;
	int fd;

	for (uint32_t name = 0; name < 400; name++) {
		memset(data + 4, 'x', name);
		len = put_option(bytes, 77, data + 4, name);
		len += put_option(bytes + len, NBD_OPT_GO, data, put_go(data, "disk"));
		for (uint64_t cookie = 0; cookie < 12; cookie++, len += sizeof(m)) {
			m = request(NBD_CMD_FLUSH, cookie, 0, 0);
			memcpy(bytes + len, &m, sizeof(m));
		}
		connect_from(1, &fd, 1);
		greet(fd);
		say(fd, bytes, len);
		n = (size_t)hear(fd, reply, sizeof(reply));
		for (uint64_t cookie = 12; cookie-- > 0;) {
			const struct nbd_msg_simple_reply *r = (const void *)(reply + n - 16);

			n -= 16;
			cr_assert_eq(be64_get(r->cookie), cookie, "behind %u bytes", name);
			cr_assert_eq(be32_get(r->error), 0);
		}
		leave(fd);
	}
}

/* A request that comes with the option waits for memory as any other does. */
Test(guest, no_memory_behind_an_option)
{
	uint8_t bytes[256], data[64], reply[512];
	size_t limit = rig.server->mem.limit, len;
	struct nbd_msg_request m = request(NBD_CMD_FLUSH, 1, 0, 0);
	int fd;

	connect_from(1, &fd, 1);
	greet(fd);
	len = put_option(bytes, NBD_OPT_GO, data, put_go(data, "disk"));
	memcpy(bytes + len, &m, sizeof(m));
	rig.server->mem.limit = 0;
	say(fd, bytes, len + sizeof(m));
	hear(fd, reply, sizeof(reply));
	rig_pass_time(&rig, 5000);
	cr_assert_eq(hear(fd, reply, sizeof(reply)), 0);
	rig.server->mem.limit = limit;
	rig_pass_time(&rig, 5000);
	expect_reply(fd, 1, 0);
	leave(fd);
}

/* Who does not read the answers gets no more of them, and all of them later. */
Test(guest, answers_that_are_not_read)
{
	const struct nbd_conn *conn;
	static uint8_t reply[65536];
	uint8_t bytes[16];
	size_t asked = 0, got = 0;
	ssize_t n;
	int fd;

	connect_from(1, &fd, 1);
	greet(fd);
	conn = list_entry(rig.server->conns.next, struct nbd_conn, link);
	put_option(bytes, 77, NULL, 0);
	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(bytes)) {
		asked++;
		rig_run(&rig);
		cr_assert_leq(conn->out_bytes.len, 16384, "after %zu options", asked);
	}
	while ((n = hear(fd, reply, sizeof(reply))) > 0) {
		got += (size_t)n;
		rig_run(&rig);
	}
	cr_assert_eq(got, asked * (20 + strlen("unknown option")));
	leave(fd);
}
