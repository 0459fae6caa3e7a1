/* SPDX-License-Identifier: BSD-3-Clause */
/* The program: options, a session, an open export, and a device (attach-run.c).
 *
 * The main thread makes the device, serves it, and ends it; all IO runs on the session's loops.
 * Until the device is there a signal ends the program; a failure is a line on stderr and an exit
 * status. */
#include <config.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "attach.h"
#include "cleanup.h"
#include "clock.h"
#include "clt-argv.h"
#include "clt-export.h"
#include "clt-kept.h"
#include "clt-loop.h"
#include "journal.h"
#include "log.h"
#include "number.h"
#include "process.h"
#include "signals.h"
#include "unix-sock.h"
#include "util.h"

static struct attach_options options;
static struct clt_start start;
static struct attach attach = { .lock = -1, .helper.fd = -1 };

static int main_complain(const char *err)
{
	fprintf(stderr, "rtrs-attach: %s\n", err);
	return EXIT_FAILED;
}

/* A thread of the start failed with @rc. */
static int complain_thread(int rc)
{
	fprintf(stderr, "rtrs-attach: cannot start a thread: %s\n", threads_strerror(rc));
	return EXIT_FAILED;
}

/* ---- the front end ---- */

static const struct clt_front front = {
	.name = RUNDIR_ATTACH,
	.others = clt_argv_of_server,
	.others_are = clt_argv_of_server_are,
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

/* The driver of the device, or of a new one: the driver that was asked for, or the first one that
 * this kernel can. */
static int choose_driver(char *err, size_t len)
{
	const char *name = attach.state.driver;
	int r = -EOPNOTSUPP;
	char why[256];

	*err = '\0';
	for (unsigned i = 0; r < 0 && i < ATTACH_VIAS; i++) {
		const struct attach_driver *driver = attach_drivers[i];

		if (!driver || (*name ? strcmp(driver->name, name) :
				options.via != ATTACH_VIA_AUTO && options.via != i))
			continue;
		attach.driver = driver;
		r = driver->probe(why, sizeof(why));
		if (r < 0)
			fmt_add(err, len, "%s--via=%s: %s", *err ? "; " : "", driver->name, why);
	}
	if (r < 0 && !*err)
		snprintf(err, len, "--via=%s: this rtrs-attach was built without it",
			 *name ? name : attach_via_names[options.via]);
	if (r == 0 && !attach.driver->has_queues)
		options.session.sess.nloops = 1;
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

static bool is_away(int r)
{
	return r == -EIO || r == -EAGAIN || r == -ECONNABORTED;
}

/* Open the export in the session, which stays. */
static int open_export(char *err)
{
	int r = clt_start_session(&start, err);
	bool waits;

	if (r < 0)
		return r;
	attach.start = &start;
	do {
		r = clt_export_open(&start.run.clt, &options.session,
				    options.session.export_name, &attach.dev, err);
		waits = attach.waits || (takes_over() && is_away(r));
	} while (r < 0 && waits && attach_run_again(&attach, err));
	if (r < 0)
		clt_start_end(&start);
	return r;
}

/* ---- the whole ---- */

/* IO works. */
static void tell_ready(struct attach *a)
{
	char node[ATTACH_NODE_LEN];

	log_info(NULL, "%s is /dev/%s", driver_node(a->state.name, node), a->state.disk);
	puts(node);
	std_out_flush();
	sd_notify(0, "READY=1\nSTATUS=serves the device");
	if (!options.session.run.foreground)
		daemon_log_to_syslog(options.name);
	daemon_ready();
}

/* For --list.  A failure is one of the device's start, too. */
static void tell_waits(void)
{
	char err[256];

	attach.state.pid = (int)getpid();
	attach.state.ready = ATTACH_BEGINS;
	attach_state_write(&attach.state, err, sizeof(err));
	sd_notify(0, "STATUS=waits for the server");
}

/* After that: there is no device, and none is to be. */
static void tell_ends(void)
{
	if (attach.state.pid == (int)getpid() && !takes_over())
		driver_forget(&attach.state);
}

static int serve(void)
{
	char err[CLT_FRONT_ERR] = "";
	sigset_t set;
	int status;

	tell_waits();
	if (open_export(err) < 0) {
		tell_ends();
		return main_complain(err);
	}
	/* Until here a signal ends the program. */
	attach_run_signals(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	status = attach_run(&attach, tell_ready);
	end_waits_for("the session to close");
	attach_size_end(&attach);
	dev_close(attach.dev);
	clt_start_end(&start);
	return status;
}

/* Have the session outlive this process, with the device.  A session without its device is of no
 * use: it may be that of another export, whose process never came to have a device. */
static int keep_session(bool has_device, char err[CLT_FRONT_ERR])
{
	_cleanup_free_ char *path = attach_state_session(options.name);

	if (path && !has_device)
		unlink(path);
	return path ? clt_kept_open(&options.session, path, err) : -ENOMEM;
}

/* Read the state, and ask the kernel, which knows the device if the state is lost.  A device that
 * has gone without its process, by another program or a fault, is none: nobody waits for the next
 * process. */
static int find_device(struct attach_state *s, char err[CLT_FRONT_ERR])
{
	const char *export = options.session.export_name;
	int r = attach_state_read(s, options.name, err, CLT_FRONT_ERR), found;
	char none[] = "";

	if (r < 0 && r != -ENOENT)
		return r;
	if (!*s->driver)
		snprintf(s->export_name, sizeof(s->export_name), "%s", export);
	found = driver_find(s);
	if (found == -ENODEV && takes_over()) {
		driver_forget(s);
		attach_state_take(s, options.name, none);
	}
	if (takes_over() && strcmp(s->export_name, export))
		return fmt_error(-EEXIST, err, CLT_FRONT_ERR, "%s is the export '%.64s' of %.64s, "
				 "and waits for its process: attach that one, or rtrs-detach %s "
				 "first", s->name, s->export_name, s->server, s->name);
	if (found == -EEXIST)
		return fmt_error(found, err, CLT_FRONT_ERR, "%s is /dev/%s, and waits for its "
				 "process, of another export than '%.64s': attach that one, or "
				 "rtrs-detach %s first", s->name, s->disk, export, s->name);
	return 0;
}

static int begin(char err[CLT_FRONT_ERR])
{
	struct attach_state *s = &attach.state;
	int r;

	clt_start_init(&start, &options.session);
	r = attach.lock = attach_state_lock(options.name, err, CLT_FRONT_ERR);
	if (r < 0)
		return r;
	r = find_device(s, err);
	if (r < 0)
		return r;
	if (takes_over())
		options.session.connect_timeout_ms = CLOCK_NEVER;
	snprintf(s->server, sizeof(s->server), "%s", options.session.server);
	snprintf(s->export_name, sizeof(s->export_name), "%s", options.session.export_name);
	tell_waits();
	r = choose_driver(err, CLT_FRONT_ERR);
	if (r == 0)
		r = keep_session(takes_over(), err);
	return r < 0 ? r : clt_probe(&start, err);
}

/* Undo what begin() has done, before its failure. */
static void unbegin(void)
{
	clt_kept_close(&options.session);
	if (attach.lock < 0)
		return;
	tell_ends();
	attach_state_unlock(attach.lock, attach.state.name);
	attach.lock = -1;
}

/* Begin, again and again if the user wants to wait for what is missing: a server that answers and
 * lacks the export or the key, another process that serves the device.  The files are read again
 * each time, since somebody may mend them.  -1: go on; else the exit status. */
static int begin_patiently(int argc, char **argv)
{
	char err[CLT_FRONT_ERR] = "";
	int status;

	while (begin(err) < 0) {
		bool again = attach.waits && attach_run_again(&attach, err);

		unbegin();
		if (!again)
			return main_complain(err);
		attach_options_fini(&options);
		status = attach_options_parse(&options, &front, argc, argv);
		if (status >= 0)
			return status;
	}
	return -1;
}

static int run(int argc, char **argv)
{
	int status, r = options.session.run.foreground ? log_begin() : 0;

	if (r < 0)
		return complain_thread(r);
	status = begin_patiently(argc, argv);
	if (status >= 0)
		return status;
	if (!options.session.run.foreground && daemon_begin() < 0)
		return main_complain("cannot become a daemon");
	keep_in_memory();
	r = options.session.run.foreground ? 0 : log_begin();
	if (r == 0)
		r = end_init(NULL);
	if (r < 0)
		return complain_thread(r);
	status = serve();
	clt_kept_close(&options.session);
	return status;
}

/* The program under another name: -1: it is rtrs-attach. */
static int run_other(int argc, char **argv)
{
	const char *name = argc ? basename(argv[0]) : "";

	if (!strcmp(name, ATTACH_DETACH))
		return detach_main(argc, argv);
	if (!strcmp(name, ATTACH_UNUSED) || !strcmp(name, ATTACH_READ) ||
	    !strcmp(name, ATTACH_RESIZE)) {
		argc = attach_helper_begin(argc, argv);
		if (argc < 0)
			return EXIT_FAILED;
	}
	if (!strcmp(name, ATTACH_RESIZE))
		return via_nbd_resize_main(argc, argv);
	if (!strcmp(name, ATTACH_UNUSED))
		return detach_main(argc, argv);
	return strcmp(name, ATTACH_READ) ? -1 : attach_helper_read_main(argc, argv);
}

int main(int argc, char **argv)
{
	sigset_t set;
	int status;

	/* ORDER: before anything else is opened. */
	if (std_fds_open() < 0)
		return EXIT_FAILED;
	signals_begin();
	status = run_other(argc, argv);
	if (status >= 0)
		return status;
	slices_shorten();
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
	attach.waits = options.session.connect_timeout_ms == CLOCK_NEVER;
	daemon_log_init("rtrs-attach",
			options.session.run.verbose ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARN);
	log_init_record(journal_open("rtrs-attach"));
	signal(SIGPIPE, SIG_IGN);
	attach_run_signals(&set);
	attach.signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	attach.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (attach.signal_fd < 0 || attach.wake_fd < 0)
		status = main_complain(fds_strerror(-errno));
	else
		status = run(argc, argv);
	end_over();
	log_end(NULL);
	if (attach.lock >= 0)
		attach_state_unlock(attach.lock, options.name);
	attach_options_fini(&options);
	end_with(status);
}
