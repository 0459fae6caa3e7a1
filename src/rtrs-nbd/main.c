/* SPDX-License-Identifier: BSD-3-Clause */
/* The program: options, sockets, a session, clients.
 *
 * The main thread waits for signals; all IO runs on --threads loops, of which the first is that of
 * the session.  SIGTERM, SIGINT and SIGQUIT end the program: requests in flight are answered,
 * connections are closed, the session ends.  SIGHUP has the session read keys and certificates
 * again; SIGUSR1 and SIGUSR2 are ignored.  A failure at the start is a line on stderr and an exit
 * status. */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "clt-argv.h"
#include "clt-loop.h"
#include "clt-start.h"
#include "ctl-json.h"
#include "ctl.h"
#include "gate.h"
#include "journal.h"
#include "log.h"
#include "process.h"
#include "secrets-set.h"
#include "signals.h"
#include "unix-sock.h"
#include "util.h"

static struct gate_options options;
static struct gate_listen listeners;
static struct clt_start start;
static struct gate gate;
static struct gate_now gate_now;
static pid_t command;			/* of --run; 0: none */

static void memory_changed(uint64_t memory)
{
	gate_set_memory(&gate_now, memory);
}

/* ---- the front end ---- */

static void gate_add_secrets(struct secrets_set *set)
{
	secrets_set_add(set, fab_tls_secrets(options.tls), fab_tls_conf_file(&options.tls_conf));
}

static void gate_secrets_replaced(void)
{
	gate_clients_revoke(&gate_now);
}

static json_t *gate_show(void)
{
	json_t *object, *array = json_array();
	char url[FAB_ADDR_STRLEN];
	bool ok = true;

	for (unsigned i = 0; ok && i < listeners.n; i++)
		ok = ctl_json_add(array, ctl_json_text(gate_listen_url(&listeners, i, url)));
	object = json_pack("{s:o}", "listeners", ctl_json_whole(array, ok));
	if (options.tls)
		object = ctl_json_with(object, json_pack("{s:o}", "nbd", clt_secrets_json(
					       options.tls, &options.tls_conf, NULL)));
	return object;
}

static const struct ctl_call calls[] = {
	{ .name = "clients", .fn = gate_clients_call },
};

static const struct clt_front front = {
	.name = RUNDIR_GATEWAY,
	.others = clt_argv_of_server,
	.others_are = clt_argv_of_server_are,
	.program = "rtrs-nbd",
	.help = "rtrs-nbd --help",
	.options = &gate_options,
	.conf_size = sizeof(struct gate_options),
	.defaults = gate_options_defaults,
	.complete = gate_options_complete,
	.wait = &clt_loop_wait,
	.start_fds = 6, /* the pidfile, the system log, the command, the loop of TLS */
	.client_fds = 1,
	.calls = calls,
	.ncalls = ARRAY_SIZE(calls),
	.calls_arg = &gate_now,
	.show = gate_show,
	.add_secrets = gate_add_secrets,
	.secrets_replaced = gate_secrets_replaced,
};

/* ---- signals ---- */

static const int stop_signals[] = { SIGTERM, SIGINT, SIGQUIT, 0 };

static void signals_set(sigset_t *set)
{
	sigemptyset(set);
	signals_add(set, stop_signals);
	signals_add(set, signals_of_habit);
	sigaddset(set, SIGCHLD);
}

/* Wait until the program is to end.  Returns the exit status. */
static int wait_for_end(void)
{
	int sig, status;
	sigset_t set;

	signals_set(&set);
	for (;;) {
		if (sigwait(&set, &sig))
			continue;
		if (sig == SIGHUP) {
			clt_reload_hup(&start.reload);
			continue;
		}
		if (sig == SIGUSR1 || sig == SIGUSR2) {
			signals_tell_ignored(sig, NULL);
			continue;
		}
		if (sig != SIGCHLD)
			return 0;
		if (!command || waitpid(command, &status, WNOHANG) != command)
			continue;
		command = 0;
		return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	}
}

/* The start waits for names, for a server, and for what the server says, each for its time.  Nobody
 * is served meanwhile, so a signal ends the program at once: on a thread of its own.  SIGCHLD ends
 * the thread, which may have taken a signal already: a pthread_cancel() would lose that one. */
static pthread_t early;
static atomic_bool is_late;

static void *early_main(void *arg)
{
	sigset_t set;
	int sig;

	sigemptyset(&set);
	signals_add(&set, stop_signals);
	sigaddset(&set, SIGCHLD);
	do {
		while (sigwait(&set, &sig))
			;
		/* RACE: a SIGCHLD may be of a child that the process had before its execve(). */
	} while (sig == SIGCHLD && !atomic_load(&is_late));
	if (sig == SIGCHLD)
		return NULL;
	log_warn(NULL, "SIG%s: ends before it is ready", sigabbrev_np(sig));
	gate_listen_close(&listeners);
	_exit(0);
}

