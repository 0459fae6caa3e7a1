/* SPDX-License-Identifier: BSD-3-Clause */
/* The program.  The happy path: options, a session, an export that the options fit, a load, a
 * report.  Possible failures: no session, no export, or options that do not fit the export end the
 * program before the load; an IO with an error ends the load, and the report is of the work so far.
 *
 * The main thread waits, and shows the progress of the load; all measured work runs on the
 * session's loop. */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "clt-export.h"
#include "clt-loop.h"
#include "clt-run.h"
#include "clt-start.h"
#include "dev.h"
#include "frwr.h"
#include "log.h"
#include "names.h"
#include "bench.h"
#include "process.h"
#include "rtrs-proto.h"
#include "signals.h"

/* ---- the target ---- */

/* The measured server and export: a session with a single attempt, which does not come back after a
 * loss. */
struct target {
	struct clt_run run;		/* all IO is started on run.loop */
	struct dev_handle h;		/* h.dev NULL: the export could not be opened */
};

static struct target target;
static struct load load;

/* Lessons about devices, of all attempts. */
static struct frwr_lessons lessons = FRWR_LESSONS_INIT;

/* Close the export and the session.  No IO is in flight. */
static void target_close(struct target *t)
{
	if (t->h.dev) {
		dev_handle_fini(&t->h);
		dev_close(t->h.dev);
	}
	clt_run_close(&t->run);
	clt_run_fini(&t->run);
}

static int session_open(struct target *t, const struct options *o, const struct clt_sess_addr *addr,
			unsigned setup_ms, char *why, size_t len)
{
	char name[RTRS_NAME_MAX];
	struct clt_sess_conf conf = {
		.name = o->sessname ? o->sessname : name,
		.wait = &clt_loop_wait,
		.paths = addr,
		.npaths = 1,
		/* There is no other path to go on with: a pause is part of what is measured. */
		.connections = o->connections,
		.poll_us = o->poll_us,
		.path = {
			.hb_interval_ms = RTRS_HB_INTERVAL_MS,
			.hb_misses = RTRS_HB_MISSED_MAX,
			.setup_ms = setup_ms,
			.registration = o->registration,
			.digest = o->digest,
			.servers = o->servers,
			.tls = o->tls,
			.auth = o->auth,
			.once = true,
			.lessons = &lessons,
		},
	};
	uint32_t salt;
	int r;

	random_bytes(&salt, sizeof(salt));
	snprintf(name, sizeof(name), "rtrs-bench-%d-%08x", (int)getpid(), salt);
	r = clt_run_thread(&t->run, "rtrs-load");
	if (r == 0)
		r = clt_run_session(&t->run, &conf);
	if (r < 0) {
		snprintf(why, len, "no session: %s", strerror(-r));
		return r;
	}
	r = clt_run_wait_up(&t->run, why, len);
	if (r < 0)
		target_close(t);
	return r;
}

/* Connect over @provider, and again after learning that a device lacks an ability. */
static int connect_over(struct target *t, const struct options *o,
			const struct fab_provider *provider, unsigned setup_ms, char *why,
			size_t len)
{
	struct clt_sess_addr addr = o->addr;
	unsigned known;
	int r;

	addr.src.provider = provider;
	addr.dst.provider = provider;
	do {
		known = frwr_lessons_count(&lessons);
		r = session_open(t, o, &addr, setup_ms, why, len);
	} while (r < 0 && frwr_lessons_count(&lessons) != known);
	return r;
}

static int connect_any(struct target *t, const struct options *o, char *why, size_t len)
{
	const struct fab_provider *rdma = fab_provider_find("rdma");

	if (o->automatic && rdma && connect_over(t, o, rdma, CLT_PROBE_RDMA_MS, why, len) == 0)
		return 0;
	return connect_over(t, o, o->addr.dst.provider, 0, why, len);
}

/* Connect to the server and open the export.  0, or -errno with @why. */
static int target_open(struct target *t, const struct options *o, char *why, size_t len)
{
	enum rnbd_access_mode mode = o->load.read_percent == 100 ? RNBD_ACCESS_RO : RNBD_ACCESS_RW;
	struct dev_open_req req = { .name = o->export, .mode = mode };
	int r;

	memset(t, 0, sizeof(*t));
	r = connect_any(t, o, why, len);
	if (r < 0)
		return fds_name_limit(r, why, len);
	r = dev_open_wait(&t->run.clt, &req);
	if (r == 0) {
		dev_handle_init(&t->h, req.dev);
		return 0;
	}
	snprintf(why, len, "export '%s': %s", o->export, dev_why(r, req.refusal));
	if (r == -ENOENT) {
		clt_export_names(&t->run.clt, why, len);
		mask_control(why);
	}
	target_close(t);
	return r;
}

