/* SPDX-License-Identifier: BSD-3-Clause */
/* The program: reads the command line, starts the threads and the server, says that it is ready,
 * and runs reactor 0 on the main thread until stop.c stops the reactor.  A start that fails undoes
 * what was done, in reverse, with one line on stderr. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <systemd/sd-daemon.h>
#include <time.h>
#include <unistd.h>

#include "auth-creds.h"
#include "changes.h"
#include "confine.h"
#include "journal.h"
#include "log.h"
#include "process.h"
#include "program.h"
#include "reactor.h"
#include "signals.h"
#include "srv-auth.h"
#include "srv-export.h"
#include "srv-listen.h"
#include "tell.h"

/* ---- the log on stderr; any thread ---- */

#define STAMP_LEN sizeof("2026-01-31T23:59:59.999+00:00")

/* The journal takes the level from a prefix.  Of lines before the server runs, and of those that
 * journal.h does not take. */
static void journal_sink(enum log_level level, const char *line)
{
	static const char *const prefix[] = { SD_ERR, SD_WARNING, SD_INFO, SD_DEBUG };

	log_to_stderr("%s%s\n", prefix[level], line);
}

static void typed_sink(enum log_level level, const char *line)
{
	log_to_stderr("rtrs-server: %s: %s\n", log_level_names[level], line);
}

/* Local time as in RFC 3339. */
static void stamp_line(char stamp[STAMP_LEN])
{
	char second[32], zone[8];
	struct timespec now = log_line_time();
	struct tm tm;

	localtime_r(&now.tv_sec, &tm);
	strftime(second, sizeof(second), "%FT%T", &tm);
	strftime(zone, sizeof(zone), "%z", &tm);
	snprintf(stamp, STAMP_LEN, "%.19s.%03u%.3s:%.2s", second,
		 (unsigned)(now.tv_nsec / 1000000) % 1000, zone, zone + 3);
}

static void stamped_sink(enum log_level level, const char *line)
{
	char stamp[STAMP_LEN];

	stamp_line(stamp);
	log_to_stderr("%s rtrs-server: %s: %s\n", stamp, log_level_names[level], line);
}

/* The sink for log_init().  The journal, if stderr leads to the journal, takes the level from a
 * prefix and records the time itself.  Any other reader gets the name of the program and the level,
 * and once the server runs (@runs) also the time of each line. */
static log_sink_fn *sink_for(bool runs)
{
	if (journal_is_stderr())
		return journal_sink;
	return runs ? stamped_sink : typed_sink;
}

/* ---- start ---- */

#define START_REST_MS 60000u		/* for what follows a lock */

static void tell_ready(struct program *p)
{
	static const char line[] = "ready\n";
	int fd = p->conf.ready_fd, rc = sd_notify(0, "READY=1");

	if (rc < 0)
		log_warn(NULL, "cannot notify NOTIFY_SOCKET '%s' that the server is ready: %s",
			 getenv("NOTIFY_SOCKET"), strerror(-rc));
	if (fd < 0)
		return;
	if (write(fd, line, sizeof(line) - 1) < 0)
		log_warn(NULL, "--ready-fd %d: %s", fd, strerror(errno));
	close(fd);
}

/* Listen for clients and for readers of metrics: what can fail.  0, or -errno, which is logged. */
static int start_server(struct program *p)
{
	char err[512];
	int rc = srv_metrics_listen(&p->metrics, &p->conf, err, sizeof(err));

	if (rc) {
		log_err(NULL, "--metrics %s", err);
		return rc;
	}
	rc = srv_start(&p->conf, &p->exports, p->reactors.all, p->reactors.n, &p->srv, err,
		       sizeof(err));
	if (rc) {
		log_err(NULL, "%s", err);
		metric_sock_close(&p->metrics.sock);
	} else {
		srv_listen_note(p->srv, &p->conf);
	}
	return rc;
}

/* Serve commands, metrics and signals.  A failure ends the program: the server runs already, and
 * nobody has been told so. */
