/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the event that releases what a killed server left in the storage. */
#include <errno.h>

#include "clock.h"
#include "clt-sess.h"
#include "random-faults.h"

/* Ways to the server. */
static const char *const wires[WORLD_PATHS] = { "srv", "srv/1", "srv/2", "srv/3" };

static const char *wire(const struct random_faults *f)
{
	return wires[f->npaths > 1 ? sim_rand(f->npaths) : 0];
}

/* ---- the server and its storage ---- */

static void server_restart(const struct random_faults *f, const struct world_server_conf *conf)
{
	struct world_server_conf other = *conf;
	bool power = sim_chance(400);

	if (sim_chance(300)) {
		other.queue_depth = 1 + sim_rand(20);
		other.max_io_size = 4096 * (1 + sim_rand(16));
	}
	world_server_kill(f->w, power ? SIM_KILL_POWER : SIM_KILL_PROCESS);
	if (power)
		history_power_cut(f->h);
	else if (world_sync_was_cut(f->w))
		history_sync_cut(f->h);
	world_run_ms(f->w, sim_rand(500));
	sim_power_on("srv");
	world_server_start(f->w, &other);
}

static struct sim_event release_event;
static struct sim_disk *release_disk;

static void release_left(struct sim_event *ev)
{
	sim_disk_release(release_disk);
}

/* The server is killed while writes are in the storage, which ends these some time after the next
 * server was started. */
static void left_behind(const struct random_faults *f, const char *to, const char *other_way)
{
	release_disk = world_disk(f->w);
	sim_disk_hold(release_disk, RNBD_OP_WRITE, SIM_HOLD_BEFORE, 1 + sim_rand(4));
	world_run_ms(f->w, sim_rand(30));
	world_server_kill(f->w, SIM_KILL_PROCESS);
	if (world_sync_was_cut(f->w))
		history_sync_cut(f->h);
	sim_event_init(&release_event, release_left);
	sim_event_at(&release_event, sim_now_us() + sim_rand(3000) * 1000);
	world_server_start(f->w, &f->server);
	world_run_ms(f->w, 3000);
}

static void restart(const struct random_faults *f, const char *to, const char *other_way)
{
	server_restart(f, &f->server);
}

static void other_export(const struct random_faults *f, const char *to, const char *other_way)
{
	struct world_server_conf other = f->server;

	other.export_name = "other";
	server_restart(f, &other);
	world_run_ms(f->w, sim_rand(3000));
	server_restart(f, &f->server);
}

static void slow_storage(const struct random_faults *f, const char *to, const char *other_way)
{
	static const enum rnbd_io_op ops[] = { RNBD_OP_READ, RNBD_OP_WRITE, RNBD_OP_FLUSH,
					       RNBD_OP_EXTENTS };

	sim_disk_hold(world_disk(f->w), ops[sim_rand(ARRAY_SIZE(ops))],
		      sim_chance(500) ? SIM_HOLD_BEFORE : SIM_HOLD_AFTER, 1 + sim_rand(5));
	world_run_ms(f->w, sim_rand(50));
	if (sim_chance(500)) {
		sim_cut("clt", wire(f));
		world_run_ms(f->w, sim_rand(300));
	}
	sim_disk_release(world_disk(f->w));
}

/* Writes stay in the storage while their client is away, may lose its patience, and is back. */
static void stuck_writes(const struct random_faults *f, const char *to, const char *other_way)
{
	to = wire(f);
	sim_disk_hold(world_disk(f->w), RNBD_OP_WRITE, SIM_HOLD_BEFORE, 1 + sim_rand(4));
	world_run_ms(f->w, sim_rand(30));
	sim_drop("clt", to);
	sim_cut("clt", to);
	world_run_ms(f->w, sim_rand(4000));
	sim_heal("clt", to);
	world_run_ms(f->w, sim_rand(3000));
	sim_disk_release(world_disk(f->w));
}

/* ---- the network ---- */

/* Mostly short; at times longer than any heartbeat. */
static void world_goes_on(const struct random_faults *f)
{
	world_run_ms(f->w, sim_chance(100) ? 40000 : sim_rand(3000));
}

static void cut(const struct random_faults *f, const char *to, const char *other_way)
{
	sim_cut("clt", to);
}

static void cut_seen_here(const struct random_faults *f, const char *to, const char *other_way)
{
	sim_cut_seen_by("clt", to);
}

static void cut_seen_there(const struct random_faults *f, const char *to, const char *other_way)
{
	sim_cut_seen_by(to, "clt");
}

static void cut_later(const struct random_faults *f, const char *to, const char *other_way)
{
	sim_cut_at_message("clt", to, 1 + sim_rand(100));
}

static void drop(const struct random_faults *f, const char *to, const char *other_way)
{
	sim_drop("clt", to);
	world_goes_on(f);
	sim_heal("clt", to);
}

static void drop_oneway(const struct random_faults *f, const char *to, const char *other_way)
{
	if (sim_chance(500))
		sim_drop_oneway("clt", to);
	else
		sim_drop_oneway(to, "clt");
	world_run_ms(f->w, sim_rand(3000));
	sim_heal("clt", to);
}

