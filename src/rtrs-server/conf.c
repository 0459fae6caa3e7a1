/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing: turns the command line into a struct srv_conf, on the main thread, before any other
 * starts.  Each mistake is one line that names the option, the value and what was expected. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf.h"
#include "export-state.h"
#include "number.h"
#include "rtrs-proto.h"
#include "rundir.h"
#include "size.h"
#include "srv-geom.h"
#include "suggest.h"
#include "util.h"

#define CONF_THREADS_DEFAULT 4
#define CONF_THREADS_MAX 256
#define CONF_POLL_US_MAX 1000000u
#define CONF_POLL_US 100u

enum {
	OPT_LISTEN = 256, OPT_ALLOW, OPT_INVALIDATE, OPT_QUEUE_DEPTH, OPT_MAX_IO_SIZE, OPT_THREADS,
	OPT_MAX_SESSIONS, OPT_MAX_PATHS, OPT_SETUP_TIMEOUT, OPT_HEARTBEAT,
	OPT_HEARTBEAT_MISSES, OPT_POLL, OPT_READY_FD, OPT_LOG_LEVEL, OPT_NO_LOCK, OPT_LOCK_TIMEOUT,
	OPT_STATE_DIR, OPT_CONTROL,
};

static const struct option options[] = {
	{ "listen", required_argument, NULL, OPT_LISTEN },
	{ "allow", required_argument, NULL, OPT_ALLOW },
	{ "invalidate", required_argument, NULL, OPT_INVALIDATE },
	{ "queue-depth", required_argument, NULL, OPT_QUEUE_DEPTH },
	{ "max-io-size", required_argument, NULL, OPT_MAX_IO_SIZE },
	{ "threads", required_argument, NULL, OPT_THREADS },
	{ "poll", required_argument, NULL, OPT_POLL },
	{ "max-sessions", required_argument, NULL, OPT_MAX_SESSIONS },
	{ "max-paths", required_argument, NULL, OPT_MAX_PATHS },
	{ "setup-timeout", required_argument, NULL, OPT_SETUP_TIMEOUT },
	{ "heartbeat", required_argument, NULL, OPT_HEARTBEAT },
	{ "heartbeat-misses", required_argument, NULL, OPT_HEARTBEAT_MISSES },
	{ "lock-timeout", required_argument, NULL, OPT_LOCK_TIMEOUT },
	{ "no-lock", no_argument, NULL, OPT_NO_LOCK },
	{ "state-dir", required_argument, NULL, OPT_STATE_DIR },
	{ "control", required_argument, NULL, OPT_CONTROL },
	{ "ready-fd", required_argument, NULL, OPT_READY_FD },
	{ "log-level", required_argument, NULL, OPT_LOG_LEVEL },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

static const char help[] =
"Usage: rtrs-server [OPTIONS] NAME=PATH[,readonly][,direct][,force] ...\n"
"Export files and block devices over RTRS/RNBD, each as NAME; see rtrs-server(8).\n"
"direct: O_DIRECT; force: a device in use, too; a ',' in PATH is '\\,'.\n"
"\n"
"      --listen=tcp://ADDR:PORT    also rdma://... and unix:PATH; repeatable\n"
"      --allow=ADDR[/BITS]|uid:USER let only these clients in, repeatable\n"
"      --invalidate=auto|always|copy|never  protect requests (default auto)\n"
"      --queue-depth=N             requests in flight per path (default 128)\n"
"      --max-io-size=SIZE          largest request, N times 4K (default 128K)\n"
"      --threads=N                 threads that serve (1 per 2 CPUs, at most 4)\n"
"      --poll=MICROSECONDS         look for at most so long before sleeping (100)\n"
"      --max-sessions=N            sessions of all clients (default 256)\n"
"      --max-paths=N               paths of all sessions (default 512)\n"
"      --setup-timeout=SECONDS     until a new path must be set up (default 30)\n"
"      --heartbeat=MILLISECONDS    find silent clients (default 5000)\n"
"      --heartbeat-misses=N        that a path may have in a row (default 5)\n"
"      --state-dir=DIR             what outlives the server (/run/nbdkit-rtrs)\n"
"      --control=PATH|none         socket for rtrsctl (below /run/nbdkit-rtrs)\n"
"      --lock-timeout=SECONDS      wait for an export that is locked (default 60)\n"
"      --no-lock                   do not lock what is exported\n"
"      --ready-fd=FD               write a line to FD when ready, and close it\n"
"      --log-level=LEVEL           error, warning, info or debug (default info)\n"
"  -h, --help                      print this and exit\n"
"  -V, --version                   print the version and exit\n";

struct parser {
	struct srv_conf *conf;
	char *err;
	size_t errlen;
};

__attribute__((format(printf, 2, 3)))
static enum conf_result usage(const struct parser *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p->err, p->errlen, fmt, ap);
	va_end(ap);
	return CONF_USAGE;
}

