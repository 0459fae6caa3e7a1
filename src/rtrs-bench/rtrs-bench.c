/* SPDX-License-Identifier: BSD-3-Clause */
/* The program: options, a session, a load, its report.  The main thread waits; all that is measured
 * runs on the session's loop. */
#include <config.h>

#include <signal.h>
#include <stdio.h>

#include "log.h"
#include "options.h"
#include "report.h"
#include "target.h"

enum { EXIT_DONE, EXIT_FAILED };

static struct target target;
static struct load load;

static void sink(enum log_level level, const char *line)
{
	fprintf(stderr, "rtrs-bench: %s\n", line);
}

static int complain(const char *server, const char *why)
{
	fprintf(stderr, "rtrs-bench: server %s: %s\n", server, why);
	return EXIT_FAILED;
}

/* The report is of what was done so far. */
static void on_signal(int sig)
{
	load_stop(&load);
}

/* Returns the exit status. */
static int run(const struct options *o)
{
	struct sigaction act = { .sa_handler = on_signal };
	int r = 0;

	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	load_run(&load);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	if (o->json)
		r = report_json(o, &load);
	else
		report_text(o, &load);
	return r || load.status || load.differing ? EXIT_FAILED : EXIT_DONE;
}

int main(int argc, char **argv)
{
	struct options o;
	char why[1024];
	int status = options_parse(&o, argc, argv);

	if (status >= 0)
		return status;
	log_init(sink, LOG_LEVEL_WARN);
	if (target_open(&target, &o, why, sizeof(why)) < 0)
		return complain(o.server, why);
	if (load_check(&o.load, target.dev, why, sizeof(why)) < 0) {
		target_close(&target);
		fprintf(stderr, "rtrs-bench: %s\n", why);
		return OPTIONS_USAGE;
	}
	if (load_init(&load, target.loop, target.dev, &o.load) < 0) {
		target_close(&target);
		return complain(o.server, "no memory for the load");
	}
	status = run(&o);
	if (load.status)
		complain(o.server, load.error);
	target_close(&target);
	load_fini(&load);
	return status;
}
