/* SPDX-License-Identifier: BSD-3-Clause */
/* The well-behaved client that must be served after, and during, whatever others do. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "hostile.h"

#define GOOD_LEN 2048u

void good_io(struct hpath *p)
{
	struct rnbd_io io = { .device_id = p->dev.device_id, .op = RNBD_OP_WRITE,
			      .flags = RNBD_F_SYNC, .bi_size = GOOD_LEN };
	uint8_t data[GOOD_LEN];
	uint32_t place;

	expect(getrandom(data, sizeof(data), 0) == (ssize_t)sizeof(data));
	memcpy(&place, data, sizeof(place));
	io.sector = place % (p->dev.nsectors - GOOD_LEN / RNBD_SECTOR_SIZE + 1);
	for (unsigned cid = 1; cid < p->cid_num; cid++) {
		uint32_t buf_id = p->geom.queue_depth - cid;

		io.op = RNBD_OP_WRITE;
		data[0] = (uint8_t)cid;
		expect_outcome(hpath_io(p, cid, buf_id, &io, data), 0);
		io.op = RNBD_OP_FLUSH;
		expect_outcome(hpath_io(p, cid, buf_id, &io, NULL), 0);
		io.op = RNBD_OP_READ;
		memset(p->result, 0xee, GOOD_LEN + 1);
		expect_outcome(hpath_io(p, cid, buf_id, &io, NULL), 0);
		if (memcmp(p->result, data, GOOD_LEN))
			die("other data than was written came back");
		expect(p->result[GOOD_LEN] == 0xee);
	}
}

/* hpath_up().  The server may not have heard yet of the end of half-open paths of this host, and
 * then has no room for one more. */
static void good_up(struct hpath *p)
{
	uint64_t deadline = hdeadline();
	int status;

	while ((status = hpath_connect(p, 0)) == -ENOMEM && hnow_ms() < deadline) {
		hpath_reset(p);
		poll(NULL, 0, 5);
	}
	expect_outcome(status, 0);
	for (unsigned cid = 1; cid < p->cid_num; cid++)
		expect_outcome(hpath_connect(p, cid), 0);
	expect_outcome(hpath_info(p), 0);
}

void good_client(void)
{
	struct rnbd_msg_close m;
	struct hreq r = { .usr = &m, .usr_len = sizeof(m) };
	struct hpath *p = hpath_new();

	p->cid_num = 3;
	good_up(p);
	expect_outcome(hpath_sess_info(p), 0);
	expect_outcome(hpath_open(p, "good", RNBD_ACCESS_RW), 0);
	good_io(p);
	rnbd_close_encode(&m, p->dev.device_id);
	expect_outcome(hreq_do(p, &r), 0);
	hpath_close(p);
}