static void serve_administrators(struct program *p)
{
	char err[512];
	int rc = export_life_init(&p->life, &p->exports, p->reactors.all, &srv_export_users,
				  p->srv);

	if (rc) {
		log_err(NULL, "out of memory");
		end_at_once(EXIT_FAILED);
	}
	apply_begin(&p->apply, &p->life, p->srv);
	apply_first_settings(&p->apply, &p->plan);
	change_init(&p->change, &p->conf, &p->apply, p->srv, p->argc, p->argv);
	rc = srv_ctl_open(&p->change, &p->ctl, err, sizeof(err));
	if (rc) {
		log_err(NULL, "--control %s", err);
		end_at_once(EXIT_FAILED);
	}
	rc = srv_metrics_open(&p->metrics, p->srv);
	if (rc) {
		log_err(NULL, "cannot serve metrics: %s", fds_strerror(rc));
		end_at_once(EXIT_FAILED);
	}
	rc = loop_watch(reactor_loop(p->reactors.all[0]), &p->signals);
	if (rc) {
		log_err(NULL, "cannot watch signals: %s", fds_strerror(rc));
		end_at_once(EXIT_FAILED);
	}
}

static void log_doubts(struct program *p)
{
	const struct doubts doubts = tell_doubts_of(&p->conf, p->srv);

	tell_doubts(&doubts, tell_doubt, NULL);
}

static void tell_listener(void *arg, const struct srv_listening *l)
{
	(void)arg;
	printf("listening on %s\n", l->url);
}

static enum exit_status serve_exports(struct program *p)
{
	int rc = start_server(p);

	if (rc)
		return exit_status_of(rc);
	serve_administrators(p);
	rc = confine_calls(&p->conf, reactor_loop(p->reactors.all[0]));
	if (rc)
		end_at_once(EXIT_FAILED);
	srv_listen_each(p->srv, tell_listener, NULL);
	fflush(stdout);
	tell_exports(&p->exports);
	tell_protection(&p->conf);
	tell_limits(&p->conf);
	log_doubts(p);
	fflush(stdout);
	log_event(LOG_LEVEL_INFO, LOG_FIELDS(STARTED), NULL, "ready, version " PACKAGE_VERSION);
	tell_ready(p);
	export_life_look(&p->life);
	if (reactor_run(p->reactors.all[0]))
		return EXIT_FAILED;
	reactors_detach(&p->reactors);
	change_fini(&p->change);
	export_life_fini(&p->life);
	srv_destroy(p->srv);
	stop_close(p);
	end_waits_for("the storage of the exports");
	return EXIT_DONE;
}

/* An export, a thread and a connection are descriptors.  What is to be had without asking is
 * taken. */
static void raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		log_warn(NULL, "cannot raise RLIMIT_NOFILE to its hard limit of %llu: %s",
			 (unsigned long long)limit.rlim_max, strerror(errno));
}

/* systemd ends a start after TimeoutStartSec=, 90 s by default, and locks and clusters that do
 * not answer take longer. */
static void start_waits(struct exports *e)
{
	sd_notifyf(0, "EXTEND_TIMEOUT_USEC=%llu",
		   1000ull * e->lock_timeout_ms + 1000ull * START_REST_MS);
}

/* The command line makes the first plan.  0, or -errno, which is logged. */
static int prepare_start(struct program *p)
{
	char err[512];
	/* ORDER: a host may give rings to privileged processes only; the storage may start threads
	 * when it is opened, which inherit what is left of the rights. */
	int rc = reactors_create(&p->reactors, &p->conf, &p->exports);

	if (!rc)
		rc = confine_begin(&p->conf);
	if (rc)
		return rc;
	p->apply.lenient = !p->conf.strict;
	p->exports.waits = start_waits;
	rc = plan_make(&p->plan, NULL, &p->conf);
	if (rc)
		snprintf(err, sizeof(err), "out of memory");
	else
		rc = apply_prepare(&p->apply, &p->plan, err, sizeof(err));
	if (rc)
		log_err(NULL, "%s", err);
	return rc;
}

