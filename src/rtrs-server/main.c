/* SPDX-License-Identifier: BSD-3-Clause */
/* The program: reads the command line, starts the threads and the server, says that it is ready,
 * and stops all on SIGTERM or SIGINT.
 *
 * The main thread is the control thread, and runs reactor 0.  The stop goes:
 * srv_shutdown(); when it is done stop and join the other threads; close the control socket;
 * unwatch the signals; stop reactor 0; srv_destroy().  A start that fails undoes what was done, in
 * reverse, with one line on stderr. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "apply.h"
#include "change.h"
#include "conf.h"
#include "ctl.h"
#include "exports.h"
#include "log.h"
#include "reactor.h"
#include "reactors.h"
#include "sink.h"
#include "srv-ctl.h"
#include "srv-export.h"
#include "srv-listen.h"
#include "srv-metrics.h"
#include "srv.h"
#include "std-fds.h"
#include "tell.h"
#include "util.h"

struct program {
	int argc;
	char **argv;
	struct srv_conf conf;
	struct plan plan;
	struct apply apply;
	struct exports exports;
	struct reactors reactors;
	struct export_life life;
	struct change change;
	struct srv_ctl commands;
	struct srv *srv;
	struct ctl *ctl;		/* NULL: no control socket */
	struct srv_metrics metrics;
	struct loop_watch signals;
	bool stopping;
};

/* ---- signals ---- */

/* Signals that end a program by default and that daemons get out of habit. */
static const int ignored_signals[] = { SIGHUP, SIGUSR1, SIGUSR2, 0 };
static const int stop_signals[] = { SIGTERM, SIGINT, 0 };

static void signals_add(sigset_t *set, const int *signals)
{
	while (*signals)
		sigaddset(set, *signals++);
}

/* @how: as with pthread_sigmask(). */
static void signals_mask(int how, const int *signals)
{
	sigset_t set;

	sigemptyset(&set);
	signals_add(&set, signals);
	pthread_sigmask(how, &set, NULL);
}

/* The control socket and the metrics while these have names: what a second signal is to take
 * along. */
static const struct ctl *named_ctl;
static const struct metrics *named_metrics;

static void exit_at_once(int sig)
{
	if (named_ctl)
		ctl_unlink(named_ctl);
	metrics_unlink(named_metrics);
	_exit(128 + sig);
}

/* ---- stop ---- */

static void signals_closed(struct loop_watch *w)
{
	struct program *p = container_of(w, struct program, signals);

	close(w->fd);
	reactor_stop(p->reactors.all[0]);
}

static void ctl_stopped(void *arg)
{
	struct program *p = arg;

	loop_unwatch(&p->signals);
}

static void life_stopped(void *arg)
{
	struct program *p = arg;

	reactors_join(&p->reactors);
	if (!p->ctl) {
		ctl_stopped(p);
		return;
	}
	/* ORDER: a second signal finds the socket whole or not at all. */
	signals_mask(SIG_BLOCK, stop_signals);
	named_ctl = NULL;
	ctl_close(p->ctl, ctl_stopped, p);
	signals_mask(SIG_UNBLOCK, stop_signals);
}

static void changes_stopped(void *arg)
{
	struct program *p = arg;

	/* ORDER: an answer to a command leaves before the control socket is closed. */
	apply_end(&p->apply);
	export_life_stop(&p->life, life_stopped, p);
}

static void metrics_stopped(void *arg)
{
	struct program *p = arg;

	change_stop(&p->change, changes_stopped, p);
}

static void server_stopped(void *arg)
{
	struct program *p = arg;

	/* ORDER: before exports lose their counters.  A second signal finds the names whole or not
	 * at all. */
	signals_mask(SIG_BLOCK, stop_signals);
	named_metrics = NULL;
	srv_metrics_close(&p->metrics, metrics_stopped, p);
	signals_mask(SIG_UNBLOCK, stop_signals);
}

static struct log_limit ignored_limit = LOG_LIMIT_INIT(4, 10000);

