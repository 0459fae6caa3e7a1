/* SPDX-License-Identifier: BSD-3-Clause */
/* The program: options, a session, an open export, a device, and the wait for the end.
 *
 * The main thread makes the device and ends it, and waits between for signals, for news of the
 * driver, for another size, and for a wish of rtrs-detach; all IO runs on the session's loops.
 *
 * SIGTERM, SIGINT and SIGQUIT end the program: a device that nobody uses is removed, and one in use
 * is left, with its requests, to the next process.  SIGHUP has the session read keys and
 * certificates again; SIGUSR1 is a wish of rtrs-detach.  A failure at the start is a line on stderr
 * and an exit status. */
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
#include <time.h>
#include <unistd.h>

#include "attach-remove.h"
#include "attach-users.h"
#include "attach.h"
#include "clock.h"
#include "clt-export.h"
#include "clt-loop.h"
#include "daemon.h"
#include "journal.h"
#include "log.h"
#include "number.h"
#include "process.h"
#include "signals.h"
#include "unix-sock.h"
#include "util.h"

/* How often the main thread looks: for the size of the export, and for the last user of a device
 * that is to go then. */
#define SIZE_LOOK_MS 10000
#define UNUSED_LOOK_MS 500
#define USERS_WAIT_MS 1000		/* for one who only looks at the device */

static struct attach_options options;
static struct clt_start start;
static struct attach attach = { .wake_fd = -1 };
static int signal_fd = -1;

static const struct attach_driver *const drivers[ATTACH_VIAS] = {
	[ATTACH_VIA_NBD] = &attach_via_nbd,
};

/* ---- the log ---- */

/* A daemon that is ready has no stderr. */
static atomic_bool to_syslog;