/* @what: "a number", or of what. */
static enum conf_result number(const struct parser *p, const char *option, const char *text, const char *what,
			       unsigned min, unsigned max, unsigned *out)
{
	if (!number_parse_u(text, min, max, out))
		return usage(p, "%s '%s': expected %s from %u to %u", option, text, what, min, max);
	return CONF_RUN;
}

static enum conf_result max_io_size(const struct parser *p, const char *text)
{
	uint64_t value;

	if (!size_parse(text, &value) || !value || value % 4096 || value > (64u << 20))
		return usage(p, "--max-io-size '%s': expected a multiple of 4K from 4K to 64M", text);
	p->conf->max_io_size = (uint32_t)value;
	return CONF_RUN;
}

const char *const srv_invalidate_names[SRV_INVALIDATE_N] = {
	[SRV_INVALIDATE_AUTO] = "auto",
	[SRV_INVALIDATE_ALWAYS] = "always",
	[SRV_INVALIDATE_COPY] = "copy",
	[SRV_INVALIDATE_NEVER] = "never",
};

static enum conf_result invalidate(const struct parser *p, const char *text)
{
	for (unsigned i = 0; i < SRV_INVALIDATE_N; i++) {
		if (strcmp(text, srv_invalidate_names[i]))
			continue;
		p->conf->invalidate = (enum srv_invalidate)i;
		return CONF_RUN;
	}
	return usage(p, "--invalidate '%s': expected auto, always, copy or never", text);
}

/* Port 0 is another one each time. */
static bool same_listener(const struct fab_addr *a, const struct fab_addr *b)
{
	return a->provider == b->provider && fab_addr_same_host(a, b) &&
	       (fab_addr_is_unix(a) || (fab_addr_port(a) && fab_addr_port(a) == fab_addr_port(b)));
}

static enum conf_result add_listener(const struct parser *p, const char *text)
{
	struct srv_conf *conf = p->conf;
	struct fab_addr *all;
	char why[256];
	int rc;

	all = realloc(conf->listeners, (conf->nlisteners + 1) * sizeof(*all));
	if (!all)
		return usage(p, "out of memory");
	conf->listeners = all;
	rc = fab_addr_parse(text, fab_provider_find("tcp"), RTRS_PORT, &all[conf->nlisteners], why,
			    sizeof(why));
	if (rc) {
		usage(p, "--listen '%s': %s", text, why);
		return rc == -ENOENT ? CONF_FAILED : CONF_USAGE;
	}
	for (unsigned i = 0; i < conf->nlisteners; i++) {
		if (same_listener(&all[i], &all[conf->nlisteners]))
			return usage(p, "--listen '%s': this address is given twice", text);
	}
	conf->nlisteners++;
	return CONF_RUN;
}

static enum conf_result add_allow(const struct parser *p, const char *text)
{
	struct srv_conf *conf = p->conf;
	struct srv_allow *all;
	char why[128];
	int rc;

	all = realloc(conf->allow, (conf->nallow + 1) * sizeof(*all));
	if (!all)
		return usage(p, "out of memory");
	conf->allow = all;
	rc = conf_allow_parse(text, &all[conf->nallow], why, sizeof(why));
	if (rc) {
		usage(p, "--allow '%s': %s", text, why);
		return rc == -ENOENT ? CONF_FAILED : CONF_USAGE;
	}
	conf->nallow++;
	return CONF_RUN;
}

static enum conf_result one_option(const struct parser *p, int opt, const char *arg)
{
	struct srv_conf *conf = p->conf;
	enum conf_result rc;
	unsigned value = 0;