/* Check that the part of the export to use fits @size, and set @conf->size, if the user has not. */
static int check_part(struct load_conf *conf, uint64_t size, char *why, size_t len)
{
	if (conf->off >= size) {
		snprintf(why, len, "--offset '%" PRIu64 "': expected less than %" PRIu64
			 ", the bytes of the export", conf->off, size);
		return -EINVAL;
	}
	if (conf->size > size - conf->off) {
		snprintf(why, len, "--size '%" PRIu64 "': expected at most %" PRIu64
			 ", the bytes of the export%s",
			 conf->size, size - conf->off, conf->off ? " behind --offset" : "");
		return -EINVAL;
	}
	if (conf->size ? conf->size < conf->block : size - conf->off < conf->block) {
		snprintf(why, len, "--bs '%" PRIu32 "': expected at most %" PRIu64
			 ", the bytes of %s", conf->block,
			 conf->size ? conf->size : size - conf->off,
			 conf->size ? "--size" : conf->off ? "the export behind --offset" :
			 "the export");
		return -EINVAL;
	}
	if (!conf->size)
		conf->size = size - conf->off;
	return 0;
}

/* Check that @conf fits the export, and set conf->size, if the user has not.  0, or -EINVAL with
 * @why, which names the given options. */
static int target_fit(const struct target *t, struct load_conf *conf, char *why, size_t len)
{
	uint32_t unit = dev_info(t->h.dev)->logical_block_size;
	int r;

	if (conf->block % unit) {
		snprintf(why, len, "--bs '%" PRIu32 "': expected a multiple of %" PRIu32
			 ", the export's blocks", conf->block, unit);
		return -EINVAL;
	}
	if (conf->off % unit) {
		snprintf(why, len, "--offset '%" PRIu64 "': expected a multiple of %" PRIu32
			 ", the export's blocks", conf->off, unit);
		return -EINVAL;
	}
	r = check_part(conf, dev_size(t->h.dev), why, len);
	if (r < 0)
		return r;
	/* A block has a single IO at a time (load.c). */
	if (conf->verify && conf->size / conf->block <= conf->depth) {
		snprintf(why, len,
			 "--verify with --iodepth=%u: "
			 "expected fewer IOs in flight than blocks of --bs, here "
			 "%" PRIu64, conf->depth, conf->size / conf->block);
		return -EINVAL;
	}
	return 0;
}

/* ---- the program ---- */

static void bench_log(enum log_level level, const char *line)
{
	report_say("%s", line);
}

static int bench_complain(const char *server, const char *why)
{
	report_say("server %s: %s", server, why);
	return EXIT_FAILED;
}

/* The first signal ends the load early, and the report is of the work so far.  With --verify a
 * second signal ends the reading back.  A further signal ends the program, for a server that does
 * not answer. */
static void on_signal(int sig)
{
	static volatile sig_atomic_t seen;

	if (seen == load.conf.verify) {
		end_begin();
		client_lose_patience(&target.run.clt);
	}
	if (seen++ <= load.conf.verify) {
		load_stop(&load);
		return;
	}
	signal(sig, SIG_DFL);
	raise(sig);
}

static void bench_show_look(const struct look *now)
{
	char text[LOOK_TEXT_MAX];

	report_progress(lat_look_text(now, text));
}

static int bench_report(const struct options *o)
{
	int r = 0;

	if (o->json)
		r = report_json(o, &load);
	else
		report_text(o, &load);
	if (r < 0)
		return r;
	r = std_out_flush();
	if (r < 0)
		report_say("the report cannot be written: %s", strerror(-r));
	return r;
}

/* Returns the exit status. */
static int bench_run(const struct options *o)
{
	struct sigaction act = { .sa_handler = on_signal };
	int r;

	end_waits_for("requests in flight");
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	load_run(&load, !o->json && report_progress_possible() ? bench_show_look : NULL);
	report_progress_end();
	end_waits_for("the session to close");
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	r = bench_report(o);
	return r || load.status || load.differing ? EXIT_FAILED : EXIT_DONE;
}

static int bench(struct options *o)
{
	char why[1024];
	int status;

	log_init(bench_log, LOG_LEVEL_WARN);
	if (log_begin() < 0 || end_init(NULL) < 0)
		return bench_complain(o->server, "cannot start a thread");
	if (target_open(&target, o, why, sizeof(why)) < 0)
		return bench_complain(o->server, why);
	if (target_fit(&target, &o->load, why, sizeof(why)) < 0) {
		target_close(&target);
		report_say("%s", why);
		return EXIT_USAGE;
	}
	if (load_init(&load, target.run.loop, &target.h, &o->load) < 0) {
		target_close(&target);
		return bench_complain(o->server, "no memory for the load");
	}
	status = bench_run(o);
	if (load.status)
		bench_complain(o->server, load.error);
	target_close(&target);
	load_fini(&load);
	return status;
}

int main(int argc, char **argv)
{
	struct options o;
	int status;

	/* ORDER: before anything else is opened. */
	if (std_fds_open() < 0)
		return EXIT_FAILED;
	signals_begin();
	status = options_parse(&o, argc, argv);
	if (status < 0)
		status = bench(&o);
	end_over();
	log_end(NULL);
	fab_tls_destroy(o.tls);
	auth_creds_destroy(o.auth);
	end_with(status);
}
