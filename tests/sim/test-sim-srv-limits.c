/* SPDX-License-Identifier: BSD-3-Clause */
/* The limits of doc/limits.md that strangers and slow devices drive the server to: one below the
 * limit, at the limit, one beyond, and far beyond. */
#include <errno.h>
#include <string.h>

#include "raw-clt.h"
#include "srv-listen.h"
#include "srv-path.h"
#include "srv-rnbd-state.h"
#include "srv-sess.h"
#include "srv-state.h"
#include "world.h"

static struct world *w;
static struct raw_clt clt, other;

static void begin(const struct world_server_conf *conf)
{
	w = world_serve(conf);
}

static void open_clt(void)
{
	raw_clt_init(&clt, "clt", 1, 1, 2);
	CHECK(raw_clt_open(&clt, "sess", RNBD_ACCESS_RW) == 0);
}

/* WRITE and READ of @c work. */
static void works(struct raw_clt *c)
{
	memset(c->data[3], 0x5a, 4096);
	CHECK(raw_clt_io(c, 1, 3, RNBD_OP_WRITE, 8, 4096, false) == 0);
	memset(c->data[4], 0, 4096);
	CHECK(raw_clt_io(c, 1, 4, RNBD_OP_READ, 8, 4096, false) == 0);
	CHECK(!memcmp(c->data[3], c->data[4], 4096));
}

/* ---- memory and connections ---- */

/* How many of @n paths of one host get in. */
static unsigned paths_of_a_host(unsigned n, uint64_t max_memory, uint64_t *memory)
{
	static const char *const wires[] = { "srv", "srv/1", "srv/2", "srv/3" };
	static struct raw_clt in[12];
	unsigned nin = 0, i;

	CHECK(n <= ARRAY_SIZE(in));
	begin(SERVER(.any_address = true, .max_memory = max_memory));
	for (i = 0; i < n; i++) {
		raw_clt_init(&in[i], "clt", (uint8_t)(i + 1), (uint8_t)(i + 1), 2);
		in[i].path.dst = sim_addr(wires[i % ARRAY_SIZE(wires)], RTRS_PORT);
		if (raw_clt_connect(&in[i], 0) == 0)
			nin++;
		else
			CHECK(world_traced(w, "this host has reached its memory limit"));
	}
	*memory = world_server_srv(w)->memory / nin;
	/* Another host has its own. */
	raw_clt_init(&clt, "clt2", 100, 100, 2);
	CHECK(raw_clt_open(&clt, "sess", RNBD_ACCESS_RW) == 0);
	works(&clt);
	while (i)
		raw_clt_fini(&in[--i]);
	return nin;
}

/* CONF_HOST_MEMORY_SHARE */
SIM_TEST(memory_of_a_host)
{
	uint64_t one, share, same;

	CHECK(paths_of_a_host(1, 0, &one) == 1);
	share = 3 * one * CONF_HOST_MEMORY_SHARE;
	CHECK(paths_of_a_host(2, share, &same) == 2 && same == one);
	CHECK(paths_of_a_host(3, share, &same) == 3 && same == one);
	CHECK(paths_of_a_host(3, share - CONF_HOST_MEMORY_SHARE, &same) == 2);
	CHECK(paths_of_a_host(4, share, &same) == 3);
	CHECK(paths_of_a_host(12, share, &same) == 3);
}

/* As many connections more as other paths would have. */
static void with_connections(unsigned n)
{
	world_server_srv(w)->ncons += n;
}

/* --max-connections, at the first connection of a path and at a later one. */
static void connections_of_all(unsigned max_cons)
{
	static const unsigned left[] = { 3, 2, 1, 0 };

	begin(SERVER(.max_cons = max_cons));
	for (unsigned i = 0; i < ARRAY_SIZE(left); i++) {
		unsigned n = max_cons - left[i];
		int want = left[i] >= 2 ? 0 : -ENOMEM;

		raw_clt_init(&other, "clt", (uint8_t)(i + 1), (uint8_t)(i + 1), 2);
		with_connections(n);
		CHECK(raw_clt_open(&other, "sess", RNBD_ACCESS_RW) == want);
		if (!want)
			works(&other);
		CHECK(world_traced(w, "connection refused: too many connections, see "
				   "--max-connections (") == !!want);
		raw_clt_fini(&other);
		world_run_ms(w, 100);
		with_connections(-n);
	}
	/* What is left goes to others while the path is being set up. */
	for (unsigned n = 0; n < 4; n++) {
		raw_clt_init(&other, "clt", 100, 100, 2);
		CHECK(raw_clt_connect(&other, 0) == 0);
		with_connections(max_cons - 3 + n);
		CHECK(raw_clt_connect(&other, 1) == (n < 2 ? 0 : -ENOMEM));
		with_connections(-(max_cons - 3 + n));
		raw_clt_fini(&other);
		world_run_ms(w, 100);
	}
	open_clt();
	works(&clt);
}

