/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns simulated servers: in place of main.c, with the reactors of the simulation.  A server that
 * was killed is a ghost: cut off from network and disk, it is shut down in good order behind the
 * scenes so that its memory comes back. */
#include <assert.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apply.h"
#include "conf.h"
#include "export-ring.h"
#include "exports.h"
#include "sim-loop.h"
#include "srv-export.h"
#include "srv-open.h"
#include "srv-state.h"
#include "srv-storage.h"
#include "world-priv.h"

const struct world_server_conf world_server_defaults = { WORLD_SERVER_DEFAULTS };

#define LOCK_MS 60000			/* no test holds a request for so long */

struct world_server {
	struct list link;
	struct sim_host *host;
	unsigned epoch;
	struct srv_conf conf;
	struct exports exports;
	struct export *ex;
	struct conf_listener listen;
	struct reactor **reactors;
	unsigned nreactors;
	struct srv *srv;
	struct export_life life;
	struct apply apply;
	struct srv_conf served;		/* conf, and the exports of the last plan */
	bool shared;
	bool shut;
	struct sim_fiber *closer;
};

unsigned world_place(const char *host)
{
	return host && !strcmp(host, "srv2");
}

static const char *host_of(const struct world_server_conf *conf)
{
	return conf && conf->host ? conf->host : "srv";
}

/* Give @conf the @n @exports, and none that it had. */
static void conf_set_exports(struct srv_conf *conf, const struct conf_export *exports, unsigned n)
{
	char err[256];

	conf->exports = NULL;
	conf->nexports = 0;
	conf->by_name = NULL;
	for (unsigned i = 0; i < n; i++) {
		static struct conf_export ex;

		ex = exports[i];
		CHECK(conf_put_export(conf, &ex, NULL, err, sizeof(err)) == 0);
	}
}

static void export_init(struct world_server *s, const struct world_server_conf *conf,
			struct sim_disk *d, struct export_state *state)
{
	uint32_t nsectors = (uint32_t)(sim_disk_size(d) / RNBD_SECTOR_SIZE);
	static struct conf_export described;
	char err[256];
	struct export *ex;

	exports_init(&s->exports, s->conf.threads + 1);
	s->shared = conf->shared;
	described.spec = (struct export_spec){
		.name = conf->export_name ? conf->export_name : "disk0",
		.path = conf->disk ? conf->disk : "disk0",
		.shared = conf->shared,
	};
	s->served = s->conf;
	conf_set_exports(&s->served, &described, 1);
	CHECK(exports_add(&s->exports, &s->served.exports[0]->spec, err, sizeof(err)) == 0);
	ex = s->ex = list_entry(s->exports.list.next, struct export, link);
	atomic_store(&ex->store->state, state);
	ex->direct = conf->direct || conf->shared;
	ex->geometry = (struct rnbd_dev_info){
		.max_hw_sectors = s->conf.max_io_size / RNBD_SECTOR_SIZE,
		.max_write_zeroes_sectors = nsectors,
		.max_discard_sectors = nsectors,
		.discard_granularity = RNBD_SECTOR_SIZE,
		.physical_block_size = RNBD_SECTOR_SIZE,
		.logical_block_size = conf->block_size ? conf->block_size : RNBD_SECTOR_SIZE,
		.max_segments = 128,
		.fua = !conf->no_fua,
		.writeback = !conf->write_through && !conf->shared,
	};
}

