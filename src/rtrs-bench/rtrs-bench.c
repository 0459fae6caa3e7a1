/* SPDX-License-Identifier: BSD-3-Clause */
/* The program: options, a session, a load, a report.  The main thread waits, and shows the progress
 * of the load; all measured work runs on the session's loop. */
#include <config.h>

#include <signal.h>
#include <string.h>

#include "end.h"
#include "exit-status.h"
#include "log.h"
#include "options.h"
#include "progress.h"
#include "report.h"
#include "signals.h"
#include "std-fds.h"
#include "target.h"

static struct target target;
static struct load load;

static void bench_log(enum log_level level, const char *line)
{
	progress_say("%s", line);
}

static int bench_complain(const char *server, const char *why)
{
	progress_say("server %s: %s", server, why);
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

	progress_show(look_text(now, text));
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
		progress_say("the report cannot be written: %s", strerror(-r));
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
	load_run(&load, !o->json && progress_possible() ? bench_show_look : NULL);
	progress_end();
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
		progress_say("%s", why);
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