SIM_TEST(connections_of_all)
{
	connections_of_all(CONF_MAX_CONS);
	connections_of_all(20);
}

/* ---- parked requests ---- */

#define PARKED_CONS 4u			/* of a raw client */
#define PARKED_ALL (4 * SRV_MAX_PARKED)

static struct raw_clt parked[PARKED_ALL / PARKED_CONS];

static struct hcon *parked_con(unsigned i)
{
	return &parked[i / PARKED_CONS].path.cons[i % PARKED_CONS];
}

/* The connection @i of the path that comes back. */
static void park(unsigned i)
{
	struct raw_clt *c = &parked[i / PARKED_CONS];
	struct rtrs_msg_conn_req m;

	if (i % PARKED_CONS == 0) {
		raw_clt_init(c, "clt", 1, 1, 2);
		c->path.cid_num = PARKED_ALL;
		c->path.recon_cnt = 2;
	}
	hpath_conn_req(&c->path, i, &m);
	hpath_connect_start(&c->path, i % PARKED_CONS, &m, sizeof(m));
}

/* @n connections wait for the former path, and all but those beyond the limit get in. */
static void park_and_let_in(unsigned n)
{
	struct world_server_conf conf = world_server_defaults;
	const unsigned in = n < SRV_MAX_PARKED ? n : SRV_MAX_PARKED;

	conf.queue_depth = 1;		/* memory is no limit */
	begin(&conf);
	open_clt();
	sim_flush_late("srv", 2000);
	for (unsigned i = 0; i < n; i++)
		park(i);
	world_run_ms(w, 1000);
	CHECK(world_server_srv(w)->nparked == in);
	for (unsigned i = 0; i < n; i++)
		CHECK((parked_con(i)->state == H_REFUSED) == (i >= in));
	CHECK(world_traced(w, "its former path is still closing") == (n > in));
	world_run_ms(w, 2000);
	CHECK(world_server_srv(w)->nparked == 0);
	for (unsigned i = 0; i < in; i++)
		CHECK(parked_con(i)->state == H_UP);
	sim_flush_late("srv", 0);
	for (unsigned i = 0; i < n; i += PARKED_CONS)
		raw_clt_fini(&parked[i / PARKED_CONS]);
}

/* SRV_MAX_PARKED */
SIM_TEST(parked_up_to_the_limit)
{
	park_and_let_in(SRV_MAX_PARKED - 1);
	park_and_let_in(SRV_MAX_PARKED);
	park_and_let_in(SRV_MAX_PARKED + 1);
	park_and_let_in(PARKED_ALL);
}

/* ---- times ---- */

static bool any(const void *arg, const struct srv_refused *r)
{
	return true;
}

/* The path of clt is down and drains for @ms; its client is back at once, or another one (@name)
 * wants the name of its session. */
static int come_back(uint32_t ms, bool name)
{
	int rc;

	begin(NULL);
	open_clt();
	sim_flush_late("srv", ms);
	raw_clt_init(&other, name ? "clt2" : "clt", name ? 2 : 1, name ? 2 : 1, 2);
	other.path.recon_cnt = 2;
	if (name) {
		CHECK(raw_clt_connect(&other, 0) == 0 && raw_clt_connect(&other, 1) == 0);
		sim_cut("clt", "srv");
		other.path.hears = true;
		rc = raw_clt_info(&other, "sess");
	} else {
		rc = raw_clt_open(&other, "sess", RNBD_ACCESS_RW);
		if (!rc)
			works(&other);
	}
	CHECK(!rc || !name || other.path.refusal == RTRS_REFUSES_NAME_CLOSING);
	CHECK(!rc || world_traced(w, name ? "path not set up: session name sess is still in use" :
				  "connection refused: its former path has not closed in time"));
	CHECK(world_server_srv(w)->refused[name ? SRV_REFUSED_IDENTITY : SRV_REFUSED_CONNECT] ==
	      !!rc);
	CHECK(!rc == !srv_log_last_refusal(world_server_srv(w), any, NULL));
	sim_flush_late("srv", 0);
	raw_clt_fini(&other);
	return rc;
}

/* SRV_PARK_TIMEOUT.  Everything is done within 20 ms of virtual time. */
SIM_TEST(former_path_that_closes_late)
{
	for (unsigned name = 0; name < 2; name++) {
		CHECK(come_back(SRV_PARK_TIMEOUT - 20, name) == 0);
		CHECK(come_back(SRV_PARK_TIMEOUT + 20, name) == -ECONNRESET);
		CHECK(come_back(4 * SRV_PARK_TIMEOUT, name) == -ECONNRESET);
	}
}

static struct sim_event release_event;

static void release(struct sim_event *ev)
{
	sim_disk_release(world_disk(w));
}

