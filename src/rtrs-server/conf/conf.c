/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of rtrs-server, and the command line as a struct srv_conf.  Owns nothing.  Opens no
 * export, socket or directory.  Main thread, before any other starts. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf.h"
#include "exports.h"
#include "log.h"
#include "opt.h"
#include "rtrs-geom.h"
#include "rtrs-proto.h"
#include "rundir.h"
#include "util.h"

#define CONF_THREADS_DEFAULT 4
#define CONF_THREADS_MAX 256
#define CONF_POLL_US_MAX 1000000
#define CONF_MAX_IO_SIZE_MAX (64u << 20)

const char *const srv_invalidate_names[SRV_INVALIDATE_N] = {
	[SRV_INVALIDATE_AUTO] = "auto",
	[SRV_INVALIDATE_ALWAYS] = "always",
	[SRV_INVALIDATE_COPY] = "copy",
	[SRV_INVALIDATE_NEVER] = "never",
};

/* ---- values with rules of their own ---- */

/* True if @a and @b are the same place.  Port 0 is a different port each time. */
static bool same_listener(const struct fab_addr *a, const struct fab_addr *b)
{
	return a->provider == b->provider && fab_addr_same_host(a, b) &&
	       (fab_addr_is_unix(a) || (fab_addr_port(a) && fab_addr_port(a) == fab_addr_port(b)));
}

/* Make room for another element behind @n elements of @size bytes at @array.  Returns the array,
 * or NULL with "out of memory" in @why. */
static void *conf_grow_array(void *array, unsigned n, size_t size, char *why, size_t len)
{
	void *all = realloc(array, (n + 1) * size);

	if (!all)
		snprintf(why, len, "out of memory");
	return all;
}

static int add_listener(void *arg, const char *text, char *why, size_t len)
{
	struct srv_conf *conf = arg;
	struct fab_addr *all = conf_grow_array(conf->listeners, conf->nlisteners, sizeof(*all), why,
					       len);
	int rc;

	if (!all)
		return -ENOMEM;
	conf->listeners = all;
	rc = fab_addr_parse(text, fab_provider_find("tcp"), RTRS_PORT, &all[conf->nlisteners], why,
			    len);
	if (rc)
		return rc == -ENOENT ? rc : -EINVAL;
	for (unsigned i = 0; i < conf->nlisteners; i++) {
		if (!same_listener(&all[i], &all[conf->nlisteners]))
			continue;
		snprintf(why, len, "this address is given twice");
		return -EINVAL;
	}
	conf->nlisteners++;
	return 0;
}

static int add_allow(void *arg, const char *text, char *why, size_t len)
{
	struct srv_conf *conf = arg;
	struct srv_allow *all = conf_grow_array(conf->allow, conf->nallow, sizeof(*all), why, len);
	int rc;

	if (!all)
		return -ENOMEM;
	conf->allow = all;
	rc = conf_allow_parse(text, &all[conf->nallow], why, len);
	if (rc)
		return rc;
	conf->nallow++;
	return 0;
}

static bool same_listeners(const void *a, const void *b)
{
	const struct srv_conf *in_a = a, *in_b = b;

	if (in_a->nlisteners != in_b->nlisteners)
		return false;
	for (unsigned i = 0; i < in_a->nlisteners; i++) {
		const struct fab_addr *one = &in_a->listeners[i], *other = &in_b->listeners[i];

		if (one->provider != other->provider || !fab_addr_same_host(one, other) ||
		    (!fab_addr_is_unix(one) && fab_addr_port(one) != fab_addr_port(other)))
			return false;
	}
	return true;
}

/* Comparing bytes is enough: conf_allow_parse() leaves no byte of a prefix unset. */
static bool same_allows(const void *a, const void *b)
{
	const struct srv_conf *in_a = a, *in_b = b;

	size_t len = in_a->nallow * sizeof(*in_a->allow);

	return in_a->nallow == in_b->nallow && (!len || !memcmp(in_a->allow, in_b->allow, len));
}

static int check_ready_fd(void *arg, const char *text, char *why, size_t len)
{
	const struct srv_conf *conf = arg;

	if (fcntl(conf->ready_fd, F_GETFD) >= 0)
		return 0;
	snprintf(why, len, "expected an open file descriptor");
	return -EBADF;
}

static int check_metrics(void *arg, const char *text, char *why, size_t len)
{
	return metric_sock_check(text, why, len);
}

