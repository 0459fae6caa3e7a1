/* SPDX-License-Identifier: BSD-3-Clause */
/* Two paths of one session (doc/decisions.md D6): a request that was given up on one and sent again
 * over the other, with both copies on their way.  The client is made by hand (raw-clt.h): it gives
 * a path up and leaves it as it is, so that the server has nothing but the requests to judge by. */
#include <errno.h>
#include <string.h>

#include "history.h"
#include "raw-clt.h"
#include "world.h"

#define BUF 3
#define LEN 4096u

static struct world *w;
static struct raw_clt a, b;		/* on hosts clt and clt2 */

static const char given_up[] =
	"path down: its client has retried a request over another path";

static void open_path(struct raw_clt *c, const char *host, uint8_t uuid)
{
	raw_clt_init(c, host, uuid, 1, 2);
	CHECK(raw_clt_connect(c, 0) == 0 && raw_clt_connect(c, 1) == 0);
	CHECK(raw_clt_info(c, "sess") == 0);
}

static void begin(uint32_t features)
{
	w = world_serve(NULL);
	raw_clt_init(&a, "clt", 1, 1, 2);
	a.features = features;
	CHECK(raw_clt_open(&a, "sess", RNBD_ACCESS_RW) == 0);
	open_path(&b, "clt2", 2);
}

/* Begin a write of @fill to the place of all of them, under the chunk of all of them. */
static void write_start(struct raw_clt *c, uint32_t tag, uint8_t fill)
{
	c->tag = tag;
	memset(c->data[BUF], fill, LEN);
	raw_clt_io_start(c, 1, BUF, RNBD_OP_WRITE, 0, LEN, false);
}

static void write_done(struct raw_clt *c)
{
	CHECK(raw_clt_wait(c, BUF, 1000) && c->path.answers[BUF].status == 0);
}

static void write_one(struct raw_clt *c, uint32_t tag, uint8_t fill)
{
	write_start(c, tag, fill);
	write_done(c);
}

static void expect_content(uint8_t fill)
{
	const uint8_t *p = sim_disk_content(world_disk(w));

	for (unsigned i = 0; i < LEN; i++)
		CHECK(p[i] == fill);
}

/* ---- with tags ---- */

/* Storage is slow, A is given up, B's copy waits for its turn; then the chunk is used again. */
static void failover_to_b(uint32_t features)
{
	bool tags = features;

	begin(features);
	sim_disk_hold(world_disk(w), RNBD_OP_WRITE, SIM_HOLD_BEFORE, 1);
	write_start(&a, tags ? 1 : 0, 0x11);
	world_run_ms(w, 10);
	write_start(&b, tags ? 2 : 0, 0x11);
	world_run_ms(w, 10);
	CHECK(sim_disk_held(world_disk(w)) == 1 && sim_disk_inflight(world_disk(w)) == 1);
	CHECK(raw_clt_lost(&a) &&
	      world_traced(w, "srv sess/clt@srv: path down: its client has retried"));
	sim_disk_release(world_disk(w));
	write_done(&b);
	write_one(&b, tags ? 3 : 0, 0x22);
	world_run_ms(w, 100);
	CHECK(!a.path.answers[BUF].n && !raw_clt_lost(&b));
	expect_content(0x22);
}

SIM_TEST(failover) { failover_to_b(RNBD_EXT_TAG); }

/* What lay unread on A comes when B's copy has been answered, and the chunk was used again. */
static void late_copy(bool reuse)
{
	begin(RNBD_EXT_TAG);
	sim_drop("clt", "srv");
	write_start(&a, 7, 0x11);
	world_run_ms(w, 10);
	write_one(&b, 8, 0x11);
	if (reuse)
		write_one(&b, 9, 0x22);
	else	/* under another number, which tells nothing of the late one */
		CHECK(memset(b.data[4], 0x22, LEN) && (b.tag = 1) &&
		      raw_clt_io(&b, 1, 4, RNBD_OP_WRITE, 0, LEN, false) == 0);
	sim_heal("clt", "srv");
	world_run_ms(w, 100);
	CHECK(world_traced(w,
			   "srv sess/clt@srv: path down: connection 1: request in chunk 3 is older "
			      "than one of another path"));
	CHECK(raw_clt_lost(&a) && !a.path.answers[BUF].n && !raw_clt_lost(&b));
	expect_content(0x22);
}

SIM_TEST(late_copy)
{
	late_copy(false);
	late_copy(true);
}

