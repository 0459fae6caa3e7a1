/* SPDX-License-Identifier: BSD-3-Clause */
/* Guests of the NBD engine: which connection goes when one more comes. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "nbd-by-hand.h"
#include "nbd-priv.h"
#include "unit.h"

enum { ALL = 8, NET = 3 };		/* limits; the engine's own are shared out by the program */

static void begin(void)
{
	by_hand_begin();
	rig.server->guests_max = ALL;
	rig.server->net_guests_max = NET;
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
	cr_assert(strstr(last_line, "too many have opened no export"), "%s", last_line);
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

/* The newcomer's net has one guest only: the crowd gives way, whoever is older. */
Test(guest, oldest_of_the_crowd_goes)
{
	int a[2], b[NET], c[NET], d;

	connect_from(1, a, 2);
	connect_from(2, b, NET);
	connect_from(3, c, NET);
	cr_assert_eq(nlines, 0);
	connect_from(4, &d, 1);
	expect_driven_out(b[0]);
	cr_assert(stays(a[0]) && stays(b[1]) && stays(c[0]) && stays(d));
	cr_assert_eq(rig.server->nguests, ALL);
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
	cr_assert_eq(rig.server->nguests, 0);
	connect_from(1, fds, NET);
	leave_all(fds, NET);
	cr_assert_eq(rig.server->nguests, 0);
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
