/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the hosts, the disk and the end of a world.  One thread.  There is one world at a time,
 * because virtual time, the log and the fabric are the process's own. */
#include <stdarg.h>
#include <string.h>

#include "raw-clt.h"
#include "srv-rnbd-state.h"
#include "trace.h"
#include "world-priv.h"

#define END_MS 120000			/* for what still has to time out after a test */

static struct world world;

/* In place of srv-ident.c: it is another boot after losing its memory. */
void srv_ident_boot(uint8_t id[SRV_IDENT_BOOT_LEN])
{
	unsigned place = world_place(sim_host()->name);

	memset(id, world.boot[place] + 0x80 * (int)place, SRV_IDENT_BOOT_LEN);
	if (!place && world.other_host)
		memset(id, 0xff, SRV_IDENT_BOOT_LEN);
}

uint64_t srv_ident_host(bool *lasts)
{
	*lasts = true;
	if (world_place(sim_host()->name))
		return 0x33333333;
	return world.other_host ? 0x22222222 : 0x11111111;
}

uint32_t srv_ident_instance(void)
{
	return ++world.instances;
}

static void world_end(void)
{
	if (world.disk)
		world_destroy(&world);
}

struct world *world_create(uint64_t seed)
{
	struct world *w = &world;
	struct sim_host *srv;

	world_end();
	sim_test_at_end(world_end);
	sim_init(seed);
	sim_fiber_forget_ids();
	srv = sim_host_add("srv", "10.0.0.2");
	sim_host_add_addr(srv, "10.0.1.2");
	sim_host_add_addr(srv, "10.0.2.2");
	sim_host_add_addr(srv, "10.0.3.2");
	sim_host_add_addr(sim_host_add("srv2", "10.0.0.4"), "10.0.1.4");
	sim_host_add("clt", "10.0.0.1");
	sim_host_add("clt2", "10.0.0.3");
	if (!fab_provider_find("sim"))
		fab_provider_register(&fab_sim);
	log_init(trace_sink, LOG_LEVEL_DEBUG);
	trace_reset();
	memset(w, 0, sizeof(*w));
	list_init(&w->servers);
	list_init(&w->clients);
	w->boot[0] = w->boot[1] = 1;
	for (unsigned i = 0; i < ARRAY_SIZE(w->state); i++)
		w->state[i] = (struct export_state)EXPORT_STATE_INIT;
	w->disk = sim_disk_create("disk0", WORLD_DISK_SIZE);
	return w;
}

static bool all_quiet(void *arg)
{
	struct world *w = arg;

	return world_servers_gone(w) && sim_conns() == 0 && !sim_disk_left(w->disk);
}

void world_destroy(struct world *w)
{
	struct world_client *c, *tmp;

	raw_clts_fini();
	sim_disk_release(w->disk);
	list_for_each_safe(c, tmp, &w->clients, link) {
		if (c->closer)
			world_client_reap(c);
		else
			world_client_stop(w, c);
	}
	if (world_server_runs(w))
		world_server_stop(w);
	if (world_server_runs_on(w, "srv2"))
		world_server_stop_on(w, "srv2");
	CHECK(sim_run_until(all_quiet, w, END_MS));
	world_servers_reap(w);
	CHECK(list_empty(&w->servers));
	CHECK(sim_keys() == 0);
	CHECK(sim_disk_inflight(w->disk) == 0);
	CHECK(sim_storage_mems() == 0);
	/* Messages to connections that are no more. */
	sim_net_fini();
	sim_run_ms(1000);
	sim_disk_destroy(w->disk);
	w->disk = NULL;
	trace_reset();
	sim_fini();
	log_init(NULL, LOG_LEVEL_INFO);
}

struct sim_disk *world_disk(struct world *w)
{
	return w->disk;
}

void world_run_ms(struct world *w, uint64_t ms)
{
	sim_run_ms(ms);
	world_servers_reap(w);
}

void world_note(struct world *w, const char *fmt, ...)
{
	char line[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	trace_line("---", line);
}

void world_forget(struct world *w)
{
	trace_reset();
	world_servers_forget(w);
}

void world_expect(struct world *w, const char *text)
{
	trace_expect(text);
}

bool world_traced(const struct world *w, const char *text)
{
	return strstr(trace_text(), text);
}