/* It comes while its successor is in the storage, which is not to suffer for it. */
SIM_TEST(late_copy_behind_its_successor)
{
	begin(RNBD_EXT_TAG);
	sim_drop("clt", "srv");
	write_start(&a, UINT32_MAX, 0x11);
	world_run_ms(w, 10);
	sim_disk_hold(world_disk(w), RNBD_OP_WRITE, SIM_HOLD_BEFORE, 1);
	write_start(&b, 1, 0x22);
	world_run_ms(w, 10);
	sim_heal("clt", "srv");
	world_run_ms(w, 100);
	CHECK(sim_disk_inflight(world_disk(w)) == 1);
	sim_disk_release(world_disk(w));
	write_done(&b);
	world_run_ms(w, 100);
	CHECK(raw_clt_lost(&a) && !a.path.answers[BUF].n && !raw_clt_lost(&b));
	CHECK(!world_traced(w, given_up));
	expect_content(0x22);
}

static uint32_t open_device(struct raw_clt *c, uint32_t close_first)
{
	struct rnbd_dev_info dev;
	struct rnbd_msg_close m;
	struct rnbd_msg_open o;

	rnbd_close_encode(&m, close_first);
	raw_clt_submit(c, 0, 0, RTRS_DIR_WRITE, &m, sizeof(m), 0, false);
	CHECK(raw_clt_wait(c, 0, 1000) && c->path.answers[0].status == 0);
	CHECK(rnbd_open_encode(&o, "disk0", RNBD_ACCESS_RW) == 0);
	raw_clt_submit(c, 0, 0, RTRS_DIR_READ, &o, sizeof(o), sizeof(struct rnbd_msg_open_rsp),
		       false);
	CHECK(raw_clt_wait(c, 0, 1000) && c->path.answers[0].status == 0);
	CHECK(rnbd_open_rsp_decode(c->data[0], sizeof(struct rnbd_msg_open_rsp), &dev) == 0);
	return dev.device_id;
}

static int write_device(struct raw_clt *c, uint32_t id, uint8_t fill)
{
	struct rnbd_io io = {
		.device_id = id, .op = RNBD_OP_WRITE, .bi_size = LEN, .tag = ++c->tag,
	};
	struct rnbd_msg_io m;

	memset(c->data[4], fill, LEN);
	rnbd_io_encode(&m, &io);
	raw_clt_submit(c, 1, 4, RTRS_DIR_WRITE, &m, sizeof(m), LEN, false);
	CHECK(raw_clt_wait(c, 4, 1000));
	return c->path.answers[4].status;
}

/* A write and a CLOSE that were given up for good, not sent again: their client has closed the
 * device over another path and opened it again, and they come then. */
SIM_TEST(late_for_a_device_that_was_closed)
{
	struct rnbd_msg_close m;
	uint32_t id;

	begin(RNBD_EXT_TAG);
	sim_drop("clt", "srv");
	write_start(&a, 1, 0x11);
	rnbd_close_encode(&m, 0);
	raw_clt_submit(&a, 0, 0, RTRS_DIR_WRITE, &m, sizeof(m), 0, false);
	world_run_ms(w, 10);
	id = open_device(&b, 0);
	CHECK(write_device(&b, id, 0x22) == 0);
	sim_heal("clt", "srv");
	world_run_ms(w, 100);
	CHECK(a.path.answers[BUF].n && a.path.answers[BUF].status == -ENOTCONN);
	CHECK(a.path.answers[0].n && a.path.answers[0].status == 0);
	expect_content(0x22);
	CHECK(write_device(&b, id, 0x33) == 0);
	CHECK(write_device(&b, 0, 0x44) == -ENOTCONN);
	expect_content(0x33);
}

/* ---- without tags ---- */

SIM_TEST(failover_of_a_kernel) { failover_to_b(0); }

/* Whatever the padding holds. */
SIM_TEST(padding_of_a_kernel)
{
	begin(0);
	write_one(&a, 9, 0x11);
	write_one(&a, 5, 0x22);
	expect_content(0x22);
	write_one(&b, 1, 0x33);
	expect_content(0x33);
}

/* A client that says nothing of tags has none, whatever else it says. */
SIM_TEST(extension_without_tags)
{
	begin(RNBD_EXT_ALL & ~RNBD_EXT_TAG);
	write_one(&a, 9, 0x11);
	write_one(&b, 5, 0x22);
	expect_content(0x22);
}

#define LATE_STEPS 60u

/* The late copy cannot be told from its successor.  While that is in the storage the late one's
 * arrival makes it one that is not answered, and its client sends it again.  The storage is done
 * with the successor at any step before the late one's arrival or behind it. */