static void signals_stop(struct program *p, const char *name)
{
	struct sigaction at_once = { .sa_handler = exit_at_once };

	p->stopping = true;
	log_info(NULL, "SIG%s: stopping; a second signal exits at once", name);
	sd_notify(0, "STOPPING=1");
	sigaction(SIGTERM, &at_once, NULL);
	sigaction(SIGINT, &at_once, NULL);
	named_ctl = p->ctl;
	named_metrics = p->metrics.served;
	srv_shutdown(p->srv, server_stopped, p);
	/* ORDER: after the listeners, which have taken the names of unix sockets along. */
	signals_mask(SIG_UNBLOCK, stop_signals);
}

static void signals_hup(struct program *p)
{
	if (p->stopping)
		return;
	if (p->conf.config)
		change_hup(&p->change);
	else
		log_limited(&ignored_limit, LOG_LEVEL_INFO, NULL, "SIGHUP: ignored: there is no "
			    "configuration file to read again, and no log to open anew");
}

static bool signals_ready(struct loop_watch *w)
{
	struct program *p = container_of(w, struct program, signals);
	struct signalfd_siginfo info;

	while (read(w->fd, &info, sizeof(info)) == sizeof(info)) {
		const char *name = sigabbrev_np((int)info.ssi_signo);

		if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT) {
			if (!p->stopping)
				signals_stop(p, name);
			continue;
		}
		if (info.ssi_signo == SIGHUP)
			signals_hup(p);
		else
			log_limited(&ignored_limit, LOG_LEVEL_INFO, NULL,
				    "SIG%s: ignored: there is no log to open anew", name);
	}
	return false;
}

/* Before any thread starts: they inherit the mask. */
static int signals_open(struct program *p)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	signals_mask(SIG_BLOCK, stop_signals);
	sigemptyset(&set);
	signals_add(&set, stop_signals);
	signals_add(&set, ignored_signals);
	p->signals.fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	p->signals.events = POLLIN;
	p->signals.ready = signals_ready;
	p->signals.closed = signals_closed;
	return p->signals.fd < 0 ? -errno : 0;
}

/* ---- commands ---- */

static void ctl_add_export(void *program, const char *spec, srv_ctl_done_fn *done, void *arg)
{
	struct program *p = program;

	change_export_add(&p->change, spec, done, arg);
}

static void ctl_remove_export(void *program, const char *name, bool force, srv_ctl_done_fn *done,
			      void *arg)
{
	struct program *p = program;

	change_export_remove(&p->change, name, force, done, arg);
}

static void ctl_resize_export(void *program, const char *name, srv_ctl_done_fn *done, void *arg)
{
	struct program *p = program;

	change_export_resize(&p->change, name, done, arg);
}

static void ctl_set_export(void *program, const char *text, srv_ctl_done_fn *done, void *arg)
{
	struct program *p = program;

	change_export_set(&p->change, text, done, arg);
}

static void ctl_reload(void *program, bool force, srv_ctl_done_fn *done, void *arg)
{
	struct program *p = program;

	change_reload(&p->change, force, done, arg);
}

static void ctl_save(void *program, srv_ctl_done_fn *done, void *arg)
{
	struct program *p = program;

	change_save(&p->change, done, arg);
}

static const struct srv_ctl_ops ctl_ops = {
	.export_add = ctl_add_export,
	.export_remove = ctl_remove_export,
	.export_resize = ctl_resize_export,
	.export_set = ctl_set_export,
	.reload = ctl_reload,
	.save = ctl_save,
};

/* ---- start ---- */

