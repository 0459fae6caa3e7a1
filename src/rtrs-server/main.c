/* SPDX-License-Identifier: BSD-3-Clause */
/* The program: reads the command line, makes the reactors and their threads, starts the server,
 * says that it is ready, and stops all on SIGTERM or SIGINT.
 *
 * Reactor 0 is the main thread's and the control thread; it never waits for the storage, so that
 * signals, heartbeats and new connections are served whatever the storage does.  The stop goes:
 * srv_shutdown(); when it is done stop and join the other threads; close the control socket; unwatch
 * the signals; stop reactor 0; srv_destroy().  A start that fails undoes what was done, in reverse, with one line on
 * stderr. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <time.h>
#include <unistd.h>

#include "conf.h"
#include "ctl.h"
#include "export-io.h"
#include "export-state.h"
#include "log.h"
#include "reactor.h"
#include "srv-ctl.h"
#include "srv.h"
#include "tell.h"
#include "util.h"

#define RING_ENTRIES 256

struct thread {
	struct program *program;
	struct reactor *reactor;
	pthread_t id;
	bool running;
	sem_t attached;
	int status;			/* of attaching; before @attached */
	char err[256];
};

struct program {
	struct srv_conf conf;
	struct thread *threads;		/* 0: the main thread; 1.. conf.threads: for IO */
	unsigned nthreads;
	struct srv *srv;
	struct ctl *ctl;		/* NULL: no control socket */
	struct loop_watch signals;
	bool stopping;
};

/* ---- log ---- */

#define STAMP_LEN sizeof("2026-01-31T23:59:59.999+00:00")

/* The journal takes the level from a prefix. */
static void journal_sink(enum log_level level, const char *line)
{
	static const char *const prefix[] = { SD_ERR, SD_WARNING, SD_INFO, SD_DEBUG };

	fprintf(stderr, "%s%s\n", prefix[level], line);
}

/* For the person who typed the command line. */
static void stderr_sink(enum log_level level, const char *line)
{
	fprintf(stderr, "rtrs-server: %s: %s\n", log_level_name(level), line);
}

/* Local time as in RFC 3339. */
static void stamp_now(char stamp[STAMP_LEN])
{
	char second[32], zone[8];
	struct timespec now;
	struct tm tm;

	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &tm);
	strftime(second, sizeof(second), "%FT%T", &tm);
	strftime(zone, sizeof(zone), "%z", &tm);
	snprintf(stamp, STAMP_LEN, "%.19s.%03u%.3s:%.2s", second,
		 (unsigned)(now.tv_nsec / 1000000) % 1000, zone, zone + 3);
}

/* Of a server that runs, where nobody else writes down when a line came. */
static void stamped_sink(enum log_level level, const char *line)
{
	char stamp[STAMP_LEN];

	stamp_now(stamp);
	fprintf(stderr, "%s rtrs-server: %s: %s\n", stamp, log_level_name(level), line);
}

/* The variable is inherited by all that a service starts, wherever their stderr goes. */
static bool stderr_is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;

	return stream && sscanf(stream, "%llu:%llu", &dev, &ino) == 2 &&
	       !fstat(STDERR_FILENO, &st) && st.st_dev == dev && st.st_ino == ino;
}

/* ---- threads ---- */

static void thread_attach(struct thread *t, bool control)
{
	t->status = export_ring_attach(t->reactor, t->program->conf.exports, control, t->err,
				       sizeof(t->err));
	sem_post(&t->attached);
}

static void *thread_main(void *arg)
{
	struct thread *t = arg;

	thread_attach(t, false);
	if (t->status)
		return NULL;
	if (reactor_run(t->reactor)) {
		/* The requests of this thread are never answered, and the rest cannot do without
		 * it. */
		log_err(reactor_name(t->reactor), "the reactor has failed: giving up");
		_exit(1);
	}
	return NULL;
}