	switch (opt) {
	case OPT_LISTEN:
		return add_listener(p, arg);
	case OPT_ALLOW:
		return add_allow(p, arg);
	case OPT_INVALIDATE:
		return invalidate(p, arg);
	case OPT_QUEUE_DEPTH:
		return number(p, "--queue-depth", arg, "a number", 1, RTRS_MAX_QUEUE_DEPTH, &conf->queue_depth);
	case OPT_MAX_IO_SIZE:
		return max_io_size(p, arg);
	case OPT_THREADS:
		return number(p, "--threads", arg, "a number", 1, CONF_THREADS_MAX, &conf->threads);
	case OPT_POLL:
		return number(p, "--poll", arg, "a number of microseconds", 0, CONF_POLL_US_MAX, &conf->poll_us);
	case OPT_MAX_SESSIONS:
		return number(p, "--max-sessions", arg, "a number", 1, 65536, &conf->max_sessions);
	case OPT_MAX_PATHS:
		return number(p, "--max-paths", arg, "a number", 1, 65536, &conf->max_paths);
	case OPT_SETUP_TIMEOUT:
		rc = number(p, "--setup-timeout", arg, "a number of seconds", 1, 3600, &value);
		if (rc == CONF_RUN)
			conf->setup_timeout_ms = value * 1000;
		return rc;
	case OPT_HEARTBEAT:
		return number(p, "--heartbeat", arg, "a number of milliseconds", CONF_HB_INTERVAL_MS_MIN,
			      CONF_HB_INTERVAL_MS_MAX, &conf->hb_interval_ms);
	case OPT_HEARTBEAT_MISSES:
		return number(p, "--heartbeat-misses", arg, "a number", 1, CONF_HB_MISSED_MAX,
			      &conf->hb_missed_max);
	case OPT_READY_FD:
		/* The server closes this descriptor, so a standard one is refused. */
		rc = number(p, "--ready-fd", arg, "a number", STDERR_FILENO + 1, 65535, &value);
		if (rc == CONF_RUN && fcntl((int)value, F_GETFD) < 0) {
			usage(p, "--ready-fd '%s': expected an open file descriptor", arg);
			return CONF_FAILED;
		}
		if (rc == CONF_RUN)
			conf->ready_fd = (int)value;
		return rc;
	case OPT_LOCK_TIMEOUT:
		rc = number(p, "--lock-timeout", arg, "a number of seconds", 1, 86400, &value);
		if (rc == CONF_RUN)
			conf->exports->lock_timeout_ms = value * 1000;
		return rc;
	case OPT_NO_LOCK:
		conf->no_lock = true;
		return CONF_RUN;
	case OPT_STATE_DIR:
		if (!*arg)
			return usage(p, "--state-dir '': expected a directory");
		conf->state_dir = arg;
		conf->state_dir_asked = true;
		return CONF_RUN;
	case OPT_CONTROL:
		if (!*arg)
			return usage(p, "--control '': expected a path, or none");
		conf->control = strcmp(arg, "none") ? arg : NULL;
		conf->control_asked = true;
		return CONF_RUN;
	case OPT_LOG_LEVEL:
		if (log_level_parse(arg, &conf->log_level))
			return usage(p, "--log-level '%s': expected error, warning, info or debug",
				     arg);
		return CONF_RUN;
	case 'h':
		fputs(help, stdout);
		return CONF_EXIT;
	case 'V':
		printf("rtrs-server %s\n", PACKAGE_VERSION);
		return CONF_EXIT;
	}
	return CONF_USAGE;
}

/* " (did you mean --NAME?)" for @word, an option with its dashes and perhaps a value, or
 * nothing. */
static const char *did_you_mean(const char *word, char *buf, size_t len)
{
	const char *names[ARRAY_SIZE(options)], *name = word + strspn(word, "-"), *meant;

	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		names[i] = options[i].name;
	meant = suggest(name, strcspn(name, "="), names, ARRAY_SIZE(names));
	buf[0] = '\0';
	/* Not one that is right, and takes no value. */
	if (meant && (name - word != 2 || strncmp(meant, name, strcspn(name, "="))))
		snprintf(buf, len, " (did you mean --%s?)", meant);
	return buf;
}

/* getopt_long() could not use an option. */
static enum conf_result bad_option(const struct parser *p, int opt, char **argv)
{
	/* optind is behind an option that is a word, but still at a group of letters. */
	char letter[] = { '-', (char)optopt, '\0' };
	bool is_letter = opt == '?' && optopt && optopt < 256 && optopt != 'h' && optopt != 'V';
	const char *text = is_letter ? letter : argv[optind - 1], *word = text;
	char meant[64];

