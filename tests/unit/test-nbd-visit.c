/* SPDX-License-Identifier: BSD-3-Clause */
/* A visit to the connections of the NBD engine: which are told of, with what, and the end of those
 * that the visitor ends. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "nbd-by-hand.h"
#include "nbd-priv.h"
#include "unit.h"

TestSuite(visit, .init = by_hand_begin, .fini = by_hand_end);

/* A visit: the connections that it has seen, and the one that it ends. */
struct seen {
	struct nbd_client all[8];
	unsigned n;
	unsigned end;			/* a bit for each */
};

static enum nbd_visit note(void *arg, const struct nbd_client *client)
{
	struct seen *s = arg;

	cr_assert_lt(s->n, 8);
	s->all[s->n] = *client;
	return s->end >> s->n++ & 1 ? NBD_VISIT_END : NBD_VISIT_KEEP;
}

/* Visit all, and end those of the bits @end.  The result lives until the next visit. */
static const struct seen *visit(unsigned end)
{
	static struct seen s;

	s = (struct seen){ .end = end };
	nbd_server_visit(rig.server, note, &s);
	rig_run(&rig);
	return &s;
}

Test(visit, nobody) { cr_assert_eq(visit(0)->n, 0); }

/* In the order in which they came, each in its state. */
Test(visit, states)
{
	uint8_t buf[64];
	int negotiates = rig_connect(&rig), open = serve("disk"), leaves = serve("large"), secured;
	const struct seen *s;

	rig.mode = RIG_HOLDS;
	ask(leaves, NBD_CMD_FLUSH, 1, 0, 0);
	ask(leaves, NBD_CMD_DISC, 2, 0, 0);
	secured = rig_connect(&rig);
	greet(secured);
	say(secured, buf, put_option(buf, NBD_OPT_STARTTLS, NULL, 0));
	s = visit(0);
	cr_assert_eq(s->n, 4);
	cr_assert_eq(s->all[0].state, NBD_CLIENT_NEGOTIATES);
	cr_assert(!s->all[0].handle && !s->all[0].stream);
	cr_assert_eq(s->all[1].state, NBD_CLIENT_OPEN);
	cr_assert(s->all[1].handle && !s->all[1].stream && !s->all[1].inflight);
	cr_assert_eq(s->all[2].state, NBD_CLIENT_LEAVES);
	cr_assert(s->all[2].handle && s->all[2].handle != s->all[1].handle);
	cr_assert_eq(s->all[2].inflight, 1);
	cr_assert_eq(s->all[3].state, NBD_CLIENT_NEGOTIATES);
	cr_assert(s->all[3].stream);
	for (unsigned i = 0; i < s->n; i++) {
		cr_assert_str_eq(s->all[i].name, "the client");
		cr_assert_geq(s->all[i].fd, 0);
		for (unsigned j = 0; j < i; j++)
			cr_assert_neq(s->all[i].fd, s->all[j].fd);
	}
	rig_finish(&rig, 0, 0);
	leave(negotiates);
	leave(open);
	leave(leaves);
	leave(secured);
	cr_assert_eq(visit(0)->n, 0);
}

/* The age is that of the connection, whatever it does. */
Test(visit, since)
{
	int early = rig_connect(&rig), late;
	const struct seen *s;

	rig_pass_time(&rig, 700);
	late = serve("disk");
	rig_pass_time(&rig, 300);
	ask(late, NBD_CMD_FLUSH, 1, 0, 0);
	expect_reply(late, 1, 0);
	s = visit(0);
	cr_assert_eq(s->n, 2);
	cr_assert_eq(s->all[1].since_ms - s->all[0].since_ms, 700);
	cr_assert_eq(clock_now_ms() - s->all[1].since_ms, 300);
	leave(early);
	leave(late);
}