static int note_control(void *arg, const char *text, char *why, size_t len)
{
	struct srv_conf *conf = arg;

	conf->control_asked = true;
	return 0;
}

static int note_state_dir(void *arg, const char *text, char *why, size_t len)
{
	struct srv_conf *conf = arg;

	conf->state_dir_asked = true;
	return 0;
}

/* ---- values that change while the server runs ---- */

static void set_log_level(const void *arg, void *program)
{
	const struct srv_conf *conf = arg;

	log_info(NULL, "log level is %s from now on", log_level_names[conf->log_level]);
	log_set_level(conf->log_level);
}

/* ---- the table ---- */

#define FIELD(field) OPT_FIELD(struct srv_conf, field)
#define IN_FILE (OPT_AT_START | OPT_IN_FILE)

static const struct opt rows[] = {
	{ .name = "listen", .type = OPT_OTHER, .call = add_listener, .same = same_listeners,
	  .arg = "tcp://ADDR:PORT", .many = true, .holds = IN_FILE,
	  .help = "also rdma://... and unix:PATH; repeatable" },
	{ .name = "allow", .type = OPT_OTHER, .call = add_allow, .same = same_allows,
	  .arg = "ADDR[/BITS]|uid:USER", .many = true, .holds = IN_FILE,
	  .help = "let only these clients in, repeatable" },
	{ .name = "invalidate", .type = OPT_WORD, FIELD(invalidate), .words = srv_invalidate_names,
	  .nwords = SRV_INVALIDATE_N, .fallback = "auto", .holds = IN_FILE,
	  .help = "protect requests" },
	{ .name = "queue-depth", .type = OPT_NUMBER, FIELD(queue_depth), .arg = "N", .least = 1,
	  .most = RTRS_MAX_QUEUE_DEPTH, .fallback = "128", .holds = IN_FILE,
	  .help = "requests in flight per path" },
	{ .name = "max-io-size", .type = OPT_SIZE, FIELD(max_io_size), .arg = "SIZE", .least = 4096,
	  .most = CONF_MAX_IO_SIZE_MAX, .step = 4096, .fallback = "128K", .holds = IN_FILE,
	  .help = "largest request, N times 4K" },
	{ .name = "threads", .type = OPT_NUMBER, FIELD(threads), .arg = "N", .least = 1,
	  .most = CONF_THREADS_MAX, .shown = "1 per 2 CPUs, at most 4", .holds = IN_FILE,
	  .help = "threads that serve" },
	{ .name = "poll", .type = OPT_NUMBER, FIELD(poll_us), .arg = "MICROSECONDS",
	  .of = "microseconds", .most = CONF_POLL_US_MAX, .fallback = "100", .holds = IN_FILE,
	  .help = "busy-poll for so long before sleeping" },
	{ .name = "max-sessions", .type = OPT_NUMBER, FIELD(max_sessions), .arg = "N", .least = 1,
	  .most = 65536, .fallback = "256", .holds = IN_FILE, .help = "sessions of all clients" },
	{ .name = "max-paths", .type = OPT_NUMBER, FIELD(max_paths), .arg = "N", .least = 1,
	  .most = 65536, .fallback = "512", .holds = IN_FILE, .help = "paths of all sessions" },
	{ .name = "setup-timeout", .type = OPT_NUMBER, FIELD(setup_timeout_ms), .arg = "SECONDS",
	  .of = "seconds", .least = 1, .most = 3600, .scale = 1000, .fallback = "30",
	  .holds = IN_FILE, .help = "until a new path must be set up" },
	{ .name = "heartbeat", .type = OPT_NUMBER, FIELD(hb_interval_ms), .arg = "MILLISECONDS",
	  .of = "milliseconds", .least = 100, .most = 60000, .fallback = "5000", .holds = IN_FILE,
	  .help = "find silent clients" },
	{ .name = "heartbeat-misses", .type = OPT_NUMBER, FIELD(hb_missed_max), .arg = "N",
	  .least = 1, .most = 100, .fallback = "5", .holds = IN_FILE,
	  .help = "misses in a row that a path may have" },
	{ .name = "state-dir", .type = OPT_TEXT, FIELD(state_dir), .arg = "DIR",
	  .of = "a directory", .call = note_state_dir, .shown = "/run/nbdkit-rtrs",
	  .holds = IN_FILE, .help = "records for the next server" },
	{ .name = "control", .type = OPT_TEXT, FIELD(control), .arg = "PATH|none", .of = "a path",
	  .special = "none", .call = note_control, .shown = "below /run/nbdkit-rtrs",
	  .holds = IN_FILE, .help = "socket for rtrsctl" },
	{ .name = "metrics", .type = OPT_TEXT, FIELD(metrics), .arg = "ADDR:PORT",
	  .of = "an address", .call = check_metrics, .with_next = true, .holds = IN_FILE },
	{ .name = "metrics-file", .type = OPT_TEXT, FIELD(metrics_file), .arg = "FILE",
	  .of = "a path", .with_next = true, .holds = IN_FILE },
	{ .name = "metrics-page", .type = OPT_WORD, FIELD(metrics_page),
	  .words = metric_page_names, .nwords = METRIC_PAGE_N, .fallback = "yes", .shown = "",
	  .holds = IN_FILE, .help = "metrics" },
	{ .name = "lock-timeout", .type = OPT_NUMBER, FIELD(lock_timeout_ms), .arg = "SECONDS",
	  .of = "seconds", .least = 1, .most = 86400, .scale = 1000, .fallback = "60",
	  .holds = IN_FILE, .help = "wait for a locked export" },
	{ .name = "no-lock", .type = OPT_FLAG, FIELD(no_lock), .holds = IN_FILE,
	  .help = "do not lock the exported files" },
	{ .name = "ready-fd", .type = OPT_NUMBER, FIELD(ready_fd), .arg = "FD",
	  .least = STDERR_FILENO + 1, .most = 65535, .call = check_ready_fd, .holds = OPT_AT_START,
	  .help = "write a line to FD when ready, and close it" },
	{ .name = "log-level", .type = OPT_WORD, FIELD(log_level), .arg = "LEVEL",
	  .words = log_level_names, .nwords = LOG_LEVELS, .fallback = "info",
	  .holds = IN_FILE | OPT_AT_RUN_TIME, .carry_out = set_log_level,
	  .help = "error, warning, info or debug" },
	{ .name = "help", .letter = 'h', .type = OPT_HELP, .with_next = true,
	  .holds = OPT_AT_START },
	{ .name = "version", .letter = 'V', .type = OPT_VERSION, .holds = OPT_AT_START,
	  .help = "print this, or the version, and exit" },
};

