/* SPDX-License-Identifier: BSD-3-Clause */
/* rtrs-nbd over the real client and server: an NBD client runs a script, whole, and cut at each
 * byte of what it says and of what it hears.  The history judges each answer, and what is on the
 * disk.  test-sim-nbd-random.c has faults on the other side. */
#include <errno.h>

#include "nbd-op.h"
#include "relay.h"
#include "sim-fiber.h"
#include "world-gate.h"

#define STEPS_MAX 12u
#define PATIENCE_MS 60000

struct step {
	enum nbd_cmd cmd;
	uint16_t flags;
	unsigned sector, n;
};

/* A script, and another that reads all that the first may have written, and writes it anew, so that
 * no doubt is left. */
struct script {
	const struct script *settles;	/* NULL: leaves no doubt itself */
	unsigned n;
	struct step steps[STEPS_MAX];
};

static const struct script settles_small = { NULL, 3, {
	{ NBD_CMD_READ, 0, 0, 16 },
	{ NBD_CMD_WRITE, 0, 0, 16 },
	{ NBD_CMD_FLUSH, 0, 0, 0 },
} };

/* All writes fit into a block of input, and so use their data there. */
static const struct script small = { &settles_small, 6, {
	{ NBD_CMD_WRITE, 0, 0, 1 },
	{ NBD_CMD_WRITE_ZEROES, NBD_CMD_FLAG_FUA, 4, 2 },
	{ NBD_CMD_TRIM, 0, 7, 2 },
	{ NBD_CMD_FLUSH, 0, 0, 0 },
	{ NBD_CMD_BLOCK_STATUS, 0, 0, 16 },
	{ NBD_CMD_READ, 0, 0, 1 },
} };

static const struct script settles_large = { NULL, 5, {
	{ NBD_CMD_READ, 0, 0, 96 },
	{ NBD_CMD_READ, 0, 96, 96 },
	{ NBD_CMD_WRITE, 0, 0, 96 },
	{ NBD_CMD_WRITE, 0, 96, 96 },
	{ NBD_CMD_FLUSH, 0, 0, 0 },
} };

/* The data of a write has memory of its own, which is made ahead for the second one. */
static const struct script large = { &settles_large, 6, {
	{ NBD_CMD_WRITE, 0, 32, 70 },
	{ NBD_CMD_WRITE, 0, 102, 70 },
	{ NBD_CMD_READ, 0, 0, 80 },
	{ NBD_CMD_READ, 0, 100, 80 },
	{ NBD_CMD_WRITE, NBD_CMD_FLAG_FUA, 172, 20 },
	{ NBD_CMD_READ, 0, 170, 22 },
} };

struct run {
	const struct script *script;
	enum { RUN_ONE_BY_ONE, RUN_AT_ONCE } pace;
	struct nbd_user by;
	struct sim_nbd nbd;
	struct sim_fiber *fiber;
	struct nbd_op ops[STEPS_MAX];
};

static struct world *w;
static struct world_client *clt;
static struct world_gate *gate;
static struct history *h;
static unsigned naccounts;		/* of the session, without the gate's */

/* ---- a run of the script ---- */

static bool has_status(const struct sim_nbd_conf *conf)
{
	return conf->headers != NBD_HEADERS_SIMPLE;
}

static bool step_start(struct run *r, unsigned i)
{
	const struct step *s = &r->script->steps[i];

	if (s->cmd == NBD_CMD_BLOCK_STATUS && !has_status(&r->nbd.conf))
		return false;
	CHECK(nbd_op_start(&r->ops[i], &r->by, s->cmd, s->flags, s->sector, s->n));
	return true;
}

static void run_script(void *arg)
{
	struct run *r = arg;
	bool started[STEPS_MAX];

	sim_fiber_wait(sim_nbd_opened, &r->nbd);
	for (unsigned i = 0; i < r->script->n; i++) {
		started[i] = step_start(r, i);
		if (started[i] && r->pace == RUN_ONE_BY_ONE)
			nbd_op_end(&r->ops[i]);
	}
	sim_nbd_disc(&r->nbd);
	for (unsigned i = 0; i < r->script->n; i++) {
		if (started[i] && r->pace == RUN_AT_ONCE)
			nbd_op_end(&r->ops[i]);
	}
}

static bool run_is_over(void *arg)
{
	struct run *r = arg;

	return sim_fiber_done(r->fiber) && sim_nbd_over(&r->nbd) && !world_gate_count(gate);
}

static void run_once(struct run *r, const struct sim_nbd_conf *conf)
{
	r->by = (struct nbd_user){ .nbd = &r->nbd, .h = h, .block = 1 };
	history_new_user(h, 0);
	world_gate_connect(gate, &r->nbd, conf);
	r->fiber = sim_fiber_start(run_script, r);
	CHECK(sim_run_until(run_is_over, r, PATIENCE_MS));
	sim_fiber_free(r->fiber);
}

/* Look what is there after a cut. */
static void run_settling(const struct script *script)
{
	static struct run r;

	r.script = script;
	run_once(&r, &sim_nbd_defaults);
	CHECK(r.nbd.stream.cause == SIM_STREAM_SERVER && r.nbd.disc);
	sim_nbd_fini(&r.nbd);
}