static void freeze(const struct random_faults *f, const char *to, const char *other_way)
{
	sim_freeze(sim_chance(500) ? "clt" : "srv");
	world_goes_on(f);
	sim_thaw("clt");
	sim_thaw("srv");
}

static void slow_wire(const struct random_faults *f, const char *to, const char *other_way)
{
	sim_delay("clt", to, 10 + sim_rand(3000), sim_rand(5000));
}

static void double_connect(const struct random_faults *f, const char *to, const char *other_way)
{
	sim_duplicate_connect("clt", "srv");
	sim_cut("clt", to);
}

static void lose_device(const struct random_faults *f, const char *to, const char *other_way)
{
	const char *host = sim_rand(2) ? "srv" : "clt";

	sim_lose_device(host);
	world_goes_on(f);
	sim_give_device_back(host);
}

/* ---- several paths ---- */

/* The last way out goes some time after the first, and is back before the first. */
static void drop_two(const struct random_faults *f, const char *to, const char *other_way)
{
	sim_drop("clt", to);
	world_run_ms(f->w, sim_rand(3000));
	sim_drop("clt", other_way);
	world_run_ms(f->w, sim_rand(3000));
	sim_heal("clt", other_way);
	world_run_ms(f->w, sim_rand(3000));
	sim_heal("clt", to);
}

/* The old server's last client connection is not known to be dead. */
static void restart_unseen(const struct random_faults *f, const char *to, const char *other_way)
{
	sim_drop("clt", to);
	server_restart(f, &f->server);
	world_run_ms(f->w, sim_rand(3000));
	sim_heal("clt", to);
}

/* Some path is removed, and another between these addresses takes its place at once or later. */
static void path_by_hand(const struct random_faults *f, const char *to, const char *other_way)
{
	struct clt_sess *sess = &world_client_clt(f->client)->sess;
	struct sim_host *host = sim_host_find("clt");
	struct sim_place before = sim_enter(host, host->epoch);
	struct clt_path *path = sess->paths[sim_rand(sess->io.natts)];
	const struct clt_sess_addr addr = path->conf.addr;
	int r = path->removed ? -EBUSY : clt_paths_remove(sess, path);

	sim_leave(before);
	if (r)
		return;
	world_run_ms(f->w, sim_chance(500) ? 0 : sim_rand(1000));
	before = sim_enter(host, host->epoch);
	while ((r = clt_paths_add(sess, &addr, &path)) == -EAGAIN) {
		sim_leave(before);
		world_run_ms(f->w, 1);
		before = sim_enter(host, host->epoch);
	}
	CHECK(r == 0);
	clt_path_start(path);
	sim_leave(before);
}

/* Seeds mean what they meant as long as the order stays; faults of several paths come last. */
static void (*const faults[])(const struct random_faults *f, const char *to,
			      const char *other_way) = {
	cut, cut_seen_here, cut_seen_there, cut_later, drop, drop_oneway, freeze, restart,
	slow_storage, slow_wire, double_connect, other_export, stuck_writes, lose_device,
	left_behind, drop_two, restart_unseen, path_by_hand,
};
#define FAULTS_OF_PATHS 3u

void random_fault(const struct random_faults *f)
{
	unsigned n = ARRAY_SIZE(faults) - (f->npaths > 1 ? 0 : FAULTS_OF_PATHS);
	unsigned what = sim_rand(n);
	const char *to = wire(f), *other_way = wire(f);

	world_note(f->w, "fault %u", what);
	faults[what](f, to, other_way);
}

void random_heal(const struct random_faults *f)
{
	for (unsigned i = 0; i < f->npaths; i++) {
		sim_heal("clt", wires[i]);
		sim_cut_at_message("clt", wires[i], 0);
	}
}

/* ---- both ends ---- */

void random_server(struct world_server_conf *conf, unsigned npaths)
{
	static const enum srv_invalidate all[] = {
		SRV_INVALIDATE_AUTO, SRV_INVALIDATE_ALWAYS, SRV_INVALIDATE_COPY,
		SRV_INVALIDATE_NEVER,
	};

	*conf = (struct world_server_conf){
		.queue_depth = 1 + sim_rand(20),
		.max_io_size = 4096 * (1 + sim_rand(16)),
		.threads = 1 + sim_rand(3),
		.invalidate = all[sim_rand(ARRAY_SIZE(all))],
		.any_address = npaths > 1,
	};
}

void random_client(struct world_client_conf *conf, unsigned npaths, bool lenient)
{
	*conf = world_client_defaults;
	conf->connections = 1 + sim_rand(4);
	conf->io_timeout_ms = lenient ? sim_rand(3000) : CLOCK_NEVER;
	if (npaths == 1)
		return;
	conf->npaths = npaths;
	conf->policy = (enum clt_policy)sim_rand(CLT_NPOLICIES);
	if (sim_chance(300))
		return;
	conf->hb_interval_ms = 100 + sim_rand(900);
	conf->hb_misses = 1 + sim_rand(3);
}

void random_delays(struct world *w, unsigned npaths)
{
	for (unsigned i = 0; i < npaths; i++)
		sim_delay("clt", wires[i], 10 + sim_rand(2000), sim_rand(3000));
	sim_disk_delay(world_disk(w), sim_rand(2000), sim_rand(5000));
}