const struct opt_table conf_options = {
	.program = "rtrs-server",
	.rows = rows,
	.n = ARRAY_SIZE(rows),
	.dashes = "--",
	.head = "Usage: rtrs-server [OPTIONS] NAME=PATH[,readonly][,direct][,force] ...\n"
		"Export files and block devices over RTRS/RNBD, each as NAME; see rtrs-server(8).\n"
		"direct: O_DIRECT; force: a device in use, too; a ',' in PATH is '\\,'.\n"
		"\n",
	.column = 34,
};

/* ---- the whole ---- */

const struct conf_export *conf_export_find(const struct srv_conf *conf, const char *name)
{
	for (unsigned i = 0; i < conf->nexports; i++) {
		if (!strcmp(conf->exports[i].name, name))
			return &conf->exports[i];
	}
	return NULL;
}

static void conf_export_free(struct conf_export *ex)
{
	free(ex->name);
	free(ex->spec);
}

/* @ex has a copy of @spec, a line that has a name.  0 or -ENOMEM. */
static int conf_export_copy(struct conf_export *ex, const char *spec)
{
	*ex = (struct conf_export){ .name = strndup(spec, strcspn(spec, "=")),
				    .spec = strdup(spec) };
	if (ex->name && ex->spec)
		return 0;
	conf_export_free(ex);
	return -ENOMEM;
}

/* Check options against each other; each alone is in range. */
static int conf_check_together(const struct srv_conf *conf, char *err, size_t len)
{
	unsigned max = rtrs_geom_depth_max(conf->max_io_size, CONF_HDR_SIZE);

	if (conf->queue_depth <= max)
		return 0;
	snprintf(err, len, "--queue-depth %u and --max-io-size %u do not fit together: with that "
		 "size the depth is at most %u", conf->queue_depth, conf->max_io_size, max);
	return -EINVAL;
}