	/* "-listen" is a group of letters, too. */
	if (is_letter && argv[optind] && argv[optind][0] == '-' && argv[optind][1] == letter[1])
		word = argv[optind];
	if (opt == ':')
		return usage(p, "option '%s' needs a value: see rtrs-server --help", text);
	return usage(p, "option '%s' is unknown, ambiguous or takes no value%s: see rtrs-server --help",
		     text, did_you_mean(word, meant, sizeof(meant)));
}

static enum conf_result parse_options(const struct parser *p, int argc, char **argv)
{
	enum conf_result rc = CONF_RUN;
	int opt;

	opterr = 0;
	optind = 0;	/* start afresh */
	while (rc == CONF_RUN && (opt = getopt_long(argc, argv, ":hV", options, NULL)) != -1) {
		if (opt == ':' || opt == '?')
			rc = bad_option(p, opt, argv);
		else
			rc = one_option(p, opt, optarg);
	}
	return rc;
}

/* Options that each are possible. */
static enum conf_result check_together(const struct parser *p)
{
	const struct srv_conf *conf = p->conf;
	unsigned max = srv_geom_depth_max(conf->max_io_size);

	if (conf->queue_depth > max)
		return usage(p, "--queue-depth %u and --max-io-size %u do not fit together: with that "
			     "size the depth is at most %u", conf->queue_depth, conf->max_io_size, max);
	return CONF_RUN;
}

static enum conf_result default_listeners(const struct parser *p)
{
	enum conf_result rc;

	p->conf->listen_default = true;
	rc = add_listener(p, "tcp://127.0.0.1");
	return rc == CONF_RUN ? add_listener(p, "tcp://[::1]") : rc;
}

/* NULL: this user has no place for it. */
static const char *default_control(void)
{
	static char path[4096 + 32];
	const char *dir = rundir_default();
	char name[32];

	if (!dir)
		return NULL;
	rundir_socket_name(RUNDIR_SERVER, getpid(), name, sizeof(name));
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void set_defaults(struct srv_conf *conf)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN), pages = sysconf(_SC_PHYS_PAGES);
	uint64_t memory = pages < 0 ? 0 : (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);

	*conf = (struct srv_conf){
		.queue_depth = CONF_QUEUE_DEPTH,
		.max_io_size = CONF_MAX_IO_SIZE,
		.invalidate = SRV_INVALIDATE_AUTO,
		.poll_us = CONF_POLL_US,
		.threads = (unsigned)MIN(MAX(cpus / 2, 1L), (long)CONF_THREADS_DEFAULT),
		.max_sessions = CONF_MAX_SESSIONS,
		.max_paths = CONF_MAX_PATHS,
		.max_memory = MIN(memory / 2, (uint64_t)CONF_MAX_MEMORY),
		.setup_timeout_ms = CONF_SETUP_TIMEOUT_MS,
		.hb_interval_ms = RTRS_HB_INTERVAL_MS,
		.hb_missed_max = RTRS_HB_MISSED_MAX,
		.ready_fd = -1,
		.state_dir = rundir_default(),
		.control = default_control(),
		.log_level = LOG_LEVEL_INFO,
	};
}

enum conf_result conf_parse(struct srv_conf *conf, int argc, char **argv, char *err, size_t errlen)
{
	const struct parser p = { .conf = conf, .err = err, .errlen = errlen };
	enum conf_result rc;

	set_defaults(conf);
	conf->exports = malloc(sizeof(*conf->exports));
	if (!conf->exports) {
		snprintf(err, errlen, "out of memory");
		return CONF_FAILED;
	}
	exports_init(conf->exports);
	rc = parse_options(&p, argc, argv);
	if (rc == CONF_RUN && optind == argc)
		rc = usage(&p, "nothing to export: expected NAME=PATH, see rtrs-server --help");
	if (rc == CONF_RUN)
		rc = check_together(&p);
	if (rc == CONF_RUN && !conf->nlisteners)
		rc = default_listeners(&p);
	for (; rc == CONF_RUN && optind < argc; optind++) {
		if (exports_check(conf->exports, argv[optind], err, errlen))
			rc = CONF_USAGE;
		else if (exports_add(conf->exports, argv[optind], err, errlen))
			rc = CONF_FAILED;
	}
	return rc;
}

void conf_fini(struct srv_conf *conf)
{
	if (conf->exports)
		exports_fini(conf->exports);
	free(conf->exports);
	free(conf->allow);
	free(conf->listeners);
}