/* ---- worlds ---- */

static void begin_on(const struct world_server_conf *server)
{
	w = world_serve(server);
	clt = world_gate_client(w, &world_client_defaults);
	naccounts = atomic_load(&world_client_clt(clt)->sess.io.naccounts);
	gate = world_gate_start(clt, NBD_SERVER_MEMORY_MIN);
	h = history_create(WORLD_DISK_SIZE / RNBD_SECTOR_SIZE);
}

static void begin(void)
{
	begin_on(NULL);
}

static void end(void)
{
	const char *why;

	world_gate_stop(gate);
	CHECK(atomic_load(&world_client_clt(clt)->sess.io.naccounts) == naccounts);
	/* The gate does not wait until its clients have read all. */
	world_run_ms(w, 100);
	why = history_check(h, sim_disk_content(world_disk(w)));
	if (why)
		sim_test_failed("history", 0, why);
	history_destroy(h);
	world_destroy(w);
}

static struct sim_nbd_conf conf_of(enum nbd_headers headers)
{
	struct sim_nbd_conf conf = sim_nbd_defaults;

	conf.headers = headers;
	conf.status = has_status(&conf);
	return conf;
}

/* ---- tests ---- */

static struct run run;

/* Run the whole script.  Its stream has ended, and is not freed. */
static void run_whole(const struct sim_nbd_conf *conf)
{
	run_once(&run, conf);
	CHECK(run.nbd.stream.cause == SIM_STREAM_SERVER && run.nbd.size == WORLD_DISK_SIZE);
	for (unsigned i = 0; i < run.script->n; i++) {
		if (run.script->steps[i].cmd != NBD_CMD_BLOCK_STATUS || conf->status)
			CHECK(run.ops[i].req.fate == SIM_NBD_ANSWERED);
	}
}

SIM_TEST(script)
{
	static const struct script *const scripts[] = { &small, &large };

	begin();
	for (unsigned i = 0; i < ARRAY_SIZE(scripts) * 2 * 3; i++) {
		struct sim_nbd_conf conf = conf_of((enum nbd_headers)(i % 3));

		run.script = scripts[i / 6];
		run.pace = i / 3 % 2 ? RUN_AT_ONCE : RUN_ONE_BY_ONE;
		run_whole(&conf);
		sim_nbd_fini(&run.nbd);
	}
	CHECK(!world_traced(w, "export 'disk0': "));
	end();
}

/* NBD_OPT_EXPORT_NAME, for which the server's answer has no frame. */
SIM_TEST(export_name)
{
	struct sim_nbd_conf conf = sim_nbd_defaults;

	begin();
	conf.option = SIM_NBD_EXPORT_NAME;
	run.script = &small;
	run.pace = RUN_ONE_BY_ONE;
	run_whole(&conf);
	sim_nbd_fini(&run.nbd);
	end();
}

/* Which of the two streams is cut. */
enum cut {
	CUT_SENT,
	CUT_RECEIVED,
};

static void cut_at(const struct sim_nbd_conf *whole, enum cut cut, uint64_t at)
{
	struct sim_nbd_conf conf = *whole;

	if (cut == CUT_SENT)
		conf.stream.send_max = at;
	else
		conf.stream.receive_max = at;
	run_once(&run, &conf);
	CHECK((cut == CUT_SENT ? run.nbd.stream.sent : run.nbd.stream.received) == at);
	sim_nbd_fini(&run.nbd);
	run_settling(run.script->settles);
}

/* The client closes the stream behind each @every'th byte of it. */
static void cut_everywhere(const struct script *script, enum cut cut, uint64_t every)
{
	for (unsigned i = 0; i < 2 * 3; i++) {
		struct sim_nbd_conf conf = conf_of((enum nbd_headers)(i % 3));
		uint64_t len;

		begin();
		run.script = script;
		run.pace = i / 3 ? RUN_AT_ONCE : RUN_ONE_BY_ONE;
		run_whole(&conf);
		len = cut == CUT_SENT ? run.nbd.stream.sent : run.nbd.stream.received;
		sim_nbd_fini(&run.nbd);
		for (uint64_t at = 0; at <= len; at += every)
			cut_at(&conf, cut, at);
		end();
	}
}

SIM_TEST(cut_sent)
{
	cut_everywhere(&small, CUT_SENT, 1);
	cut_everywhere(&large, CUT_SENT, 509);
}

SIM_TEST(cut_received)
{
	cut_everywhere(&small, CUT_RECEIVED, 1);
	cut_everywhere(&large, CUT_RECEIVED, 509);
}

/* Start @op, which is @cmd, on @by's connection, and wait a moment. */
static void start_alone(struct nbd_op *op, struct nbd_user *by, enum nbd_cmd cmd, unsigned n)
{
	CHECK(nbd_op_start(op, by, cmd, 0, 0, n));
	world_run_ms(w, 100);
}

static void end_alone(void *op)
{
	nbd_op_end(op);
}

