/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing.  A fault ends before the next one begins, except of the network between clients and
 * servers, which share_heal() mends. */
#include <string.h>

#include "share-faults.h"

#define ADDRS 2				/* of each server */

static const char *const hosts[WORLD_SERVERS] = { "srv", "srv2" };
static const char *const wires[WORLD_SERVERS][ADDRS] = { { "srv", "srv/1" },
							 { "srv2", "srv2/1" } };
static const char *const clients[] = { "clt", "clt2" };

static const char *client(void)
{
	return clients[sim_chance(800) ? 0 : 1];
}

/* Mostly some time in which a client gives its paths up; at times much longer. */
static void world_goes_on(const struct share_faults *f)
{
	world_run_ms(f->w, sim_chance(100) ? 20000 + sim_rand(10000) : sim_rand(5000));
}

/* ---- the servers ---- */

void share_start(struct share_faults *f, const char *host)
{
	sim_power_on(host);
	world_server_start(f->w, &f->server[!strcmp(host, hosts[1])]);
}

static void kill_server(struct share_faults *f, unsigned n)
{
	world_server_kill_on(f->w, hosts[n], sim_chance(500) ? SIM_KILL_POWER : SIM_KILL_PROCESS);
	f->restarts++;
	world_goes_on(f);
	share_start(f, hosts[n]);
}

static void stop_server(struct share_faults *f, unsigned n)
{
	world_server_stop_on(f->w, hosts[n]);
	sim_share_ended(sim_disk_share(world_disk(f->w)), hosts[n]);
	f->restarts++;
	world_run_ms(f->w, sim_rand(3000));
	share_start(f, hosts[n]);
}

/* The server stops with requests in its memory, and goes on with them. */
static void freeze_server(struct share_faults *f, unsigned n)
{
	sim_freeze(hosts[n]);
	world_run_ms(f->w, 1000 + (sim_chance(200) ? sim_rand(29000) : sim_rand(5000)));
	sim_thaw(hosts[n]);
}

/* The servers are frozen in turns, so each may be fenced before it goes on. */
static void freeze_both(struct share_faults *f, unsigned n)
{
	sim_freeze(hosts[n]);
	world_run_ms(f->w, 1000 + sim_rand(8000));
	sim_freeze(hosts[!n]);
	world_run_ms(f->w, sim_rand(1000));
	sim_thaw(hosts[n]);
	world_run_ms(f->w, 1000 + sim_rand(8000));
	sim_thaw(hosts[!n]);
}

/* ---- the disk and its lock ---- */

static void hold(const struct share_faults *f)
{
	static const enum rnbd_io_op ops[] = { RNBD_OP_READ, RNBD_OP_WRITE, RNBD_OP_WRITE,
					       RNBD_OP_FLUSH };

	sim_disk_hold(world_disk(f->w), ops[sim_rand(ARRAY_SIZE(ops))],
		      sim_chance(700) ? SIM_HOLD_BEFORE : SIM_HOLD_AFTER, 1 + sim_rand(6));
}

static void slow_disk(struct share_faults *f, unsigned n)
{
	hold(f);
	world_run_ms(f->w, sim_rand(3000));
	sim_disk_release(world_disk(f->w));
}

/* Requests are under way to the disk, and their server cannot be reached: another one takes over
 * before they arrive, or behind that. */
static void slow_disk_and_drop(struct share_faults *f, unsigned n)
{
	const char *clt = client();

	hold(f);
	world_run_ms(f->w, sim_rand(50));
	for (unsigned i = 0; i < ADDRS; i++)
		sim_drop(clt, wires[n][i]);
	world_run_ms(f->w, sim_rand(10000));
	sim_disk_release(world_disk(f->w));
	world_run_ms(f->w, sim_rand(3000));
	for (unsigned i = 0; i < ADDRS; i++)
		sim_heal(clt, wires[n][i]);
}

static void slow_disk_and_freeze(struct share_faults *f, unsigned n)
{
	hold(f);
	world_run_ms(f->w, sim_rand(50));
	sim_freeze(hosts[n]);
	world_run_ms(f->w, sim_rand(5000));
	sim_disk_release(world_disk(f->w));
	world_run_ms(f->w, sim_rand(5000));
	sim_thaw(hosts[n]);
}

static void slow_disk_and_kill(struct share_faults *f, unsigned n)
{
	hold(f);
	world_run_ms(f->w, sim_rand(50));
	world_server_kill_on(f->w, hosts[n], SIM_KILL_PROCESS);
	f->restarts++;
	world_run_ms(f->w, sim_rand(5000));
	sim_disk_release(world_disk(f->w));
	share_start(f, hosts[n]);
}

