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

#include "clt-export.h"
#include "clt-loop.h"
#include "clt-start.h"
#include "dev.h"
#include "log.h"
#include "number.h"
#include "bench.h"
#include "process.h"
#include "signals.h"

/* ---- the target ---- */

/* The measured server: a session with a single attempt, which does not come back after a loss.  All
 * IO is started on its loop. */
static struct clt_start start;
static struct dev_handle handle;	/* of the export */
static struct load load;

/* Close the export and the session.  No IO is in flight. */
static void target_close(void)
{
	dev_handle_fini(&handle);
	dev_close(handle.dev);
	clt_start_end(&start);
}

/* Connect to the server and open the export.  0, or -errno with @why. */
static int target_open(struct options *o, char why[CLT_FRONT_ERR])
{
	struct clt_conf *conf = &o->session;
	char cause[CLT_FRONT_ERR] = "";
	struct dev *dev;
	int r;

	clt_start_init(&start, conf);
	r = clt_probe_connect(&start, "", cause);
	if (r < 0) {
		snprintf(why, CLT_FRONT_ERR, "server %s: %.*s", conf->server, CLT_FRONT_ERR - 128,
			 cause);
		return fds_name_limit(r, why, CLT_FRONT_ERR);
	}
	r = clt_export_open(&start.run.clt, conf, conf->export_name, &dev, why);
	if (r == 0)
		dev_handle_init(&handle, dev);
	else
		clt_start_end(&start);
	return r;
}

/* Check that the part of the export to use fits @size, and set @conf->size, if the user has not. */
static int check_part(struct load_conf *conf, uint64_t size, char *why, size_t len)
{
	if (conf->off >= size)
		return fmt_error(-EINVAL, why, len, "--offset '%" PRIu64 "': expected less than %"
				 PRIu64 ", the bytes of the export", conf->off, size);
	if (conf->size > size - conf->off)
		return fmt_error(-EINVAL, why, len, "--size '%" PRIu64 "': expected at most %"
				 PRIu64 ", the bytes of the export%s", conf->size, size - conf->off,
				 conf->off ? " behind --offset" : "");
	if (conf->size ? conf->size < conf->block : size - conf->off < conf->block)
		return fmt_error(-EINVAL, why, len, "--bs '%" PRIu32 "': expected at most %" PRIu64
				 ", the bytes of %s", conf->block,
				 conf->size ? conf->size : size - conf->off,
				 conf->size ? "--size" : conf->off ? "the export behind --offset" :
				 "the export");
	if (!conf->size)
		conf->size = size - conf->off;
	return 0;
}

/* Check that @conf fits the export, and set conf->size, if the user has not.  0, or -EINVAL with
 * @why, which names the given options. */
static int target_fit(struct load_conf *conf, char *why, size_t len)
{
	uint32_t unit = dev_info(handle.dev)->logical_block_size;
	int r;

	if (conf->block % unit)
		return fmt_error(-EINVAL, why, len, "--bs '%" PRIu32 "': expected a multiple of %"
				 PRIu32 ", the export's blocks", conf->block, unit);
	if (conf->off % unit)
		return fmt_error(-EINVAL, why, len, "--offset '%" PRIu64 "': expected a multiple "
				 "of %" PRIu32 ", the export's blocks", conf->off, unit);
	r = check_part(conf, dev_size(handle.dev), why, len);
	if (r < 0)
		return r;
	/* A block has a single IO at a time (load.c). */
	if (conf->verify && conf->size / conf->block <= conf->depth)
		return fmt_error(-EINVAL, why, len, "--verify with --iodepth=%u: expected fewer "
				 "IOs in flight than blocks of --bs, here %" PRIu64, conf->depth,
				 conf->size / conf->block);
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
		client_lose_patience(&start.run.clt);
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
	const char *server = o->session.server;
	char why[CLT_FRONT_ERR];
	int status, r;

	log_init(bench_log, LOG_LEVEL_WARN);
	r = log_begin();
	if (r == 0)
		r = end_init(NULL);
	if (r < 0) {
		snprintf(why, sizeof(why), "cannot start a thread: %s", threads_strerror(r));
		return bench_complain(server, why);
	}
	if (target_open(o, why) < 0) {
		report_say("%s", why);
		return EXIT_FAILED;
	}
	if (target_fit(&o->load, why, sizeof(why)) < 0) {
		target_close();
		report_say("%s", why);
		return EXIT_USAGE;
	}
	if (load_init(&load, start.run.loop, &handle, &o->load) < 0) {
		target_close();
		return bench_complain(server, "no memory for the load");
	}
	status = bench_run(o);
	if (load.status)
		bench_complain(server, load.error);
	target_close();
	load_fini(&load);
	return status;
}

static const struct clt_front front = {
	.name = "rtrs-bench",
	.program = "rtrs-bench",
	.help = "rtrs-bench --help",
	.options = &options_table,
	.conf_size = sizeof(struct options),
	.defaults = options_defaults,
	.wait = &clt_loop_wait,
};

int main(int argc, char **argv)
{
	static struct options o;	/* large for a stack */
	int status;

	/* ORDER: before anything else is opened. */
	if (std_fds_open() < 0)
		return EXIT_FAILED;
	signals_begin();
	status = options_parse(&o, &front, argc, argv);
	if (status < 0)
		status = bench(&o);
	end_over();
	log_end(NULL);
	clt_conf_fini(&o.session);
	end_with(status);
}