static void conf_init(struct world_server *s, const struct world_server_conf *conf)
{
	s->listen = (struct conf_listener){ .addr = sim_addr(host_of(conf), RTRS_PORT),
					    .auth = AUTH_MODES, .first = true };
	if (conf->any_address)
		((struct sockaddr_in *)&s->listen.addr.ss)->sin_addr.s_addr = INADDR_ANY;
	s->conf = (struct srv_conf){
		.listeners = &s->listen,
		.nlisteners = 1,
		.invalidate = conf->invalidate,
		.auth = conf->auth,
		.queue_depth = conf->queue_depth,
		.max_io_size = conf->max_io_size,
		.threads = conf->threads,
		.max_sessions = conf->max_sessions ? conf->max_sessions : CONF_MAX_SESSIONS,
		.max_paths = conf->max_paths ? conf->max_paths : CONF_MAX_PATHS,
		.max_cons = conf->max_cons ? conf->max_cons : CONF_MAX_CONS,
		.max_memory = conf->max_memory ? conf->max_memory : CONF_MAX_MEMORY,
		.setup_timeout_ms = CONF_SETUP_TIMEOUT_MS,
		.hb_interval_ms = conf->hb_interval_ms ? conf->hb_interval_ms : RTRS_HB_INTERVAL_MS,
		.hb_missed_max = conf->hb_missed_max ? conf->hb_missed_max : RTRS_HB_MISSED_MAX,
		.ready_fd = -1,
		.log_level = LOG_LEVEL_DEBUG,
	};
}

/* With its reactors, not started. */
static struct world_server *server_make(struct world *w, const struct world_server_conf *conf)
{
	struct world_server *s = calloc(1, sizeof(*s));
	char err[256] = "";

	assert(s && !w->servers_up[world_place(host_of(conf))]);
	s->host = sim_host_find(host_of(conf));
	s->epoch = s->host->epoch;
	conf = conf ? conf : &world_server_defaults;
	conf_init(s, conf);
	export_init(s, conf, w->disk, &w->state[world_place(host_of(conf))]);
	s->nreactors = s->conf.threads + 1;
	s->reactors = calloc(s->nreactors, sizeof(struct reactor *));
	assert(s->reactors);
	for (unsigned i = 0; i < s->nreactors; i++) {
		char name[16];

		snprintf(name, sizeof(name), "io%u", i);
		CHECK(reactor_create(name, 64, &s->reactors[i]) == 0);
		CHECK(export_ring_attach(s->reactors[i], i, &s->exports, !i, err,
					 sizeof(err)) == 0);
	}
	return s;
}

static void server_detach(struct world_server *s)
{
	for (unsigned i = 0; i < s->nreactors; i++) {
		export_ring_let_go(s->reactors[i]);
		export_ring_detach(s->reactors[i]);
	}
}

static void server_unmake(struct world_server *s)
{
	for (unsigned i = 0; i < s->nreactors; i++)
		reactor_destroy(s->reactors[i]);
	free(s->reactors);
	exports_fini(&s->exports);
	conf_free_exports(&s->served);
}

static bool unlocked(void *arg)
{
	return !sim_disk_left(arg);
}

/* What main.c does before anything else. */
static void take_export(struct world *w, const struct world_server_conf *conf)
{
	if (!conf || (!conf->no_lock && !conf->shared))
		CHECK(sim_run_until(unlocked, w->disk, LOCK_MS));
	export_state_adopt(&w->state[world_place(host_of(conf))]);
}

bool world_sync_was_cut(const struct world *w)
{
	return atomic_load(&w->state[0].syncing);
}

void world_server_start(struct world *w, const struct world_server_conf *conf)
{
	struct sim_host *host = sim_host_find(host_of(conf));
	struct sim_place before = sim_enter(host, host->epoch);
	struct world_server *s;
	char err[256] = "";

	take_export(w, conf);
	if (!world_place(host->name))
		w->other_host = conf && conf->other_host;
	s = server_make(w, conf);
	if (srv_start(&s->conf, &s->exports, s->reactors, s->nreactors, &s->srv, err, sizeof(err)))
		sim_test_failed(__FILE__, __LINE__, err);
	CHECK(export_life_init(&s->life, &s->exports, s->reactors, &srv_export_users, s->srv) == 0);
	apply_init(&s->apply, &s->exports);
	apply_begin(&s->apply, &s->life, s->srv);
	sim_leave(before);
	list_add_tail(&w->servers, &s->link);
	w->servers_up[world_place(host->name)] = s;
}

struct world *world_serve(const struct world_server_conf *conf)
{
	struct world *w = world_create(1);

	world_server_start(w, conf);
	return w;
}