static int threads_create(struct program *p)
{
	p->nthreads = p->conf.threads + 1;
	p->threads = calloc(p->nthreads, sizeof(*p->threads));
	if (!p->threads) {
		log_err(NULL, "out of memory");
		return -ENOMEM;
	}
	for (unsigned i = 0; i < p->nthreads; i++) {
		char name[32];
		int rc;

		snprintf(name, sizeof(name), "reactor %u", i);
		p->threads[i].program = p;
		rc = reactor_create(name, RING_ENTRIES, &p->threads[i].reactor);
		if (rc)
			return rc;
		if (i)			/* the control thread has no need to be quick */
			reactor_set_poll(p->threads[i].reactor, p->conf.poll_us);
		sem_init(&p->threads[i].attached, 0, 0);
	}
	return 0;
}

static int threads_start(struct program *p)
{
	for (unsigned i = 1; i < p->nthreads; i++) {
		struct thread *t = &p->threads[i];
		int rc = pthread_create(&t->id, NULL, thread_main, t);

		if (rc) {
			log_err(NULL, "cannot start thread %u: %s", i, strerror(rc));
			return -rc;
		}
		pthread_setname_np(t->id, reactor_name(t->reactor));
		t->running = true;
	}
	thread_attach(&p->threads[0], true);
	for (unsigned i = 0; i < p->nthreads; i++) {
		struct thread *t = &p->threads[i];

		sem_wait(&t->attached);
		if (t->status) {
			log_err(NULL, "%s", t->err);
			return t->status;
		}
	}
	return 0;
}

static void threads_join(struct program *p)
{
	for (unsigned i = 1; i < p->nthreads; i++) {
		if (p->threads[i].running)
			reactor_stop(p->threads[i].reactor);
	}
	for (unsigned i = 1; i < p->nthreads; i++) {
		if (p->threads[i].running)
			pthread_join(p->threads[i].id, NULL);
		p->threads[i].running = false;
	}
}

static void threads_destroy(struct program *p)
{
	if (!p->threads)
		return;
	threads_join(p);
	/* ORDER: the control thread opens exports anew, and looks at the descriptions of all rings
	 * then: none is detached until that thread, too, has ended. */
	for (unsigned i = 0; i < p->nthreads; i++) {
		if (p->threads[i].reactor)
			export_ring_detach(p->threads[i].reactor);
	}
	for (unsigned i = 0; i < p->nthreads; i++)
		reactor_destroy(p->threads[i].reactor);
	free(p->threads);
}

/* ---- stop ---- */

static void exit_at_once(int sig)
{
	_exit(128 + sig);
}

static void signals_closed(struct loop_watch *w)
{
	struct program *p = container_of(w, struct program, signals);

	close(w->fd);
	reactor_stop(p->threads[0].reactor);
}

static void ctl_stopped(void *arg)
{
	struct program *p = arg;

	loop_unwatch(&p->signals);
}

static void stopped(void *arg)
{
	struct program *p = arg;

	threads_join(p);
	if (p->ctl)
		ctl_close(p->ctl, ctl_stopped, p);
	else
		ctl_stopped(p);
}

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

static struct log_limit ignored_limit = LOG_LIMIT_INIT(4, 10000);