static bool kernels_late_copy(unsigned steps)
{
	bool seen;

	begin(0);
	sim_drop("clt", "srv");
	write_start(&a, 0, 0x11);
	world_run_ms(w, 10);
	sim_disk_hold(world_disk(w), RNBD_OP_WRITE, SIM_HOLD_AFTER, 1);
	write_start(&b, 0, 0x11);
	world_run_ms(w, 10);
	for (unsigned i = 0; i < LATE_STEPS; i++) {
		if (i == steps)
			sim_disk_release(world_disk(w));
		if (i == LATE_STEPS / 2)
			sim_heal("clt", "srv");
		sim_step(sim_now_us() + 1000);
	}
	world_run_ms(w, 100);
	seen = world_traced(w, "srv sess/clt2@srv: path down");
	CHECK(seen == !b.path.answers[BUF].n && seen == raw_clt_lost(&b));
	CHECK(!raw_clt_lost(&a) && a.path.answers[BUF].n);
	write_one(&a, 0, 0x22);
	expect_content(0x22);
	return seen;
}

SIM_TEST(kernels_late_copy)
{
	unsigned seen = 0;

	for (unsigned steps = 0; steps < LATE_STEPS; steps++)
		seen += kernels_late_copy(steps);
	CHECK(seen && seen < LATE_STEPS);	/* both cases were tried */
}

/* ---- at random ---- */

#define SECTORS (WORLD_DISK_SIZE / RNBD_SECTOR_SIZE)
#define AREA 12u			/* sectors in use, so that operations meet */
#define MAX_SECTORS 4u
#define OPS 60u
#define RELEASE_US 200000u

/* A permit: one request at a time. */
struct permit {
	struct history_op *op;		/* NULL: free */
	struct raw_clt *path;		/* the last one that it was sent over */
	bool read;
	unsigned sector, n;
	uint32_t tag;			/* grows with each sending */
	uint8_t data[MAX_SECTORS * RNBD_SECTOR_SIZE];
};

static struct permit permits[RAW_BUFS];
static struct world_server_conf server;
static struct sim_event release_event;
static struct history *h;

static struct raw_clt *other_path(const struct raw_clt *c)
{
	return c == &a ? &b : &a;
}

static void permit_send(struct permit *p, struct raw_clt *c)
{
	unsigned buf = (unsigned)(p - permits);

	p->path = c;
	c->tag = ++p->tag ? p->tag : ++p->tag;
	if (!p->read)
		memcpy(c->data[buf], p->data, p->n * RNBD_SECTOR_SIZE);
	raw_clt_io_start(c, sim_rand(2), buf, p->read ? RNBD_OP_READ : RNBD_OP_WRITE, p->sector,
			 p->n * RNBD_SECTOR_SIZE, false);
}

/* False: no sectors are free for it. */
static bool permit_begin(struct permit *p, struct raw_clt *c)
{
	p->read = sim_chance(300);
	p->sector = sim_rand(AREA);
	p->n = 1 + sim_rand(MAX_SECTORS);
	if (!p->read && !history_may_write(h, p->sector, p->n))
		return false;
	p->op = p->read ? history_read(h, p->sector, p->n) :
			  history_write(h, p->sector, p->n, false, p->data);
	permit_send(p, c);
	return true;
}

static void permit_take_answer(struct permit *p)
{
	unsigned buf = (unsigned)(p - permits);
	const struct hanswer *rsp = p->op ? &p->path->path.answers[buf] : NULL;
	const char *why;

	if (!rsp || !rsp->n)
		return;
	CHECK(rsp->status == 0);
	if (p->read) {
		why = history_read_end(p->op, 0, p->path->data[buf]);
		if (why)
			sim_test_failed("history", 0, why);
	} else {
		history_write_end(p->op, 0, false);
	}
	p->op = NULL;
}

/* What was sent over @c, again. */
static void send_again(struct raw_clt *c, struct raw_clt *to)
{
	for (unsigned i = 1; i < RAW_BUFS; i++) {
		if (permits[i].op && permits[i].path == c)
			permit_send(&permits[i], to);
	}
}

/* All of it again over the other path; nobody hangs up. */
static struct raw_clt *give_up(struct raw_clt *c)
{
	struct raw_clt *to = other_path(c);

	send_again(c, to);
	return to;
}

static void release(struct sim_event *ev)
{
	sim_disk_release(world_disk(w));
}

/* All of it again, over either path, to the next process of the server, while what the last one had
 * begun may be in the storage for some time. */
static struct raw_clt *give_up_server(struct raw_clt *c)
{
	struct raw_clt *to = sim_chance(500) ? c : other_path(c);