static int commit_start(struct program *p)
{
	char err[512];
	int rc = apply_commit(&p->apply, &p->conf, err, sizeof(err));

	p->exports.waits = NULL;
	if (rc)
		log_err(NULL, "%s", err);
	return rc;
}

static int open_signals(struct program *p)
{
	int rc = stop_open(p);

	if (rc)
		log_err(NULL, "cannot wait for signals: %s", threads_strerror(rc));
	return rc;
}

static enum exit_status run_server(struct program *p)
{
	enum exit_status status = EXIT_FAILED;

	/* ORDER: the exports before signals are blocked, because storage may wait. */
	if (!commit_start(p) && !open_signals(p)) {
		if (!reactors_start(&p->reactors))
			status = serve_exports(p);
		if (status != EXIT_DONE)
			stop_abort(p);
	}
	confine_end();
	return status;
}

/* Read the command line and the files; mistakes are logged. */
static enum opt_result read_conf(struct srv_conf *conf, int argc, char **argv)
{
	enum opt_result result;
	char *mistakes = NULL;
	size_t len = 0;
	FILE *errors = open_memstream(&mistakes, &len);

	if (!errors) {
		log_err(NULL, "out of memory");
		return OPT_FAILED;
	}
	files_age_reset();
	result = conf_parse(conf, CONF_START, argc, argv, errors);
	fclose(errors);
	tell_mistakes(mistakes);
	free(mistakes);
	return result;
}

/* --check: read keys and certificates, print the first plan, and carry out none of it. */
static enum opt_result check_conf(struct program *p)
{
	struct auth_creds *auth;
	struct fab_tls *tls;
	char err[1024];
	int rc = srv_keys_open(&p->conf, &tls, &auth, err, sizeof(err));

	if (!rc)
		tell_doubts(&(struct doubts){ &p->conf, tls, auth }, tell_doubt, NULL);
	auth_creds_destroy(auth);
	fab_tls_destroy(tls);
	if (rc) {
		log_err(NULL, "%s", err);
		return rc == -EINVAL ? OPT_USAGE : OPT_FAILED;
	}
	if (plan_make(&p->plan, NULL, &p->conf)) {
		log_err(NULL, "out of memory");
		return OPT_FAILED;
	}
	tell_plan(&p->conf, &p->plan, stdout);
	return OPT_EXIT;
}

int main(int argc, char **argv)
{
	static const enum exit_status status[] = {
		[OPT_EXIT] = EXIT_DONE, [OPT_USAGE] = EXIT_USAGE, [OPT_FAILED] = EXIT_FAILED,
	};
	static struct program p;
	enum opt_result result;
	enum exit_status ended;
	int rc;

	/* ORDER: before anything else is opened: an export that became descriptor 2 would have the
	 * log written into it. */
	if (std_fds_open())
		return EXIT_FAILED;
	slices_shorten();
	signals_begin();
	stop_begin();
	log_init(sink_for(false), LOG_LEVEL_INFO);
	raise_descriptors();
	p.argc = argc;
	p.argv = argv;
	result = read_conf(&p.conf, argc, argv);
	if (result == OPT_RUN && p.conf.purpose == CONF_CHECK)
		result = check_conf(&p);
	exports_init(&p.exports, p.conf.threads + 1);
	apply_init(&p.apply, &p.exports);
	if (result == OPT_RUN && prepare_start(&p))
		result = OPT_FAILED;
	log_init(sink_for(true), p.conf.log_level);
	log_init_record(journal_open("rtrs-server"));
	/* ORDER: behind confine_begin(), because threads keep the rights of their start. */
	rc = result == OPT_RUN ? log_begin() : 0;
	if (rc) {
		log_err(NULL, "cannot start a thread: %s", threads_strerror(rc));
		result = OPT_FAILED;
	}
	ended = result == OPT_RUN ? run_server(&p) :
				    std_out_end("rtrs-server", status[result]);
	reactors_destroy(&p.reactors);
	apply_fini(&p.apply);
	exports_fini(&p.exports);
	plan_fini(&p.plan);
	conf_fini(&p.conf);
	end_over();
	log_end(NULL);
	end_with(ended);
}
