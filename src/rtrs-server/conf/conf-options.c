/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of rtrs-server as a table, and the values with rules of their own.  Owns nothing.
 * Opens no export, socket or directory. */
#include <config.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "conf.h"
#include "log.h"
#include "rtrs-proto.h"
#include "number.h"
#include "opt-rows.h"
#include "unix-sock.h"
#include "util.h"

#define CONF_THREADS_MAX 256
#define CONF_POLL_US_MAX 1000000
#define CONF_MAX_IO_SIZE_MAX (64u << 20)

const char *const srv_invalidate_names[SRV_INVALIDATE_N] = {
	[SRV_INVALIDATE_AUTO] = "auto",
	[SRV_INVALIDATE_ALWAYS] = "always",
	[SRV_INVALIDATE_COPY] = "copy",
	[SRV_INVALIDATE_NEVER] = "never",
};

const char *const srv_seccomp_names[SRV_SECCOMP_N] = {
	[SRV_SECCOMP_OFF] = "off",
	[SRV_SECCOMP_ON] = "on",
	[SRV_SECCOMP_LOG] = "log",
};

/* ---- values with rules of their own ---- */

/* Read "N" or "N-M" at *@text, and set *@text behind. */
static bool read_range(const char **text, uint64_t *first, uint64_t *last)
{
	if (!number_prefix(*text, text, first))
		return false;
	*last = *first;
	if (**text == '-' && !number_prefix(*text + 1, text, last))
		return false;
	return *first <= *last && *last < CPU_SETSIZE;
}

static bool read_list(const char *text, cpu_set_t *cpus)
{
	uint64_t first, last;

	CPU_ZERO(cpus);
	for (;; text++) {
		if (!read_range(&text, &first, &last))
			return false;
		for (; first <= last; first++)
			CPU_SET(first, cpus);
		if (*text != ',')
			return !*text;
	}
}

/* Write "0,2-3" for @cpus to @buf. */
static void list_text(const cpu_set_t *cpus, char *buf, size_t len)
{
	buf[0] = '\0';
	for (unsigned first = 0, last; first < CPU_SETSIZE; first = last + 1) {
		size_t at = strlen(buf);

		last = first;
		if (!CPU_ISSET(first, cpus))
			continue;
		while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, cpus))
			last++;
		snprintf(buf + at, len - at, last > first ? "%s%u-%u" : "%s%u", at ? "," : "",
			 first, last);
	}
}

/* .call of --cpus: read @text, "0,2-3".  -EINVAL: no such list; -ENODEV: this process may not use
 * one of these CPUs. */
static int cpus_read(void *arg, const char *text, char *why, size_t len)
{
	struct srv_conf *conf = arg;
	cpu_set_t allowed, both;
	char list[128];

	if (!read_list(text, &conf->cpus))
		return fmt_error(-EINVAL, why, len, "expected a list of CPUs like 0,2-3");
	if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0) {
		snprintf(why, len, "cannot read the CPUs of this process: %s", strerror(errno));
		return -errno;
	}
	CPU_AND(&both, &conf->cpus, &allowed);
	if (CPU_EQUAL(&both, &conf->cpus))
		return 0;
	list_text(&allowed, list, sizeof(list));
	return fmt_error(-ENODEV, why, len, "expected CPUs that this process may use: %s", list);
}

static int add_rule(void *arg, const char *text, char *why, size_t len)
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

static int add_allow(void *arg, const char *text, char *why, size_t len)
{
	return conf_allow_split(text, add_rule, arg, why, len);
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

	if (conf->purpose == CONF_RELOAD || fcntl(conf->ready_fd, F_GETFD) >= 0)
		return 0;
	return fmt_error(-EBADF, why, len, "expected an open file descriptor");
}

static int set_name(void *arg, const char *text, char *why, size_t len)
{
	struct srv_conf *conf = arg;

	if (rundir_name_ok(text)) {
		snprintf(conf->name, sizeof(conf->name), "%s", text);
		conf->named = true;
		return 0;
	}
	return fmt_error(-EINVAL, why, len, "expected 1 to %d bytes of UTF-8 without control "
			 "characters", RUNDIR_NAME_MAX - 1);
}

/* The default depends on the exports, which come and go: another default is no change. */
static bool same_name(const void *a, const void *b)
{
	const struct srv_conf *in_a = a, *in_b = b;

	return (!in_a->named && !in_b->named) || !strcmp(in_a->name, in_b->name);
}

/* ---- values that change while the server runs ---- */

static void set_log_level(const void *arg, void *program)
{
	const struct srv_conf *conf = arg;

	log_info(NULL, "log level is %s from now on", log_level_names[conf->log_level]);
	log_set_level(conf->log_level);
}

/* The list of the configuration itself is asked for each connection that comes. */
static void tell_allow(const void *arg, void *program)
{
	const struct srv_conf *conf = arg;

	log_info(NULL, "--allow has %u rules from now on; connected clients stay connected",
		 conf->nallow);
}