	world_server_kill(w, SIM_KILL_PROCESS);
	sim_event_at(&release_event, sim_now_us() + sim_rand(RELEASE_US));
	sim_heal(c == &a ? "clt" : "clt2", "srv");
	raw_clt_hang_up(&a);
	raw_clt_hang_up(&b);
	world_server_start(w, &server);
	a.path.recon_cnt++;
	b.path.recon_cnt++;
	CHECK(raw_clt_open(&a, "sess", RNBD_ACCESS_RW) == 0);
	CHECK(raw_clt_connect(&b, 0) == 0 && raw_clt_connect(&b, 1) == 0);
	CHECK(raw_clt_info(&b, "sess") == 0);
	send_again(c, to);
	return to;
}

/* The path that was given up, in whatever state, is made anew. */
static void renew(struct raw_clt *c)
{
	unsigned recon_cnt = c->path.recon_cnt + 1u;

	raw_clt_hang_up(c);
	c->path.recon_cnt = (uint16_t)recon_cnt;
	CHECK(raw_clt_connect(c, 0) == 0 && raw_clt_connect(c, 1) == 0);
	CHECK(raw_clt_info(c, "sess") == 0);
}

static bool all_answered(void *arg)
{
	bool all = true;

	(void)arg;
	for (unsigned i = 1; i < RAW_BUFS; i++) {
		permit_take_answer(&permits[i]);
		all &= !permits[i].op;
	}
	return all;
}

/* A round: @c is in use, some of what it is sent is held up, it is given up, and comes late. */
static struct raw_clt *random_round(struct raw_clt *c)
{
	const char *host = c == &a ? "clt" : "clt2";
	bool black = sim_chance(500);

	if (sim_chance(300))
		sim_disk_hold(world_disk(w), RNBD_OP_WRITE,
			      sim_chance(500) ? SIM_HOLD_BEFORE : SIM_HOLD_AFTER, 1 + sim_rand(3));
	for (unsigned i = 0; i < OPS; i++) {
		struct permit *p = &permits[1 + sim_rand(RAW_BUFS - 1)];

		if (black && i == OPS / 2)
			sim_drop_oneway(host, "srv");
		if (!p->op)
			permit_begin(p, c);
		sim_run_until(all_answered, NULL, sim_rand(3));
	}
	c = sim_chance(300) ? give_up_server(c) : give_up(c);
	for (unsigned i = 0; i < OPS; i++) {
		struct permit *p = &permits[1 + sim_rand(RAW_BUFS - 1)];

		if (i == OPS / 4)
			sim_disk_release(world_disk(w));
		if (i == OPS / 2)
			sim_heal(host, "srv");
		if (!p->op)
			permit_begin(p, c);
		sim_run_until(all_answered, NULL, sim_rand(3));
	}
	CHECK(sim_run_until(all_answered, NULL, 60000));
	CHECK(!raw_clt_lost(c));
	renew(other_path(c));
	return c;
}

static void random_seed(uint64_t seed)
{
	static const enum srv_invalidate all[] = {
		SRV_INVALIDATE_ALWAYS, SRV_INVALIDATE_COPY, SRV_INVALIDATE_NEVER,
	};
	struct raw_clt *c = &a;
	const char *why;

	w = world_create(seed);
	sim_shuffle(true);
	sim_event_init(&release_event, release);
	server = world_server_defaults;
	server.invalidate = all[sim_rand(ARRAY_SIZE(all))];
	server.threads = 1 + sim_rand(3);
	sim_delay("clt", "srv", 10 + sim_rand(500), sim_rand(1000));
	sim_delay("clt2", "srv", 10 + sim_rand(500), sim_rand(1000));
	sim_disk_delay(world_disk(w), sim_rand(500), sim_rand(2000));
	world_server_start(w, &server);
	raw_clt_init(&a, "clt", 1, 1, 2);
	a.features = RNBD_EXT_TAG;
	CHECK(raw_clt_open(&a, "sess", RNBD_ACCESS_RW) == 0);
	open_path(&b, "clt2", 2);
	memset(permits, 0, sizeof(permits));
	for (unsigned i = 1; i < RAW_BUFS; i++)
		permits[i].tag = 0u - sim_rand(8);
	h = history_create(SECTORS);
	for (unsigned rounds = 1 + sim_rand(3); rounds; rounds--)
		c = random_round(c);
	raw_clt_fini(&a);
	raw_clt_fini(&b);
	world_run_ms(w, 1000);
	why = history_check(h, sim_disk_content(world_disk(w)));
	if (why)
		sim_test_failed("history", 0, why);
	history_destroy(h);
	world_destroy(w);
}

/* SIM_SEEDS=N runs N seeds (100), from SIM_SEED on (1); sim-random.sh runs as many as of
 * test-sim-random. */
SIM_TEST(random) { sim_test_seeds("random ", 100, random_seed); }
