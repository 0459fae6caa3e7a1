/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices that offer memory windows and cannot use them, at either end: who left the choice to us
 * gets another protection after a reconnect, and one line says why; who asked for windows is told
 * which device cannot do what. */
#include <string.h>

#include "srv-state.h"
#include "trace.h"
#include "world.h"
#include "world-priv.h"

static struct world *w;
static struct world_client *c;

static unsigned lines(const char *text)
{
	const char *s = trace_text();
	unsigned n = 0;

	while ((s = strstr(s, text))) {
		s += strlen(text);
		n++;
	}
	return n;
}

/* @type_2: the client's device has windows of both types, else only of type 1. */
static void start(const char *broken, enum sim_mw_fault fault, bool type_2,
		  enum srv_invalidate invalidate, enum clt_registration registration)
{
	sim_offer_windows(true, type_2);
	w = world_create(1);
	sim_break_windows(broken, fault);
	world_server_start(w, SERVER(.invalidate = invalidate));
	c = world_client_start(w, CLIENT(.registration = registration));
}

static struct clt_attempt *att(void)
{
	return &world_client_clt(c)->sess.paths[0]->att;
}

/* It is opened by the one or two reconnects that it takes to learn, and is not lost any more. */
static void works(unsigned lost)
{
	CHECK(world_wait_open(c, 5000) <= 0);
	CHECK(world_client_opened(c) == 0);
	CHECK(world_write(c, 0, 65536, 0x21) == 0);
	CHECK(world_read(c, 0, 65536, 0x21) == 0);
	CHECK(world_client_clt(c)->sess.paths[0]->attempts == lost + 1);
	world_run_ms(w, 20000);
	CHECK(world_client_clt(c)->sess.paths[0]->attempts == lost + 1 && clt_attempt_is_up(att()));
}

static const struct {
	enum sim_mw_fault fault;
	bool type_2;
	unsigned lost;
	const char *line;
} auto_cases[] = {
	{ SIM_MW_NO_BIND, false, 1,
	  "device clt-nic offers memory windows of type 1 and refuses to bind them: "
	  "they are not used any more" },
	{ SIM_MW_NO_BIND, true, 2,
	  "device clt-nic offers memory windows of type 2B and refuses to bind them: "
	  "they are not used any more" },
	{ SIM_MW_NO_UNBIND, false, 1,
	  "device clt-nic offers memory windows of type 1 and refuses to take them away: "
	  "they are not used" },
};

SIM_TEST(client_auto)
{
	for (unsigned i = 0; i < ARRAY_SIZE(auto_cases); i++) {
		start("clt", auto_cases[i].fault, auto_cases[i].type_2, SRV_INVALIDATE_COPY,
		      CLT_REG_AUTO);
		works(auto_cases[i].lost);
		CHECK(att()->mode == FRWR_STATIC);
		CHECK(lines(auto_cases[i].line) == 1);
		CHECK(lines("they are not used any more") == auto_cases[i].lost);
	}
}

/* Windows of type 2 are not bound to nothing. */
SIM_TEST(client_type_2_is_not_concerned)
{
	start("clt", SIM_MW_NO_UNBIND, true, SRV_INVALIDATE_COPY, CLT_REG_AUTO);
	works(0);
	CHECK(att()->mode == FRWR_MW2);
}

SIM_TEST(client_window)
{
	start("clt", SIM_MW_NO_BIND, true, SRV_INVALIDATE_COPY, CLT_REG_WINDOW);
	world_run_ms(w, 20000);
	CHECK(world_client_opened(c) == 1);
	CHECK(lines("cannot connect: connection 0: registration=window: "
		    "device clt-nic offers memory "
		    "windows of type 1 and refuses to bind them; use registration=static") == 1);
}

SIM_TEST(server_auto)
{
	static const struct {
		enum sim_mw_fault fault;
		const char *line;
	} cases[] = {
		{ SIM_MW_NO_BIND,
		  "device srv-nic offers memory windows of type 1 and refuses to bind them: "
				  "they are not used any more" },
		{ SIM_MW_NO_UNBIND,
		  "device srv-nic offers memory windows of type 1 and refuses to take them "
				    "away: they are not used any more" },
	};

	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		start("srv", cases[i].fault, true, SRV_INVALIDATE_AUTO, CLT_REG_STATIC);
		works(1);
		CHECK(lines(cases[i].line) == 1);
		CHECK(lines("requests over sim: invalidate is copy: device srv-nic offers") == 1);
	}
}

SIM_TEST(server_always)
{
	start("srv", SIM_MW_NO_BIND, true, SRV_INVALIDATE_ALWAYS, CLT_REG_STATIC);
	world_run_ms(w, 20000);
	CHECK(world_client_opened(c) == 1);
	CHECK(lines("cannot make a path: --invalidate=always: "
		    "device srv-nic offers memory windows of type 1 "
		    "and refuses to bind them; auto and copy need none") >= 1);
	CHECK(lines("cannot connect: connection 0 was refused: Operation not supported") == 1);
}

/* Both ends at once. */
SIM_TEST(both)
{
	start("srv", SIM_MW_NO_BIND, true, SRV_INVALIDATE_AUTO, CLT_REG_AUTO);
	sim_break_windows("clt", SIM_MW_NO_BIND);
	works(3);
	CHECK(att()->mode == FRWR_STATIC);
}

struct opener {
	struct dev_open_req req;
	bool ended;
};

static void opener_done(struct dev_open_req *req)
{
	container_of(req, struct opener, req)->ended = true;
}

static bool opener_ended(void *arg)
{
	return ((struct opener *)arg)->ended;
}

/* A message whose answer has data has a window of its own, while all permits are those of READs
 * with theirs. */
SIM_TEST(message_beside_all_reads)
{
	struct opener o = { .req = { .name = "disk0", .mode = RNBD_ACCESS_RW,
				     .done = opener_done } };
	struct world_io *io[64];
	unsigned n;

	for (unsigned type_2 = 0; type_2 < 2; type_2++) {
		start("clt", SIM_MW_WORKS, type_2, SRV_INVALIDATE_COPY, CLT_REG_WINDOW);
		works(0);
		n = att()->depth - 1;		/* the first is for messages */
		CHECK(n <= ARRAY_SIZE(io));
		sim_disk_hold(world_disk(w), RNBD_OP_READ, SIM_HOLD_BEFORE, n);
		world_ios_start(c, RNBD_OP_READ, io, n, 0);
		world_run_ms(w, 20);
		CHECK(sim_disk_held(world_disk(w)) == n);
		sim_disk_resize(world_disk(w), 2 * WORLD_DISK_SIZE);
		o.ended = false;
		dev_open_start(world_client_clt(c), &o.req);
		CHECK(sim_run_until(opener_ended, &o, 1000) && !o.req.status);
		CHECK(dev_size(o.req.dev) == 2 * WORLD_DISK_SIZE);
		dev_close(o.req.dev);
		sim_disk_release(world_disk(w));
		for (unsigned i = 0; i < n; i++)
			CHECK(world_io_end(io[i], i < 16 ? 0x21 : 0, 1000) == 0);
	}
}

int main(int argc, char **argv)
{
	sim_offer_local_dma_lkey(false);
	sim_offer_rereg(false);
	return sim_test_main(argc, argv);
}