/* A FLUSH in flight when rtrs-nbd is stopped tells of a loss: the next rtrs-nbd knows of none. */
SIM_TEST(loss_while_stopping)
{
	static struct nbd_op write, flush;
	struct sim_nbd nbd;
	struct nbd_user by = { .nbd = &nbd, .user = 0, .block = 1 };
	struct sim_fiber *fibers[2];

	begin();
	by.h = h;
	world_gate_connect(gate, &nbd, &sim_nbd_defaults);
	CHECK(sim_run_until(sim_nbd_opened, &nbd, PATIENCE_MS));
	start_alone(&write, &by, NBD_CMD_WRITE, 8);
	fibers[0] = sim_fiber_start(end_alone, &write);
	world_run_ms(w, 1);
	CHECK(write.req.fate == SIM_NBD_ANSWERED);
	world_server_kill(w, SIM_KILL_POWER);
	history_power_cut(h);
	start_alone(&flush, &by, NBD_CMD_FLUSH, 0);
	fibers[1] = sim_fiber_start(end_alone, &flush);
	sim_power_on("srv");
	world_server_start(w, NULL);
	sim_nbd_excuse(&nbd);
	end();
	CHECK(flush.req.fate == SIM_NBD_ANSWERED && flush.req.status == -EIO);
	for (unsigned i = 0; i < ARRAY_SIZE(fibers); i++)
		sim_fiber_free(fibers[i]);
	sim_nbd_fini(&nbd);
}

/* FUA of a server without FUA is a FLUSH behind the write: a write that failed stays failed. */
SIM_TEST(failed_fua)
{
	static const struct { enum nbd_cmd cmd; enum rnbd_io_op op; const char *log; } cases[] = {
		{ NBD_CMD_WRITE, RNBD_OP_WRITE, "'disk0': write of 4096 bytes at 0: No space" },
		{ NBD_CMD_WRITE_ZEROES, RNBD_OP_WRITE_ZEROES, "'disk0': zero of 4096 bytes" },
		{ NBD_CMD_TRIM, RNBD_OP_DISCARD, "'disk0': trim of 4096 bytes" },
	};
	struct sim_nbd_req fast = { .cmd = NBD_CMD_WRITE_ZEROES, .len = 4096,
				    .flags = NBD_CMD_FLAG_FAST_ZERO | NBD_CMD_FLAG_NO_HOLE };
	struct sim_nbd_req reqs[ARRAY_SIZE(cases)];
	static uint8_t buf[4096];
	struct sim_nbd nbd;

	begin_on(SERVER(.no_fua = true));
	world_gate_connect(gate, &nbd, &sim_nbd_defaults);
	CHECK(sim_run_until(sim_nbd_opened, &nbd, PATIENCE_MS));
	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		reqs[i] = (struct sim_nbd_req){ .cmd = cases[i].cmd, .flags = NBD_CMD_FLAG_FUA,
						.len = sizeof(buf), .buf = buf };
		sim_disk_fail(world_disk(w), cases[i].op, -ENOSPC, 1);
		sim_nbd_start(&nbd, &reqs[i]);
		world_run_ms(w, 1000);
		CHECK(reqs[i].fate == SIM_NBD_ANSWERED && reqs[i].status == -ENOSPC);
		CHECK(world_traced(w, cases[i].log));
	}
	/* Zeroes that are to be written are not fast. */
	CHECK(nbd.flags & NBD_FLAG_SEND_FAST_ZERO);
	sim_nbd_start(&nbd, &fast);
	world_run_ms(w, 10);
	CHECK(fast.fate == SIM_NBD_ANSWERED && fast.status == -EOPNOTSUPP);
	sim_nbd_disc(&nbd);
	CHECK(sim_run_until(sim_nbd_over, &nbd, PATIENCE_MS));
	end();
	sim_nbd_fini(&nbd);
}

/* The server does not have the export. */
SIM_TEST(refused)
{
	struct sim_nbd_conf conf = sim_nbd_defaults;
	struct sim_nbd nbd;

	begin();
	conf.export_name = "other";
	world_gate_connect(gate, &nbd, &conf);
	world_run_ms(w, 1000);
	CHECK(nbd.refused == NBD_REP_ERR_UNKNOWN);
	sim_nbd_excuse(&nbd);
	end();
	sim_nbd_fini(&nbd);
}

/* A relay that is read-only says so of each export. */
SIM_TEST(readonly)
{
	static struct clt_conf conf = { .server = "srv" };
	static struct nbd_export export;
	struct relay relay;
	void *handle;

	begin();
	for (unsigned ro = 0; ro < 2; ro++) {
		relay_init(&relay, NULL, world_client_clt(clt), &conf, ro);
		handle = relay_handle_create(&relay, world_client_handle(clt)->dev);
		CHECK(!strcmp(relay_mode(handle), ro ? "ro" : "rw"));
		relay_backend.info(handle, &export);
		CHECK(!(export.flags & NBD_FLAG_READ_ONLY) == !ro);
		relay_handle_destroy(handle);
	}
	end();
}