static void not_opened_anew(struct share_faults *f, unsigned n)
{
	sim_disk_fail_renew(world_disk(f->w), 1 + sim_rand(3));
}

static void fenced_by_the_cluster(struct share_faults *f, unsigned n)
{
	sim_share_fence(sim_disk_share(world_disk(f->w)), hosts[n]);
}

static void late_lock(struct share_faults *f, unsigned n)
{
	sim_share_be_late(sim_disk_share(world_disk(f->w)), sim_rand(3000));
}

/* ---- the network ---- */

static void drop_server(struct share_faults *f, unsigned n)
{
	const char *clt = client();

	for (unsigned i = 0; i < ADDRS; i++)
		sim_drop(clt, wires[n][i]);
	world_goes_on(f);
	for (unsigned i = 0; i < ADDRS; i++)
		sim_heal(clt, wires[n][i]);
}

static void drop_oneway(struct share_faults *f, unsigned n)
{
	const char *clt = client();
	bool there = sim_chance(500);

	for (unsigned i = 0; i < ADDRS; i++)
		sim_drop_oneway(there ? clt : wires[n][i], there ? wires[n][i] : clt);
	world_goes_on(f);
	for (unsigned i = 0; i < ADDRS; i++)
		sim_heal(clt, wires[n][i]);
}

static void drop_wire(struct share_faults *f, unsigned n)
{
	const char *clt = client(), *wire = wires[n][sim_rand(ADDRS)];

	sim_drop(clt, wire);
	world_goes_on(f);
	sim_heal(clt, wire);
}

static void cut(struct share_faults *f, unsigned n)
{
	sim_cut(client(), wires[n][sim_rand(ADDRS)]);
}

static void cut_seen_by_one(struct share_faults *f, unsigned n)
{
	const char *clt = client(), *wire = wires[n][sim_rand(ADDRS)];

	if (sim_chance(500))
		sim_cut_seen_by(clt, wire);
	else
		sim_cut_seen_by(wire, clt);
}

static void freeze_client(struct share_faults *f, unsigned n)
{
	const char *clt = client();

	sim_freeze(clt);
	world_goes_on(f);
	sim_thaw(clt);
}

static void (*const faults[])(struct share_faults *f, unsigned n) = {
	kill_server, stop_server, freeze_server, freeze_server, freeze_both, slow_disk,
	slow_disk_and_drop, slow_disk_and_freeze, slow_disk_and_kill, not_opened_anew, late_lock,
	fenced_by_the_cluster,
	drop_server, drop_server, drop_oneway, drop_wire, cut, cut_seen_by_one, freeze_client,
};

void share_fault(struct share_faults *f)
{
	unsigned what = sim_rand(ARRAY_SIZE(faults)), n = sim_rand(WORLD_SERVERS);

	world_note(f->w, "fault %u of %s", what, hosts[n]);
	faults[what](f, n);
}

void share_heal(struct share_faults *f)
{
	for (unsigned c = 0; c < ARRAY_SIZE(clients); c++) {
		for (unsigned n = 0; n < WORLD_SERVERS * ADDRS; n++)
			sim_heal(clients[c], wires[n / ADDRS][n % ADDRS]);
	}
}

/* ---- both ends ---- */

void share_random(struct share_faults *f)
{
	for (unsigned n = 0; n < WORLD_SERVERS; n++) {
		f->server[n] = (struct world_server_conf){
			.host = hosts[n],
			.shared = true,
			.queue_depth = 1 + sim_rand(20),
			.max_io_size = 4096 * (1 + sim_rand(16)),
			.threads = 1 + sim_rand(3),
			.invalidate = sim_chance(500) ? SRV_INVALIDATE_COPY : SRV_INVALIDATE_NEVER,
			.any_address = true,
			.hb_interval_ms = sim_chance(500) ? 200 + sim_rand(2000) : 0,
		};
		for (unsigned i = 0; i < ADDRS; i++) {
			sim_delay("clt", wires[n][i], 10 + sim_rand(2000), sim_rand(3000));
			sim_delay("clt2", wires[n][i], 10 + sim_rand(2000), sim_rand(3000));
		}
	}
	sim_disk_delay(world_disk(f->w), sim_rand(2000), sim_rand(8000));
	sim_share_be_late(sim_disk_share(world_disk(f->w)), sim_rand(500));
}