static void attach_log(enum log_level level, const char *line)
{
	static const int priority[] = { LOG_ERR, LOG_WARNING, LOG_INFO, LOG_DEBUG };

	if (atomic_load(&to_syslog))
		syslog(LOG_DAEMON | priority[level], "%s: %s", options.name, line);
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

/* ---- start ---- */

/* The first driver that this kernel can; or the one that was asked for, or that has the device. */
static int choose_driver(char *err, size_t len)
{
	const char *had = attach.state.driver;
	char why[256];
	int r = -EOPNOTSUPP;

	snprintf(err, len, "--via=auto: no driver '%s'", had);
	for (unsigned i = 0; r < 0 && i < ATTACH_VIAS; i++) {
		if (!drivers[i] || (*had ? strcmp(drivers[i]->name, had) :
					   options.via != ATTACH_VIA_AUTO && options.via != i))
			continue;
		attach.driver = drivers[i];
		r = drivers[i]->probe(why, sizeof(why));
		if (r < 0)
			snprintf(err, len, "--via=%s: %s", drivers[i]->name, why);
	}
	return r;
}

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

/* True if a device waits for this process: then the process waits for the server, as long as it
 * takes. */
static bool takes_over(void)
{
	return *attach.state.driver;
}

/* Open the export in the session, which stays. */
static int open_export(char *err)
{
	const struct timespec nap = { .tv_sec = 1 };
	bool waits = options.session.connect_timeout_ms == CLOCK_NEVER;
	int r = clt_start_session(&start, err);

	if (r < 0)
		return r;
	attach.start = &start;
	do {
		r = clt_export_open(&start.run.clt, &options.session,
				    options.session.export_name, &attach.dev, err);
	} while (waits && (r == -EIO || r == -EAGAIN || r == -ECONNABORTED) &&
		 nanosleep(&nap, NULL) == 0);
	if (r < 0)
		clt_start_end(&start);
	return r;
}

static void close_export(void)
{
	attach_size_end(&attach);
	dev_close(attach.dev);
	attach.dev = NULL;
	clt_start_end(&start);
}

/* Make the device, and tell everybody.  0, or -errno with @err. */
static int start_device(char *err, size_t len)
{
	struct attach_state *s = &attach.state;
	char why[256], node[ATTACH_NODE_LEN];
	bool is_new = !takes_over();
	int r;

	s->pid = (int)getpid();
	if (s->wish == ATTACH_GOES)
		s->wish = ATTACH_STAYS;
	snprintf(s->driver, sizeof(s->driver), "%s", attach.driver->name);
	/* A rule of udev reads the state as soon as the device is there. */
	r = attach_state_write(s, err, len);
	if (r == 0)
		r = attach.driver->start(&attach, err, len);
	if (r < 0) {
		if (is_new)
			attach_forget(s);
		return r;
	}
	attach_size_begin(&attach);
	r = attach_state_write(s, err, len);
	if (r == 0)
		r = attach_node_make(s, err, len);
	if (r < 0) {
		if (is_new && attach_remove(s, why, sizeof(why)) == 0)
			attach_forget(s);
		attach.driver->stop(&attach);
		return r;
	}
	log_info(NULL, "%s is /dev/%s", attach_node(s->name, node), s->disk);
	puts(node);
	return std_out_flush();
}

/* ---- the wait ---- */

enum end {
	END_NOT_YET,
	END_BY_SIGNAL,
	END_REMOVED,			/* the device, for rtrs-detach or by it */
	END_GONE,			/* the device has gone, nobody said why */
};

static const int stop_signals[] = { SIGTERM, SIGINT, SIGQUIT, 0 };

static void signals_set(sigset_t *set)
{
	sigemptyset(set);
	signals_add(set, stop_signals);
	signals_add(set, signals_of_habit);
}

/* Remove the device unless somebody uses it, for longer than @ms.  While it goes, no file system
 * can have it. */
static bool remove_unused(unsigned ms)
{
	char err[256] = "";
	int fd = attach_users_keep_out(attach.state.disk, ms), r = MIN(fd, 0);

	if (r == 0)
		r = attach_remove(&attach.state, err, sizeof(err));
	if (fd >= 0)
		close(fd);
	if (r < 0 && *err)
		log_warn(NULL, "%s", err);
	return r == 0;
}

/* Look what rtrs-detach has written. */
static enum end look_for_wish(void)
{
	struct attach_state s;
	char err[256];

	if (attach_state_read(&s, attach.state.name, err, sizeof(err)) < 0)
		return END_NOT_YET;
	attach.state.wish = s.wish;
	if (s.wish == ATTACH_GOES)
		return END_REMOVED;
	return s.wish == ATTACH_GOES_UNUSED && remove_unused(0) ? END_REMOVED : END_NOT_YET;
}

static enum end take_signal(void)
{
	struct signalfd_siginfo info;
	int sig;

	if (read(signal_fd, &info, sizeof(info)) != sizeof(info))
		return END_NOT_YET;
	sig = (int)info.ssi_signo;
	if (sig == SIGUSR1)
		return look_for_wish();
	if (sig == SIGHUP)
		clt_reload_hup(&start.reload);
	else if (sig == SIGUSR2)
		signals_tell_ignored(sig, NULL);
	else
		return END_BY_SIGNAL;
	return END_NOT_YET;
}

static enum end take_wake(void)
{
	eventfd_t n;

	eventfd_read(attach.wake_fd, &n);
	/* ORDER: a wish is written before the device goes, and a driver would want it back. */
	if (look_for_wish() == END_REMOVED)
		return END_REMOVED;
	attach_size_take(&attach);
	return !attach.driver->news || attach.driver->news(&attach) ? END_NOT_YET : END_GONE;
}

static enum end wait_for_end(void)
{
	struct pollfd fds[] = { { .fd = signal_fd, .events = POLLIN },
				{ .fd = attach.wake_fd, .events = POLLIN } };
	enum end end = END_NOT_YET;
	int n;

	while (end == END_NOT_YET) {
		n = poll(fds, ARRAY_SIZE(fds),
			 attach.state.wish == ATTACH_GOES_UNUSED ? UNUSED_LOOK_MS : SIZE_LOOK_MS);
		if (n == 0) {
			attach_size_look(&attach);
			end = look_for_wish();
		}
		if (n > 0 && fds[0].revents)
			end = take_signal();
		if (n > 0 && end == END_NOT_YET && fds[1].revents)
			end = take_wake();
	}
	return end;
}

/* ---- the end ---- */

/* End the work on the device.  Returns the exit status: a unit is started again but for
 * EXIT_DONE. */
static int stop_device(enum end end)
{
	bool removed = end == END_REMOVED;

	if (end == END_BY_SIGNAL)
		removed = remove_unused(USERS_WAIT_MS);
	if (end == END_GONE)
		log_warn(NULL, "/dev/%s was removed by another program than rtrs-detach",
			 attach.state.disk);
	else if (!removed)
		log_warn(NULL, "/dev/%s is in use: it stays, and its requests wait for the next "
			 "rtrs-attach %s", attach.state.disk, attach.state.name);
	/* ORDER: requests that wait fail now, and the kernel hears of none. */
	client_lose_patience(&start.run.clt);
	attach.driver->stop(&attach);
	if (removed || end == END_GONE)
		attach_forget(&attach.state);
	return removed ? EXIT_DONE : EXIT_FAILED;
}

/* ---- the whole ---- */

static int serve(void)
{
	char err[CLT_FRONT_ERR] = "";
	sigset_t set;
	int r = open_export(err), status;

	if (r < 0)
		return main_complain(err);
	/* Until here a signal ends the program. */
	signals_set(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
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
	status = (int)wait_for_end();
	signals_mask(SIG_UNBLOCK, stop_signals);
	sd_notify(0, "STOPPING=1");
	end_begin();
	end_waits_for("the kernel to let go of the device");
	status = stop_device((enum end)status);
	end_waits_for("the session to close");
	close_export();
	return status;
}

static int begin(int *lock, char err[CLT_FRONT_ERR])
{
	struct attach_state *s = &attach.state;
	int r;

	r = *lock = attach_state_lock(options.name, err, CLT_FRONT_ERR);
	if (r < 0)
		return r;
	r = attach_state_read(s, options.name, err, CLT_FRONT_ERR);
	if (r < 0 && r != -ENOENT)
		return r;
	if (takes_over() && strcmp(s->export_name, options.session.export_name))
		return fmt_error(-EEXIST, err, CLT_FRONT_ERR, "%s is the export '%.64s' of %.64s, "
				 "and waits for its process: attach that one, or rtrs-detach %s "
				 "first", s->name, s->export_name, s->server, s->name);
	if (takes_over()) {
		options.session.connect_timeout_ms = CLOCK_NEVER;
		s->pid = 0;
		r = attach_state_write(s, err, CLT_FRONT_ERR);
		if (r < 0)
			return r;
	}
	snprintf(s->server, sizeof(s->server), "%s", options.session.server);
	snprintf(s->export_name, sizeof(s->export_name), "%s", options.session.export_name);
	r = choose_driver(err, CLT_FRONT_ERR);
	return r < 0 ? r : clt_probe(&start, err);
}

static int run(int *lock)
{
	char err[CLT_FRONT_ERR] = "";

	if (options.foreground && log_begin() < 0)
		return main_complain("cannot start a thread");
	if (begin(lock, err) < 0)
		return main_complain(err);
	if (!options.foreground && daemon_begin() < 0)
		return main_complain("cannot become a daemon");
	keep_in_memory();
	if ((!options.foreground && log_begin() < 0) || end_init(NULL) < 0)
		return main_complain("cannot start a thread");
	return serve();
}

int main(int argc, char **argv)
{
	int status, lock = -1;
	sigset_t set;

	/* ORDER: before anything else is opened. */
	if (std_fds_open() < 0)
		return EXIT_FAILED;
	signals_begin();
	signals_mask(SIG_BLOCK, signals_of_habit);
	status = attach_options_parse(&options, &front, argc, argv);
	if (status < 0 && options.udev)
		status = attach_list_udev(options.udev);
	else if (status < 0 && options.list)
		status = attach_list(options.format == ATTACH_JSON);
	if (status >= 0) {
		attach_options_fini(&options);
		return status;
	}
	attach.options = &options;
	log_init(attach_log, options.verbose ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARN);
	log_init_record(journal_open("rtrs-attach"));
	signal(SIGPIPE, SIG_IGN);
	signals_set(&set);
	signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	attach.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	clt_start_init(&start, &options.session);
	if (signal_fd < 0 || attach.wake_fd < 0)
		status = main_complain(strerror(errno));
	else
		status = run(&lock);
	end_over();
	log_end(NULL);
	if (lock >= 0)
		attach_state_unlock(lock, options.name);
	attach_options_fini(&options);
	end_with(status);
}