static int default_listeners(struct srv_conf *conf, char *err, size_t len)
{
	int rc = add_listener(conf, "tcp://127.0.0.1", err, len);

	conf->listen_default = true;
	return rc ? rc : add_listener(conf, "tcp://[::1]", err, len);
}

/* The default of --control; NULL: this user has no directory for the socket. */
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
		.threads = (unsigned)MIN(MAX(cpus / 2, 1L), (long)CONF_THREADS_DEFAULT),
		.max_memory = MIN(memory / 2, (uint64_t)CONF_MAX_MEMORY),
		.ready_fd = -1,
		.state_dir = rundir_default(),
		.control = default_control(),
	};
	opt_defaults(&conf_options, conf);
}

int conf_add_export(struct srv_conf *conf, const char *spec, char *err, size_t len)
{
	struct conf_export *ex, *all;
	struct exports none;
	int rc;

	all = conf_grow_array(conf->exports, conf->nexports, sizeof(*all), err, len);
	if (!all)
		return -ENOMEM;
	conf->exports = all;
	exports_init(&none, 0);
	rc = exports_check(&none, spec, err, len);
	if (rc)
		return rc;
	ex = &all[conf->nexports];
	if (conf_export_copy(ex, spec)) {
		snprintf(err, len, "out of memory");
		return -ENOMEM;
	}
	if (conf_export_find(conf, ex->name)) {
		snprintf(err, len, "export name '%s' is given twice", ex->name);
		conf_export_free(ex);
		return -EEXIST;
	}
	conf->nexports++;
	return 0;
}

int conf_del_export(struct srv_conf *conf, const char *name)
{
	unsigned i = 0;

	while (i < conf->nexports && strcmp(conf->exports[i].name, name))
		i++;
	if (i == conf->nexports)
		return -ENOENT;
	conf_export_free(&conf->exports[i]);
	conf->nexports--;
	memmove(&conf->exports[i], &conf->exports[i + 1],
		(conf->nexports - i) * sizeof(*conf->exports));
	return 0;
}

int conf_copy_exports(struct srv_conf *copy, const struct srv_conf *conf)
{
	*copy = *conf;
	copy->nexports = 0;
	copy->exports = calloc(conf->nexports + 1, sizeof(*copy->exports));
	if (!copy->exports)
		return -ENOMEM;
	for (unsigned i = 0; i < conf->nexports; i++) {
		if (conf_export_copy(&copy->exports[i], conf->exports[i].spec))
			return -ENOMEM;
		copy->nexports++;
	}
	return 0;
}

void conf_swap_exports(struct srv_conf *one, struct srv_conf *other)
{
	struct conf_export *exports = one->exports;
	unsigned n = one->nexports;

	one->exports = other->exports;
	one->nexports = other->nexports;
	other->exports = exports;
	other->nexports = n;
}

void conf_free_exports(struct srv_conf *conf)
{
	for (unsigned i = 0; i < conf->nexports; i++)
		conf_export_free(&conf->exports[i]);
	free(conf->exports);
	conf->exports = NULL;
	conf->nexports = 0;
}

/* Add the exports, which stand behind the options. */
static enum opt_result conf_add_exports(struct srv_conf *conf, int n, char **specs, char *err,
					size_t len)
{
	if (!n) {
		snprintf(err, len, "nothing to export: expected NAME=PATH, see rtrs-server --help");
		return OPT_USAGE;
	}
	for (int i = 0; i < n; i++) {
		int rc = conf_add_export(conf, specs[i], err, len);

		if (rc)
			return rc == -ENOMEM ? OPT_FAILED : OPT_USAGE;
	}
	return OPT_RUN;
}

enum opt_result conf_parse(struct srv_conf *conf, int argc, char **argv, char *err, size_t errlen)
{
	enum opt_result rc;
	int first = argc;

	set_defaults(conf);
	rc = opt_argv(&conf_options, conf, argc, argv, &first, NULL, err, errlen);
	if (rc == OPT_RUN && conf_check_together(conf, err, errlen))
		rc = OPT_USAGE;
	if (rc == OPT_RUN && !conf->nlisteners && default_listeners(conf, err, errlen))
		rc = OPT_FAILED;
	return rc == OPT_RUN ? conf_add_exports(conf, argc - first, argv + first, err, errlen) : rc;
}

void conf_fini(struct srv_conf *conf)
{
	conf_free_exports(conf);
	free(conf->allow);
	free(conf->listeners);
}