static void signals_stop(struct program *p, const char *name)
{
	struct sigaction at_once = { .sa_handler = exit_at_once };

	p->stopping = true;
	log_info(NULL, "SIG%s: stopping; a second signal exits at once", name);
	sd_notify(0, "STOPPING=1");
	sigaction(SIGTERM, &at_once, NULL);
	sigaction(SIGINT, &at_once, NULL);
	signals_mask(SIG_UNBLOCK, stop_signals);
	srv_shutdown(p->srv, stopped, p);
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
		log_limited(&ignored_limit, LOG_LEVEL_INFO, NULL, "SIG%s: ignored: there is no file to "
			    "read again and no log to open anew; restart the server to change options",
			    name);
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

/* The part that depends on a client's device is told with the first client (srv-key.c). */
static void tell_protection(const struct srv_conf *conf)
{
	static const char *const what[] = {
		[SRV_INVALIDATE_AUTO] = "by keys or by copies, as their device can",
		[SRV_INVALIDATE_ALWAYS] = "by keys that end with them",
		[SRV_INVALIDATE_COPY] = "by copies",
		[SRV_INVALIDATE_NEVER] = "not at all: clients must be trusted",
	};

	log_info(NULL, "requests are protected from their clients %s (--invalidate)",
		 what[conf->invalidate]);
}

static int serve(struct program *p)
{
	struct reactor **reactors = calloc(p->nthreads, sizeof(struct reactor *));
	struct reactor *control = p->threads[0].reactor;
	char err[512];
	int rc;

	if (!reactors) {
		log_err(NULL, "out of memory");
		return -ENOMEM;
	}
	for (unsigned i = 0; i < p->nthreads; i++)
		reactors[i] = p->threads[i].reactor;
	rc = srv_start(&p->conf, reactors, p->nthreads, &p->srv, err, sizeof(err));
	free(reactors);
	if (rc) {
		log_err(NULL, "%s", err);
		return rc;
	}
	rc = srv_ctl_open(p->srv, &p->ctl, err, sizeof(err));
	if (rc) {
		log_err(NULL, "--control %s", err);
		exit(1);		/* the server runs already; nobody has been told so */
	}
	rc = loop_watch(reactor_loop(control), &p->signals);
	if (rc) {
		log_err(NULL, "cannot watch signals: %s", strerror(-rc));
		exit(1);		/* the server runs already; nobody has been told so */
	}
	srv_tell(p->srv);
	tell_exports(&p->conf);
	tell_protection(&p->conf);
	tell_reach(&p->conf);
	fflush(stdout);
	tell_ready(p);
	rc = reactor_run(control);
	if (!rc)
		srv_destroy(p->srv);
	return rc;
}

/* The first open() of a program takes the place of a standard descriptor that is closed; an export
 * that became descriptor 2 would have the log written into it.  0 or -errno. */
static int open_standard_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		/* The lowest one that is free is @fd. */
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
			return -errno;
	}
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

/* ORDER: the lock first, because the state of a file belongs to the one who has it. */
static int exports_take(const struct srv_conf *conf)
{
	char err[512];
	int rc = conf->no_lock ? 0 : exports_lock(conf->exports, err, sizeof(err));

	if (rc)
		log_err(NULL, "%s", err);
	else
		export_state_open(conf->exports, conf->state_dir);
	return rc;
}

static int run(struct program *p)
{
	/* ORDER: before signals are blocked, because it may wait. */
	int rc = exports_take(&p->conf);

	if (rc)
		return rc;
	rc = signals_open(p);
	if (rc)
		log_err(NULL, "cannot open a signalfd: %s", strerror(-rc));
	if (!rc)
		rc = threads_create(p);
	if (!rc)
		rc = threads_start(p);
	if (!rc)
		rc = serve(p);
	threads_destroy(p);
	export_state_close(p->conf.exports);
	return rc;
}

int main(int argc, char **argv)
{
	static const int status[] = { [CONF_EXIT] = 0, [CONF_USAGE] = 2, [CONF_FAILED] = 1 };
	bool journal = stderr_is_journal();
	struct program p = { 0 };
	enum conf_result result;
	char err[512];
	int rc;

	/* ORDER: before anything else is opened. */
	if (open_standard_descriptors())
		return 1;
	/* Before exports are opened, which may take a while. */
	signals_mask(SIG_BLOCK, ignored_signals);
	log_init(journal ? journal_sink : stderr_sink, LOG_LEVEL_INFO);
	raise_descriptors();
	result = conf_parse(&p.conf, argc, argv, err, sizeof(err));
	if (result == CONF_USAGE || result == CONF_FAILED)
		log_err(NULL, "%s", err);
	log_init(journal ? journal_sink : stamped_sink, p.conf.log_level);
	rc = result == CONF_RUN ? run(&p) != 0 : status[result];
	conf_fini(&p.conf);
	return rc;
}