const char *world_server_refuses(struct world *w, const struct world_server_conf *conf)
{
	static char err[256];
	struct sim_host *host = sim_host_find(host_of(conf));
	struct sim_place before = sim_enter(host, host->epoch);
	struct world_server *s = server_make(w, conf);

	err[0] = '\0';
	CHECK(srv_start(&s->conf, &s->exports, s->reactors, s->nreactors, &s->srv, err,
			sizeof(err)) < 0);
	server_detach(s);
	server_unmake(s);
	free(s);
	sim_leave(before);
	return err;
}

struct srv *world_server_srv(const struct world *w)
{
	return w->servers_up[0]->srv;
}

void world_servers_forget(struct world *w)
{
	for (unsigned i = 0; i < WORLD_SERVERS; i++) {
		struct world_server *s = w->servers_up[i];

		if (s)
			memset(s->srv->log.lines, 0, sizeof(s->srv->log.lines));
	}
}

bool world_server_runs(const struct world *w)
{
	return world_server_runs_on(w, "srv");
}

bool world_server_runs_on(const struct world *w, const char *host)
{
	return w->servers_up[world_place(host)] != NULL;
}

static void server_shut(void *arg)
{
	struct world_server *s = arg;

	s->shut = true;
}

static bool server_is_shut(void *arg)
{
	return ((struct world_server *)arg)->shut;
}

static bool reactors_idle(void *arg)
{
	const struct world_server *s = arg;

	for (unsigned i = 0; i < s->nreactors; i++) {
		if (!sim_loop_idle(reactor_loop(s->reactors[i])))
			return false;
	}
	return true;
}

/* What main.c does after a signal. */
static void server_close(void *arg)
{
	struct world_server *s = arg;

	srv_shutdown(s->srv, server_shut, s);
	sim_fiber_wait(server_is_shut, s);
	s->shut = false;
	export_life_stop(&s->life, server_shut, s);
	sim_fiber_wait(server_is_shut, s);
	sim_fiber_wait(reactors_idle, s);
	server_detach(s);
	export_life_fini(&s->life);
	apply_fini(&s->apply);
	srv_destroy(s->srv);
	server_unmake(s);
}

static void server_end(struct world_server *s)
{
	struct sim_place before = sim_enter(s->host, s->epoch);

	s->closer = sim_fiber_start(server_close, s);
	sim_leave(before);
}

static bool server_ended(void *arg)
{
	const struct world_server *s = arg;

	return s->closer && sim_fiber_done(s->closer);
}

bool world_servers_gone(void *arg)
{
	struct world *w = arg;
	struct world_server *s;

	list_for_each(s, &w->servers, link) {
		if (!server_ended(s))
			return false;
	}
	return true;
}

void world_servers_reap(struct world *w)
{
	struct world_server *s, *tmp;

	list_for_each_safe(s, tmp, &w->servers, link) {
		if (!server_ended(s))
			continue;
		sim_fiber_free(s->closer);
		list_del(&s->link);
		free(s);
	}
}

/* ---- plans ---- */

struct change {
	bool done;
	int rc;
	char *err;
};

static void change_done(void *arg, int rc, const char *err)
{
	struct change *c = arg;

	c->done = true;
	c->rc = rc;
	snprintf(c->err, EXPORT_LIFE_ERR, "%s", err);
}

static bool change_is_done(void *arg)
{
	return ((struct change *)arg)->done;
}

/* As world_server_change_on(); @openers: as that of apply_run(). */
static int change_on(struct world *w, const char *host, const struct conf_export *exports,
		     unsigned n, enum apply_openers openers, char err[EXPORT_LIFE_ERR])
{
	struct world_server *s = w->servers_up[world_place(host)];
	struct sim_place before = sim_enter(s->host, s->epoch);
	struct change c = { .err = err };
	struct srv_conf wanted = s->served;
	struct plan plan;

	conf_set_exports(&wanted, exports, n);
	CHECK(plan_make(&plan, &s->served, &wanted) == 0);
	CHECK(apply_run(&s->apply, &plan, &wanted, openers, change_done, &c) == 0);
	sim_leave(before);
	CHECK(sim_run_until(change_is_done, &c, 1000));
	plan_fini(&plan);
	conf_free_exports(c.rc ? &wanted : &s->served);
	if (!c.rc)
		s->served = wanted;
	return c.rc;
}