/* The start waits for nothing more: signals are for wait_for_end().  Joins the thread, unless a
 * signal was first, which ends the program here. */
static void early_over(void)
{
	atomic_store(&is_late, true);
	pthread_kill(early, SIGCHLD);
	pthread_join(early, NULL);
}

/* A second signal ends the program at once.  A reload that comes too late is none of the kind. */
static void signals_restore(void)
{
	signals_mask(SIG_UNBLOCK, stop_signals);
}

/* ---- start and stop ---- */

static int main_complain(const char *err)
{
	fprintf(stderr, "rtrs-nbd: %s\n", err);
	return 1;
}

/* A thread of the start failed with @rc. */
static int complain_thread(int rc)
{
	fprintf(stderr, "rtrs-nbd: cannot start a thread: %s\n", threads_strerror(rc));
	return 1;
}

/* Every client is a descriptor. */
static void gate_raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/* Start the session and the gateway.  0, or -errno with @err and nothing started. */
static int serve_clients(char *err, size_t len)
{
	int r = clt_start_session(&start, err);

	if (r < 0)
		return r;
	r = gate_start(&gate, &listeners, &start, &options, &gate_now);
	if (r < 0) {
		snprintf(err, len, "cannot serve: %s", threads_strerror(r));
		clt_start_end(&start);
	}
	return r;
}

static void stop_gate(void)
{
	sd_notify(0, "STOPPING=1");
	end_begin();
	end_waits_for("its threads");
	gate_leave(&gate);
	/* ORDER: requests that wait fail now, and no client that leaves hears of it. */
	client_lose_patience(&start.run.clt);
	end_waits_for("requests in flight, and NBD clients that do not read");
	gate_stop(&gate);
	end_waits_for("the session to close");
	clt_start_end(&start);
	if (command)
		kill(command, SIGTERM);
	if (options.pidfile)
		gate_run_pidfile_remove(options.pidfile);
}

/* The giver of sockets, and the user of --run, wait for the process itself. */
static bool is_daemon(void)
{
	return !options.session.run.foreground && !options.run && !listeners.given;
}

static int tell_ready(char *err, size_t len)
{
	int r = options.pidfile ? gate_run_pidfile(options.pidfile, err, len) : 0;
	char url[FAB_ADDR_STRLEN];

	if (r == 0 && options.run)
		r = gate_run_command(&options, &listeners, &command, err, len);
	if (r < 0)
		return r;
	for (unsigned i = 0; i < listeners.n; i++)
		log_info(gate_listen_url(&listeners, i, url), "listening");
	sd_notify(0, "READY=1");
	if (is_daemon())
		daemon_log_to_syslog(NULL);
	daemon_ready();
	return 0;
}

static int run_gate(void)
{
	char err[CLT_FRONT_ERR] = "";
	int status, r;

	/* ORDER: before the first line that nobody may read; but no thread outlives a fork. */
	r = is_daemon() ? 0 : log_begin();
	if (r < 0)
		return complain_thread(r);
	r = clt_probe(&start, err);
	early_over();
	if (r < 0)
		return main_complain(err);
	if (is_daemon() && daemon_begin() < 0)
		return main_complain("cannot become a daemon");
	r = is_daemon() ? log_begin() : 0;
	if (r == 0)
		r = end_init(NULL);
	if (r < 0)
		return complain_thread(r);
	if (serve_clients(err, sizeof(err)) < 0)
		return main_complain(err);
	if (tell_ready(err, sizeof(err)) < 0) {
		stop_gate();
		return main_complain(err);
	}
	status = wait_for_end();
	signals_restore();
	stop_gate();
	return status;
}

int main(int argc, char **argv)
{
	char err[CLT_FRONT_ERR];
	sigset_t set;
	int status, r;

	/* ORDER: before anything else is opened. */
	if (std_fds_open() < 0)
		return 1;
	slices_shorten();
	signals_begin();
	signals_mask(SIG_BLOCK, signals_of_habit);
	status = gate_options_parse(&options, &front, argc, argv);
	if (status >= 0) {
		gate_options_fini(&options);
		return status;
	}
	options.memory_changed = memory_changed;
	daemon_log_init("rtrs-nbd", options.session.run.verbose ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARN);
	log_init_record(journal_open("rtrs-nbd"));
	gate_raise_descriptors();
	signal(SIGPIPE, SIG_IGN);
	/* ORDER: before any thread starts, because threads inherit the mask. */
	signals_set(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	clt_start_init(&start, &options.session);
	r = signals_thread(&early, early_main, NULL);
	if (r < 0)
		return complain_thread(r);
	if (gate_listen_open(&listeners, &options, err, sizeof(err)) < 0) {
		early_over();
		return main_complain(err);
	}
	status = run_gate();
	end_over();
	log_end(NULL);
	gate_listen_close(&listeners);
	gate_options_fini(&options);
	end_with(status);
}
