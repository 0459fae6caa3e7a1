/* SPDX-License-Identifier: BSD-3-Clause */
/* The program: options, a session, an open export, a device, and the wait for the end.
 *
 * The main thread makes the device and ends it, and waits between for signals and for the driver;
 * all IO runs on the session's loops.  SIGTERM and SIGINT end the program: a device that nobody
 * uses is detached, one in use is left to the next process.  SIGHUP has the session read keys and
 * certificates again.  A failure at the start is a line on stderr and an exit status. */
#include <config.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <syslog.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "attach.h"
#include "clt-export.h"
#include "clt-loop.h"
#include "daemon.h"
#include "journal.h"
#include "log.h"
#include "process.h"
#include "signals.h"
#include "unix-sock.h"
#include "util.h"

static struct attach_options options;
static struct clt_start start;
static struct attach attach;
static int wake_fd = -1, signal_fd = -1;

static const struct attach_driver *const drivers[ATTACH_VIAS] = {
	[ATTACH_VIA_NBD] = &attach_via_nbd,
};

void attach_wake(struct attach *a)
{
	eventfd_write(wake_fd, 1);
}

/* ---- the log ---- */

/* A daemon that is ready has no stderr. */
static atomic_bool to_syslog;

static void attach_log(enum log_level level, const char *line)
{
	static const int priority[] = { LOG_ERR, LOG_WARNING, LOG_INFO, LOG_DEBUG };

	if (atomic_load(&to_syslog))
		syslog(LOG_DAEMON | priority[level], "%s", line);
	else
		log_to_stderr("rtrs-attach: %s\n", line);
}

static int main_complain(const char *err)
{
	fprintf(stderr, "rtrs-attach: %s\n", err);
	return EXIT_FAILED;
}

/* ---- the front end ---- */

/* A file may be that of the other end. */
static const char *const of_rtrs_server[] = {
	"listen", "allow", "read-only", "iops", "iops-read", "iops-write", "bps", "bps-read",
	"bps-write", "burst", "priority", "direct", "shared", "queue-depth", "max-io-size",
	"lock-timeout", "invalidate", "max-sessions", "max-paths", "max-connections", "max-memory",
	"state-dir", "strict", NULL
};

static const struct clt_front front = {
	.name = RUNDIR_ATTACH,
	.others = of_rtrs_server,
	.others_are = "an option of rtrs-server: expected it in the file of the server",
	.program = "rtrs-attach",
	.help = "rtrs-attach --help",
	.options = &attach_options,
	.conf_size = sizeof(struct attach_options),
	.defaults = attach_options_defaults,
	.complete = attach_options_complete,
	.wait = &clt_loop_wait,
	.start_fds = 8, /* the lock, signals, the system log, the driver */
	.client_fds = 2,
};

/* ---- the driver ---- */

/* The first driver that this kernel can, or the one that was asked for. */
static int choose_driver(char *err, size_t len)
{
	char why[256];
	int r = -EOPNOTSUPP;

	for (unsigned i = 0; r < 0 && i < ATTACH_VIAS; i++) {
		if (!drivers[i] || (options.via != ATTACH_VIA_AUTO && options.via != i))
			continue;
		attach.driver = drivers[i];
		r = drivers[i]->probe(why, sizeof(why));
		if (r < 0)
			snprintf(err, len, "--via=%s: %s", drivers[i]->name, why);
	}
	return r;
}

/* ---- start ---- */

/* A page that is to be written to this device may have to be free before this process can go on: it
 * waits for none. */
static void keep_in_memory(void)
{
	if (prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) < 0)
		log_warn(NULL, "cannot become a process that writes back memory: %s; it may hang "
			 "when memory is short", strerror(errno));
	if (mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) < 0)
		log_warn(NULL, "cannot lock its memory: %s; it may hang when memory is short",
			 strerror(errno));
}

static int open_export(char *err)
{
	int r = clt_start_session(&start, err);

	if (r < 0)
		return r;
	attach.start = &start;
	r = clt_export_open(&start.run.clt, &options.session, options.session.export_name,
			    &attach.dev, err);
	if (r < 0)
		clt_start_end(&start);
	return r;
}

static void close_export(void)
{
	if (attach.dev)
		dev_close(attach.dev);
	attach.dev = NULL;
	clt_start_end(&start);
}

/* Make the device, and tell everybody.  0, or -errno with @err. */
static int start_device(char *err, size_t len)
{
	struct attach_state *s = &attach.state;
	char why[256], node[ATTACH_NODE_LEN];
	int r = attach.driver->start(&attach, err, len);

	if (r < 0)
		return r;
	snprintf(s->driver, sizeof(s->driver), "%s", attach.driver->name);
	s->pid = (int)getpid();
	r = attach_state_write(s, err, len);
	if (r == 0)
		r = attach_node_make(s, err, len);
	if (r < 0) {
		attach.driver->stop(&attach, ATTACH_LEAVE, why, sizeof(why));
		return r;
	}
	log_info(NULL, "%s is /dev/%s", attach_node(s->name, node), s->disk);
	puts(node);
	return std_out_flush();
}