/* Requests that have ended, of each connection its own; a failure moves no bytes. */
Test(visit, counts)
{
	int fd = serve("disk"), idle = serve("disk");
	uint8_t data[2048];
	struct nbd_counts c, none = { 0 };
	const struct seen *s;

	memset(data, 1, sizeof(data));
	ask(fd, NBD_CMD_READ, 1, 0, 1000);
	hear(fd, data, sizeof(data));
	ask(fd, NBD_CMD_READ, 2, 4096, 24);
	hear(fd, data, sizeof(data));
	ask(fd, NBD_CMD_WRITE, 3, 0, 512);
	say(fd, data, 512);
	expect_reply(fd, 3, 0);
	ask(fd, NBD_CMD_FLUSH, 4, 0, 0);
	expect_reply(fd, 4, 0);
	rig.mode = RIG_HOLDS;
	ask(fd, NBD_CMD_READ, 5, 0, 77);
	c = visit(0)->all[0].counts;
	cr_assert_eq(c.reads, 2);
	cr_assert_eq(c.read_bytes, 1024);
	rig_finish(&rig, 0, -EIO);
	expect_reply(fd, 5, NBD_EIO);
	s = visit(0);
	c = s->all[0].counts;
	cr_assert_eq(c.reads, 3);
	cr_assert_eq(c.read_bytes, 1024);
	cr_assert_eq(c.writes, 1);
	cr_assert_eq(c.write_bytes, 512);
	cr_assert_eq(c.others, 1);
	cr_assert(!memcmp(&s->all[1].counts, &none, sizeof(none)));
	leave(fd);
	leave(idle);
}

/* The middle one ends at once, without a line; its request ends without a reply, and it is not told
 * of any more.  The others go on. */
Test(visit, end_of_one)
{
	int first = serve("disk"), middle = serve("disk"), last = serve("disk");
	const struct seen *s;

	rig.mode = RIG_HOLDS;
	ask(first, NBD_CMD_FLUSH, 1, 0, 0);
	ask(middle, NBD_CMD_FLUSH, 2, 0, 0);
	ask(last, NBD_CMD_FLUSH, 3, 0, 0);
	s = visit(1u << 1);
	cr_assert_eq(s->n, 3);
	expect_end(middle);
	s = visit(0);
	cr_assert_eq(s->n, 2);
	cr_assert_eq(nbd_server_count(rig.server), 3);
	cr_assert_eq(rig.nopen, 3);
	rig_finish(&rig, 1, 0);
	cr_assert_eq(nbd_server_count(rig.server), 2);
	cr_assert_eq(rig.nopen, 2);
	rig_finish(&rig, 1, 0);
	rig_finish(&rig, 0, 0);
	expect_reply(first, 1, 0);
	expect_reply(last, 3, 0);
	cr_assert_eq(nlines, 0, "%s", last_line);
	close(middle);
	leave(first);
	leave(last);
}

/* All of them, in each state, in one visit. */
Test(visit, end_of_all)
{
	uint8_t buf[64];
	int negotiates = rig_connect(&rig), open = serve("disk"), leaves = serve("disk"), secured;

	hear(negotiates, buf, sizeof(buf));
	rig.mode = RIG_HOLDS;
	ask(leaves, NBD_CMD_FLUSH, 1, 0, 0);
	ask(leaves, NBD_CMD_DISC, 2, 0, 0);
	secured = rig_connect(&rig);
	greet(secured);
	say(secured, buf, put_option(buf, NBD_OPT_STARTTLS, NULL, 0));
	hear(secured, buf, sizeof(buf));
	cr_assert_eq(visit(~0u)->n, 4);
	expect_end(negotiates);
	expect_end(open);
	expect_end(leaves);
	expect_end(secured);
	cr_assert_eq(visit(~0u)->n, 0);
	cr_assert_eq(nbd_server_count(rig.server), 1);
	rig_finish(&rig, 0, 0);
	cr_assert_eq(nbd_server_count(rig.server), 0);
	cr_assert_eq(nlines, 0, "%s", last_line);
	close(negotiates);
	close(open);
	close(leaves);
	close(secured);
}

/* A connection whose answer the backend still owes ends, and the answer finds it so. */
Test(visit, end_while_an_export_opens)
{
	uint8_t buf[128], data[64];
	int fd = rig_connect(&rig);

	rig.mode = RIG_OPENS_LATE;
	greet(fd);
	say(fd, buf, put_option(buf, NBD_OPT_GO, data, put_go(data, "disk")));
	hear(fd, buf, sizeof(buf));
	cr_assert_eq(visit(1)->n, 1);
	cr_assert_eq(visit(0)->n, 0);
	expect_end(fd);
	cr_assert_eq(nbd_server_count(rig.server), 1);
	rig_open_now(&rig);
	cr_assert_eq(nbd_server_count(rig.server), 0);
	close(fd);
}