/* A write of clt is in the storage, for so long. */
static void write_for(uint64_t ms)
{
	begin(NULL);
	open_clt();
	sim_disk_hold(world_disk(w), RNBD_OP_WRITE, SIM_HOLD_BEFORE, 1);
	memset(clt.data[3], 0x33, 4096);
	raw_clt_io_start(&clt, 1, 3, RNBD_OP_WRITE, 0, 4096, false);
	world_run_ms(w, 10);
	CHECK(sim_disk_held(world_disk(w)) == 1);
	sim_event_init(&release_event, release);
	sim_event_at(&release_event, sim_now_us() + ms * 1000);
}

static void write_is_done(void)
{
	CHECK(sim_disk_content(world_disk(w))[0] == 0x33);
	CHECK(sim_disk_content(world_disk(w))[4095] == 0x33);
}

/* The session of the writer ends, and another one wants the device. */
static int open_behind_a_write(uint64_t ms, uint32_t features)
{
	int rc;

	write_for(ms);
	raw_clt_hang_up(&clt);
	raw_clt_init(&other, "clt2", 2, 2, 2);
	other.features = features;
	rc = raw_clt_open(&other, "next", RNBD_ACCESS_RW);
	if (!rc) {
		write_is_done();
		works(&other);
	}
	raw_clt_fini(&other);
	world_run_ms(w, ms);
	write_is_done();
	return rc;
}

/* SRV_OPEN_TIMEOUT */
SIM_TEST(open_behind_a_write)
{
	CHECK(open_behind_a_write(SRV_OPEN_TIMEOUT - 20, 0) == 0);
	CHECK(open_behind_a_write(SRV_OPEN_TIMEOUT + 20, 0) == -EPERM);
	CHECK(open_behind_a_write(4 * SRV_OPEN_TIMEOUT, 0) == -EPERM);
	CHECK(open_behind_a_write(4 * SRV_OPEN_TIMEOUT, RNBD_EXT_ALL & ~RNBD_EXT_REASON) == -EPERM);
	CHECK(open_behind_a_write(4 * SRV_OPEN_TIMEOUT, RNBD_EXT_ALL) ==
	      rnbd_refusal_to_wire(RNBD_REFUSES_CLOSING));
}

/* The server is told to end. */
static int answer_at_the_end(uint64_t ms)
{
	int rc;

	write_for(ms);
	world_server_stop(w);
	rc = clt.path.answers[3].n ? clt.path.answers[3].status : -ECONNRESET;
	CHECK(!rc == !world_traced(w, "shutting down, answers have not left in time"));
	write_is_done();
	return rc;
}

/* SRV_SHUTDOWN_TIMEOUT */
SIM_TEST(answers_at_the_end)
{
	CHECK(answer_at_the_end(SRV_SHUTDOWN_TIMEOUT - 10) == 0);
	CHECK(answer_at_the_end(SRV_SHUTDOWN_TIMEOUT + 10) == -ECONNRESET);
	CHECK(answer_at_the_end(4 * SRV_SHUTDOWN_TIMEOUT) == -ECONNRESET);
}

static struct srv *stopping;
static char listen_err[256];
static int listen_rc;

/* As a reload whose files were read before. */
static void listen_late(struct sim_event *ev)
{
	struct sim_host *host = sim_host_find("srv");
	struct sim_place before = sim_enter(host, host->epoch);

	listen_rc = srv_listen_add(stopping, &stopping->conf->listeners[0], listen_err,
				   sizeof(listen_err));
	sim_leave(before);
}

/* Or the listener outlives its connection manager. */
SIM_TEST(listens_no_more_at_the_end)
{
	static struct sim_event late;

	write_for(200);
	stopping = world_server_srv(w);
	sim_event_init(&late, listen_late);
	sim_event_at(&late, sim_now_us() + 100000);
	world_server_stop(w);
	CHECK(listen_rc == -ECANCELED && !strcmp(listen_err, "the server stops"));
}

/* ---- the service connection ---- */

/* RTRS_SERVICE_CON_DEPTH: so many receives, and fewer on a device that has fewer. */
SIM_TEST(receives_of_connection_0)
{
	uint8_t uuid[RTRS_UUID_LEN];	/* of clt's session, and of its path */
	static const struct { uint32_t device, recvs; } cases[] = {
		{ RTRS_SERVICE_CON_DEPTH, RTRS_SERVICE_CON_DEPTH - SRV_SPARE_RECVS - 1 },
		{ RTRS_SERVICE_CON_DEPTH + SRV_SPARE_RECVS, RTRS_SERVICE_CON_DEPTH - 1 },
		{ RTRS_SERVICE_CON_DEPTH + SRV_SPARE_RECVS + 1, RTRS_SERVICE_CON_DEPTH },
		{ 4 * RTRS_SERVICE_CON_DEPTH, RTRS_SERVICE_CON_DEPTH },
	};

	memset(uuid, 1, sizeof(uuid));
	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct srv_path *path;

		w = world_create(1);
		sim_offer_limits("srv", cases[i].device, 0);
		world_server_start(w, NULL);
		open_clt();
		path = srv_sess_find_path(srv_sess_find(world_server_srv(w), uuid), uuid);
		CHECK(path->service_recvs == cases[i].recvs);
		works(&clt);
	}
}
