/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the signals, and stops the program on SIGTERM, SIGINT or SIGQUIT.
 *
 * A thread takes these, so that the end has its bound (process.h) whatever reactor 0 does,
 * and so has a second signal while reactor 0 does not take the first, or the file of metrics is not
 * removed.  Then a handler has it.
 *
 * The stop goes: srv_shutdown(), and remove the file of metrics meanwhile; close the metrics; end
 * the changes and the lives of exports; stop and join the other threads; close the control socket;
 * unwatch the signals; stop reactor 0. */
#include <config.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <systemd/sd-daemon.h>
#include <time.h>
#include <unistd.h>

#include "confine.h"
#include "process.h"
#include "log.h"
#include "program.h"
#include "reactor.h"
#include "signals.h"
#include "srv-auth.h"
#include "util.h"

/* ---- signals ---- */

static const int stop_signals[] = { SIGTERM, SIGINT, SIGQUIT, 0 };

/* The control socket and the metrics while these have names: what an end by force is to take along,
 * on any thread. */
static const struct ctl *_Atomic named_ctl;
static const struct metrics *_Atomic named_metrics;

static void unlink_names(void)
{
	const struct ctl *ctl = named_ctl;

	if (ctl)
		ctl_unlink(ctl);
	metrics_unlink(named_metrics);
}

static void exit_at_once(int sig)
{
	unlink_names();
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

	confine_unwatch();
	loop_unwatch(&p->signals);
}

static void life_stopped(void *arg)
{
	struct program *p = arg;

	end_waits_for("the other threads");
	reactors_join(&p->reactors);
	end_waits_for("commands on the control socket");
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

	end_waits_for("the storage of the exports");
	/* ORDER: an answer to a command leaves before the control socket is closed. */
	apply_end(&p->apply);
	export_life_stop(&p->life, life_stopped, p);
}

static void metrics_stopped(void *arg)
{
	struct program *p = arg;

	end_waits_for("a change of the exports that runs");
	change_stop(&p->change, changes_stopped, p);
}

static void server_stopped(void *arg)
{
	struct program *p = arg;
	sigset_t set, before;

	end_waits_for("readers of metrics, and the file of metrics");
	/* ORDER: before exports lose their counters.  A second signal finds the names whole or not
	 * at all. */
	sigemptyset(&set);
	signals_add(&set, stop_signals);
	pthread_sigmask(SIG_BLOCK, &set, &before);
	named_metrics = NULL;
	srv_metrics_close(&p->metrics, metrics_stopped, p);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* A second signal has a handler from now on, which never waits for a file system. */
static void file_removed(void *arg)
{
	struct program *p = arg;

	signals_mask(SIG_UNBLOCK, stop_signals);
	sem_post(&p->stop_taken);
}

static void signals_stop(struct program *p, const char *name)
{
	struct sigaction at_once = { .sa_handler = exit_at_once };

	p->stopping = true;
	named_ctl = p->ctl;
	named_metrics = p->metrics.served;
	log_event(LOG_LEVEL_INFO, LOG_FIELDS(STOPPING), NULL,
		  "SIG%s: stopping; a second signal exits at once", name);
	sd_notify(0, "STOPPING=1");
	for (const int *sig = stop_signals; *sig; sig++)
		sigaction(*sig, &at_once, NULL);
	end_waits_for("requests in flight");
	srv_shutdown(p->srv, server_stopped, p);
	/* ORDER: after the listeners, which have taken the names of unix sockets along. */
	metrics_remove_file(p->metrics.served, file_removed, p);
}

static void stop_msg(struct loop_msg *msg)
{
	struct program *p = container_of(msg, struct program, stop_msg);

	signals_stop(p, sigabbrev_np(p->stop_sig));
}

/* A second signal before file_removed(): reactor 0 may never take the first one, and the file
 * system of the metrics may not answer.  Of a start that has failed there is nothing to stop. */
static void second_signal(struct program *p, const sigset_t *set)
{
	static const struct timespec at_once;
	struct timespec until;
	int sig;

	do {
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec++;
		if (sem_clockwait(&p->stop_taken, CLOCK_MONOTONIC, &until) == 0)
			return;
		sig = sigtimedwait(set, NULL, &at_once);
	} while (sig < 0);
	if (!p->start_failed)
		exit_at_once(sig);
}

static void *stop_main(void *arg)
{
	struct program *p = arg;
	sigset_t set;

	sigemptyset(&set);
	signals_add(&set, stop_signals);
	while (sigwait(&set, &p->stop_sig))
		;
	if (p->start_failed)
		return NULL;
	end_begin();
	loop_post(reactor_loop(p->reactors.all[0]), &p->stop_msg);
	second_signal(p, &set);
	return NULL;
}

static void signals_hup(struct program *p)
{
	if (p->stopping)
		return;
	if (p->conf.config || srv_keys_any(p->srv))
		change_hup(&p->change);
	else
		signals_tell_ignored(SIGHUP, "there is no configuration file, no file of keys and "
				     "no log file to reopen");
}

static bool signals_ready(struct loop_watch *w)
{
	struct program *p = container_of(w, struct program, signals);
	struct signalfd_siginfo info;

	while (read(w->fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGHUP)
			signals_hup(p);
		else
			signals_tell_ignored((int)info.ssi_signo, NULL);
	}
	return false;
}

void stop_begin(void)
{
	signals_mask(SIG_BLOCK, signals_of_habit);
}

int stop_open(struct program *p)
{
	sigset_t set;
	int rc;

	signal(SIGPIPE, SIG_IGN);
	signals_mask(SIG_BLOCK, stop_signals);
	sigemptyset(&set);
	signals_add(&set, signals_of_habit);
	p->signals.fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	p->signals.events = POLLIN;
	p->signals.ready = signals_ready;
	p->signals.closed = signals_closed;
	if (p->signals.fd < 0)
		return -errno;
	loop_msg_init(&p->stop_msg, stop_msg);
	sem_init(&p->stop_taken, 0, 0);
	rc = end_init(unlink_names);
	return rc < 0 ? rc : -pthread_create(&p->stop_thread, NULL, stop_main, p);
}

void stop_close(struct program *p)
{
	pthread_join(p->stop_thread, NULL);
	sem_destroy(&p->stop_taken);
}

void stop_abort(struct program *p)
{
	p->start_failed = true;
	sem_post(&p->stop_taken);
	pthread_kill(p->stop_thread, SIGTERM);
	stop_close(p);
	/* ORDER: nobody posts any more, and reactor_destroy() runs what is posted. */
	loop_unpost(reactor_loop(p->reactors.all[0]), &p->stop_msg);
	signals_mask(SIG_UNBLOCK, stop_signals);
}