static void tell_ready(struct program *p)
{
	static const char line[] = "ready\n";
	int fd = p->conf.ready_fd, rc = sd_notify(0, "READY=1");

	if (rc < 0)
		log_warn(NULL, "cannot tell NOTIFY_SOCKET '%s' that the server is ready: %s",
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
		exit(1);
	}
	apply_begin(&p->apply, &p->life, p->srv);
	apply_limits(&p->apply, &p->plan);
	change_init(&p->change, &p->conf, &p->apply, p->srv, p->argc, p->argv);
	p->commands = (struct srv_ctl){ .srv = p->srv, .ops = &ctl_ops, .program = p };
	rc = srv_ctl_open(&p->commands, &p->ctl, err, sizeof(err));
	if (rc) {
		log_err(NULL, "--control %s", err);
		exit(1);
	}
	rc = srv_metrics_open(&p->metrics, p->srv);
	if (rc) {
		log_err(NULL, "cannot serve metrics: %s", strerror(-rc));
		exit(1);
	}
	rc = loop_watch(reactor_loop(p->reactors.all[0]), &p->signals);
	if (rc) {
		log_err(NULL, "cannot watch signals: %s", strerror(-rc));
		exit(1);
	}
}

static int serve_exports(struct program *p)
{
	int rc = start_server(p);

	if (rc)
		return rc;
	serve_administrators(p);
	srv_listen_tell(p->srv);
	tell_exports(&p->exports);
	tell_protection(&p->conf);
	tell_reach(&p->conf);
	fflush(stdout);
	tell_ready(p);
	rc = reactor_run(p->reactors.all[0]);
	if (rc)
		return rc;
	reactors_detach(&p->reactors);
	change_fini(&p->change);
	export_life_fini(&p->life);
	srv_destroy(p->srv);
	return 0;
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

/* The command line makes the first plan.  0, or -errno, which is logged. */
static int prepare_start(struct program *p)
{
	char err[512];
	int rc = plan_make(&p->plan, NULL, &p->conf);

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

	if (rc)
		log_err(NULL, "%s", err);
	return rc;
}

static int run_server(struct program *p)
{
	/* ORDER: before signals are blocked, because it may wait. */
	int rc = commit_start(p);

	if (rc)
		return rc;
	rc = signals_open(p);
	if (rc)
		log_err(NULL, "cannot open a signalfd: %s", strerror(-rc));
	if (!rc)
		rc = reactors_create(&p->reactors, &p->conf, &p->exports);
	if (!rc)
		rc = reactors_start(&p->reactors);
	if (!rc)
		rc = serve_exports(p);
	reactors_destroy(&p->reactors);
	apply_fini(&p->apply);
	return rc;
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
	result = conf_parse(conf, argc, argv, errors);
	fclose(errors);
	tell_mistakes(mistakes);
	free(mistakes);
	return result;
}

/* --check: print the first plan, and carry out none of it. */
static enum opt_result check_conf(struct program *p)
{
	if (plan_make(&p->plan, NULL, &p->conf)) {
		log_err(NULL, "out of memory");
		return OPT_FAILED;
	}
	tell_plan(&p->conf, &p->plan, stdout);
	return fflush(stdout) ? OPT_FAILED : OPT_EXIT;
}

int main(int argc, char **argv)
{
	static const int status[] = { [OPT_EXIT] = 0, [OPT_USAGE] = 2, [OPT_FAILED] = 1 };
	static struct program p;
	enum opt_result result;
	int rc;

	/* ORDER: before anything else is opened: an export that became descriptor 2 would have the
	 * log written into it. */
	if (std_fds_open())
		return 1;
	/* Before exports are opened, which may take a while. */
	signals_mask(SIG_BLOCK, ignored_signals);
	log_init(sink_for(false), LOG_LEVEL_INFO);
	raise_descriptors();
	p.argc = argc;
	p.argv = argv;
	result = read_conf(&p.conf, argc, argv);
	if (result == OPT_RUN && p.conf.check)
		result = check_conf(&p);
	exports_init(&p.exports, p.conf.threads + 1);
	apply_init(&p.apply, &p.exports);
	if (result == OPT_RUN && prepare_start(&p))
		result = OPT_FAILED;
	log_init(sink_for(true), p.conf.log_level);
	rc = result == OPT_RUN ? run_server(&p) != 0 : status[result];
	exports_fini(&p.exports);
	plan_fini(&p.plan);
	conf_fini(&p.conf);
	return rc;
}