int world_server_change(struct world *w, const struct conf_export *exports, unsigned n,
			char err[EXPORT_LIFE_ERR])
{
	return change_on(w, "srv", exports, n, APPLY_SPARE_OPENERS, err);
}

int world_server_change_forced(struct world *w, const struct conf_export *exports, unsigned n,
			       char err[EXPORT_LIFE_ERR])
{
	return change_on(w, "srv", exports, n, APPLY_KICK_OPENERS, err);
}

int world_server_change_on(struct world *w, const char *host, const struct conf_export *exports,
			   unsigned n, char err[EXPORT_LIFE_ERR])
{
	return change_on(w, host, exports, n, APPLY_SPARE_OPENERS, err);
}

unsigned world_server_kick(struct world *w, const char *name)
{
	struct world_server *s = w->servers_up[0];
	struct sim_place before = sim_enter(s->host, s->epoch);
	unsigned n = srv_close_kick(s->srv, name, NULL);

	sim_leave(before);
	return n;
}

struct breaking {
	struct srv_storage_break b;
	bool done;
	int rc;
	char *text;
};

static void break_done(void *arg, int rc, const char *text)
{
	struct breaking *b = arg;

	b->done = true;
	b->rc = rc;
	snprintf(b->text, WORLD_BREAK_TEXT, "%s", text);
}

static bool break_is_done(void *arg)
{
	return ((struct breaking *)arg)->done;
}

int world_server_break(struct world *w, const char *host, bool force, char *text)
{
	struct world_server *s = w->servers_up[world_place(host)];
	struct sim_place before = sim_enter(s->host, s->epoch);
	struct breaking b = { .text = text };

	srv_storage_break(s->srv, &b.b, "disk0", force, break_done, &b);
	sim_leave(before);
	CHECK(sim_run_until(break_is_done, &b, 60000));
	return b.rc;
}

void world_server_waits(struct world *w, const char *name, struct srv_limit_stat *stat)
{
	const struct export *ex = exports_find(&w->servers_up[0]->exports, name);

	CHECK(ex != NULL);
	srv_limit_stat(ex, stat);
}

unsigned world_server_stores(const struct world *w)
{
	const struct store *store;
	unsigned n = 0;

	list_for_each(store, &w->servers_up[0]->exports.stores, link)
		n++;
	return n;
}

void world_server_stop(struct world *w)
{
	world_server_stop_on(w, "srv");
}

void world_server_stop_on(struct world *w, const char *host)
{
	struct world_server *s = w->servers_up[world_place(host)];

	w->servers_up[world_place(host)] = NULL;
	server_end(s);
	CHECK(sim_run_until(server_ended, s, 60000));
	world_servers_reap(w);
}

void world_server_kill(struct world *w, enum sim_kill how)
{
	world_server_kill_on(w, "srv", how);
}

void world_server_kill_on(struct world *w, const char *host, enum sim_kill how)
{
	unsigned place = world_place(host);
	struct world_server *s = w->servers_up[place];

	w->servers_up[place] = NULL;
	sim_kill(host, how);
	/* The ghost's words do not count. */
	atomic_store(&s->ex->store->state, &s->ex->store->own_state);
	if (s->shared)
		sim_disk_host_died(w->disk, s->host);
	else if (how == SIM_KILL_POWER)
		sim_disk_power_cut(w->disk, s->host);
	else
		sim_disk_process_killed(w->disk, s->host);
	if (how == SIM_KILL_POWER) {
		w->boot[place]++;
		w->state[place] = (struct export_state)EXPORT_STATE_INIT;
	}
	world_note(w, "%s %s", host, how == SIM_KILL_POWER ? "loses power" : "killed");
	server_end(s);
}