/* ---- end ---- */

/* End the work on the device: detach it, or leave it if it is used. */
static void stop_device(void)
{
	enum attach_stop how = attach_node_used(attach.state.disk) ? ATTACH_LEAVE : ATTACH_DETACH;
	char err[256];

	if (attach.driver->stop(&attach, how, err, sizeof(err)) < 0) {
		log_warn(NULL, "%s", err);
		how = ATTACH_LEAVE;
		attach.driver->stop(&attach, how, err, sizeof(err));
	}
	if (how == ATTACH_LEAVE) {
		log_warn(NULL, "/dev/%s is in use: it stays, and waits for the next rtrs-attach",
			 attach.state.disk);
		return;
	}
	attach_node_remove(&attach.state);
	attach_state_remove(attach.state.name);
}

/* ---- signals ---- */

static const int stop_signals[] = { SIGTERM, SIGINT, SIGQUIT, 0 };

static void signals_set(sigset_t *set)
{
	sigemptyset(set);
	signals_add(set, stop_signals);
	signals_add(set, signals_of_habit);
}

/* False: the program is to end. */
static bool take_signal(void)
{
	struct signalfd_siginfo info;
	int sig;

	if (read(signal_fd, &info, sizeof(info)) != sizeof(info))
		return true;
	sig = (int)info.ssi_signo;
	if (sig == SIGHUP)
		clt_reload_hup(&start.reload);
	else if (sig == SIGUSR1 || sig == SIGUSR2)
		signals_tell_ignored(sig, NULL);
	else
		return false;
	return true;
}

static void wait_for_end(void)
{
	struct pollfd fds[] = { { .fd = signal_fd, .events = POLLIN },
				{ .fd = wake_fd, .events = POLLIN } };
	eventfd_t n;

	for (;;) {
		if (poll(fds, ARRAY_SIZE(fds), -1) < 0)
			continue;
		if (fds[0].revents && !take_signal())
			return;
		if (fds[1].revents && eventfd_read(wake_fd, &n) == 0 && attach.driver->news)
			attach.driver->news(&attach);
	}
}

/* ---- the whole ---- */

static int serve(void)
{
	char err[CLT_FRONT_ERR] = "";
	int r = open_export(err);

	if (r < 0)
		return main_complain(err);
	r = start_device(err, sizeof(err));
	if (r < 0) {
		close_export();
		return main_complain(err);
	}
	sd_notify(0, "READY=1");
	if (!options.foreground) {
		openlog("rtrs-attach", LOG_PID, LOG_DAEMON);
		atomic_store(&to_syslog, true);
	}
	daemon_ready();
	wait_for_end();
	signals_mask(SIG_UNBLOCK, stop_signals);
	sd_notify(0, "STOPPING=1");
	end_begin();
	end_waits_for("the kernel to let go of the device");
	stop_device();
	end_waits_for("the session to close");
	close_export();
	return EXIT_DONE;
}

static int run(void)
{
	char err[CLT_FRONT_ERR] = "";
	int r;

	if (options.foreground && log_begin() < 0)
		return main_complain("cannot start a thread");
	r = attach_state_lock(options.name, err, sizeof(err));
	if (r >= 0) {
		r = attach_state_read(&attach.state, options.name, err, sizeof(err));
		r = r == -ENOENT || r == -EINVAL ? 0 : r;
	}
	if (r == 0)
		r = choose_driver(err, sizeof(err));
	if (r == 0)
		r = clt_probe(&start, err);
	if (r < 0)
		return main_complain(err);
	if (!options.foreground && daemon_begin() < 0)
		return main_complain("cannot become a daemon");
	keep_in_memory();
	if ((!options.foreground && log_begin() < 0) || end_init(NULL) < 0)
		return main_complain("cannot start a thread");
	snprintf(attach.state.server, sizeof(attach.state.server), "%s", options.session.server);
	snprintf(attach.state.export_name, sizeof(attach.state.export_name), "%s",
		 options.session.export_name);
	return serve();
}

int main(int argc, char **argv)
{
	sigset_t set;
	int status;

	/* ORDER: before anything else is opened. */
	if (std_fds_open() < 0)
		return EXIT_FAILED;
	signals_begin();
	signals_mask(SIG_BLOCK, signals_of_habit);
	status = attach_options_parse(&options, &front, argc, argv);
	if (status >= 0) {
		attach_options_fini(&options);
		return status;
	}
	attach.options = &options;
	log_init(attach_log, options.verbose ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARN);
	log_init_record(journal_open("rtrs-attach"));
	signal(SIGPIPE, SIG_IGN);
	/* ORDER: before any thread starts, because threads inherit the mask. */
	signals_set(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	clt_start_init(&start, &options.session);
	if (signal_fd < 0 || wake_fd < 0)
		status = main_complain(strerror(errno));
	else
		status = run();
	end_over();
	log_end(NULL);
	attach_options_fini(&options);
	end_with(status);
}