/* ---- the table ---- */

#define FIELD(field) OPT_FIELD(struct srv_conf, field)
#define ASKED(field) OPT_ASKED(struct srv_conf, field)
#define IN_FILE (OPT_AT_START | OPT_IN_FILE)

static const struct opt rows[] = {
	{ .group = "Clients",
	  .name = "listen", .type = OPT_OTHER, .call = conf_add_listener,
	  .arg = "tcp://ADDR:PORT", .many = true, .holds = IN_FILE,
	  .help = "address; or rdma://, unix:PATH, with\n[,auth=MODE]; repeatable" },
	{ .name = "allow", .type = OPT_OTHER, .call = add_allow, .same = same_allows,
	  .arg = "ADDR[/BITS]|uid:USER|unix", .many = true, .holds = IN_FILE | OPT_AT_RUN_TIME,
	  .carry_out = tell_allow, .help = "admit only these clients; repeatable" },
	{ .group = "Encryption and keys",
	  OPT_ROW_TLS(struct srv_conf, tls), .help = "encrypt" },
	{ OPT_ROW_TLS_PSK(struct srv_conf, tls), .help = "pre-shared keys, NAME:KEY" },
	{ OPT_ROW_TLS_CERTIFICATES(struct srv_conf, tls), .help = "X.509 certificates" },
	{ .name = "tls-verify-peer", .type = OPT_FLAG, FIELD(tls.verify_peer), .holds = IN_FILE,
	  .help = "ask clients for certificates" },
	{ OPT_ROW_TLS_KTLS(struct srv_conf, tls) },
	{ OPT_ROW_AUTH(struct srv_conf, auth), .help = "have clients prove keys\n" },
	{ OPT_ROW_AUTH_PSK(struct srv_conf, auth) },
	{ .group = "Configuration",
	  .name = "config", .type = OPT_TEXT, FIELD(config), .arg = "FILE", .of = "a file",
	  .holds = OPT_AT_START,
	  .instead = "a file cannot name another file",
	  .help = "options and exports\n(" CONF_FILE ")" },
	{ .name = "check", .type = OPT_FLAG, FIELD(purpose), .holds = OPT_AT_START,
	  .instead = "give --check on the command line",
	  .help = "check the configuration, print it, exit" },
	{ .group = "Requests",
	  .name = "invalidate", .type = OPT_WORD, FIELD(invalidate), .words = srv_invalidate_names,
	  .nwords = SRV_INVALIDATE_N, .fallback = "auto", .holds = IN_FILE,
	  .help = "protect write buffers" },
	{ .name = "queue-depth", .type = OPT_NUMBER, FIELD(queue_depth), .arg = "N", .least = 1,
	  .most = RTRS_MAX_QUEUE_DEPTH, .fallback = "128", .holds = IN_FILE,
	  .help = "requests in flight on a path" },
	{ .name = "max-io-size", .type = OPT_SIZE, FIELD(max_io_size), .arg = "SIZE", .least = 4096,
	  .most = CONF_MAX_IO_SIZE_MAX, .step = 4096, .fallback = "128K",
	  .holds = IN_FILE, .help = "largest request" },
	{ .name = "threads", .type = OPT_NUMBER, FIELD(threads), .arg = "N", .least = 1,
	  .most = CONF_THREADS_MAX, .holds = IN_FILE, .shown = "1 per 2 CPUs, at most 4",
	  .help = "threads for IO" },
	{ .name = "cpus", .type = OPT_OTHER, FIELD(cpus), .call = cpus_read, .arg = "LIST",
	  .holds = IN_FILE, .shown = "any", .help = "CPUs of these threads" },
	{ .name = "poll", .type = OPT_NUMBER, FIELD(poll_us), .arg = "MICROSECONDS",
	  .of = "microseconds", .most = CONF_POLL_US_MAX, .fallback = "100", .holds = IN_FILE,
	  .help = "busy-poll before sleeping" },
	{ .group = "Limits",
	  .name = "max-sessions", .type = OPT_NUMBER, FIELD(max_sessions), .arg = "N", .least = 1,
	  .most = 65536, .fallback = OPT_DEFAULT(CONF_MAX_SESSIONS), .holds = IN_FILE,
	  .help = "for all clients" },
	{ .name = "max-paths", .type = OPT_NUMBER, FIELD(max_paths), .arg = "N", .least = 1,
	  .most = 65536, .fallback = OPT_DEFAULT(CONF_MAX_PATHS), .holds = IN_FILE,
	  .help = "for all sessions" },
	{ .name = "max-connections", .type = OPT_NUMBER, FIELD(max_cons), .arg = "N", .least = 2,
	  .most = CONF_MAX_CONS_MOST, .fallback = OPT_DEFAULT(CONF_MAX_CONS),
	  .holds = IN_FILE, .help = "for all paths" },
	{ .name = "max-memory", .type = OPT_SIZE, FIELD(max_memory), .arg = "SIZE",
	  .least = 1u << 20, .most = CONF_MAX_MEMORY_MOST, .holds = IN_FILE,
	  .shown = "half of the RAM, at most 16G", .help = "for all paths" },
	{ .name = "setup-timeout", .type = OPT_NUMBER, FIELD(setup_timeout_ms), .arg = "SECONDS",
	  .of = "seconds", .least = 1, .most = 3600, .scale = 1000,
	  .fallback = OPT_DEFAULT(CONF_SETUP_TIMEOUT_S), .holds = IN_FILE,
	  .help = "limit for the set-up of a path" },
	{ .group = "Dead clients",
	  .name = "heartbeat", .type = OPT_NUMBER, FIELD(hb_interval_ms), .arg = "MILLISECONDS",
	  .of = "milliseconds", .least = 100, .most = 60000,
	  .holds = IN_FILE, .shown = "750; RDMA 5000", .help = "interval of heartbeats\n" },
	{ .name = "heartbeat-misses", .type = OPT_NUMBER, FIELD(hb_missed_max), .arg = "N",
	  .least = 1, .most = 100, .shown = "2; RDMA 5", .holds = IN_FILE,
	  .help = "unanswered ones until a path is lost\n" },
	{ .group = "State and control",
	  .name = "state-dir", .type = OPT_TEXT, FIELD(state_dir.path), .arg = "DIR",
	  .of = "a directory", ASKED(state_dir.asked), .holds = IN_FILE,
	  .shown = "/run/nbdkit-rtrs",
	  .help = "records for the next server" },
	{ .name = "control", .type = OPT_TEXT, FIELD(control.path), .arg = "PATH|none",
	  .of = "a path", .special = "none", .call = unix_sock_check, ASKED(control.asked),
	  .holds = IN_FILE, .shown = "in the same directory",
	  .help = "socket for rtrsctl" },
	{ .group = "Metrics", OPT_ROW_METRICS(struct srv_conf) },
	{ .name = "metrics-file", .type = OPT_TEXT, FIELD(metrics_file), .arg = "FILE",
	  .of = "a path", .holds = IN_FILE, .help = "write metrics to a file for node_exporter" },
	{ OPT_ROW_METRICS_PAGE(struct srv_conf) },
	{ OPT_ROW_METRICS_HOST(struct srv_conf) },
	{ .name = "name", .type = OPT_OTHER, .call = set_name, .same = same_name, .arg = "NAME",
	  .shown = "the first export's", .holds = IN_FILE, .help = "name for rtrsctl" },
	{ .group = "Start",
	  .name = "lock-timeout", .type = OPT_NUMBER, FIELD(lock_timeout_ms), .arg = "SECONDS",
	  .of = "seconds", .least = 1, .most = 86400, .scale = 1000, .fallback = "60",
	  .holds = IN_FILE,
	  .help = "how long to wait for locks" },
	{ .name = "no-lock", .type = OPT_FLAG, FIELD(no_lock), .holds = IN_FILE,
	  .help = "export without locks: unsafe" },
	{ .name = "strict", .type = OPT_FLAG, FIELD(strict), .holds = IN_FILE,
	  .help = "do not start if an export fails" },
	{ .name = "seccomp", .type = OPT_WORD, FIELD(seccomp), .words = srv_seccomp_names,
	  .nwords = SRV_SECCOMP_N, .fallback = SECCOMP_DEFAULT,
	  .shown = "on, if built with it", .holds = IN_FILE,
	  .help = "filter system calls" },
	{ .name = "ready-fd", .type = OPT_NUMBER, FIELD(ready_fd), .arg = "FD",
	  .least = STDERR_FILENO + 1, .most = 65535, .call = check_ready_fd, .holds = OPT_AT_START,
	  .instead = "the program that starts the server opens the descriptor",
	  .help = "write a line to FD when ready" },
	{ .name = "log-level", .type = OPT_WORD, FIELD(log_level), .words = log_level_names,
	  .nwords = LOG_LEVELS, .fallback = "info",
	  .holds = IN_FILE | OPT_AT_RUN_TIME, .carry_out = set_log_level,
	  .help = "least important lines" },
	{ .group = "Help", OPT_ROW_HELP }, { OPT_ROW_VERSION },
};

const struct opt_table conf_options = {
	.program = "rtrs-server",
	.rows = rows,
	.n = ARRAY_SIZE(rows),
	.dashes = "--",
	.head = "Usage: rtrs-server [OPTIONS] NAME=PATH[,readonly][,direct][,force] ...\n"
		"Export files and block devices over RTRS/RNBD, each as NAME; see rtrs-server(8).\n"
		"force: even in use; [,allow=WHO][,read-only=WHO][,priority=CLASS]; ',': '\\,'.\n"
		"\n",
	.column = 34,
};
