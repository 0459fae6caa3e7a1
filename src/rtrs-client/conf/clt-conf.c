/* SPDX-License-Identifier: BSD-3-Clause */
/* The parameters as a table, and the checks of several parameters together.  Main thread, before
 * the fork, except where another thread is named. */
#include <config.h>

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "clock.h"
#include "clt-addr.h"
#include "clt-conf.h"
#include "clt-paths.h"
#include "random.h"
#include "rtrs-msg.h"
#include "util.h"

/* ---- values with rules of their own ---- */

__attribute__((format(printf, 3, 4)))
static int bad_value(char *why, size_t len, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, len, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

static int add_path(struct clt_conf *conf, const char *value, char *why, size_t len)
{
	if (conf->npaths == CLT_PATHS_MAX)
		return bad_value(why, len, "a session has at most %d paths", CLT_PATHS_MAX);
	conf->path_texts[conf->npaths++] = value;
	return 0;
}

static int set_server(void *arg, const char *value, char *why, size_t len)
{
	struct clt_conf *conf = arg;

	if (!*value)
		return bad_value(why, len, "expected HOST[:PORT] or unix:PATH, not an empty value");
	conf->server = value;
	return add_path(conf, value, why, len);
}

static int set_path(void *arg, const char *value, char *why, size_t len)
{
	if (*value)
		return add_path(arg, value, why, len);
	return bad_value(why, len, "expected [SRC@]DST[:PORT] or unix:PATH, not an empty value");
}

static int set_export(void *arg, const char *value, char *why, size_t len)
{
	struct clt_conf *conf = arg;

	if (!*value || strlen(value) >= RNBD_NAME_MAX)
		return bad_value(why, len, "expected a name of 1..%d characters",
				 RNBD_NAME_MAX - 1);
	conf->export_name = value;
	return 0;
}

static int set_transport(void *arg, const char *value, char *why, size_t len)
{
	struct clt_conf *conf = arg;
	bool automatic = conf->transport == CLT_TRANSPORT_AUTO;

	conf->provider = automatic ? NULL : fab_provider_find(value);
	if (automatic || conf->provider)
		return 0;
	return bad_value(why, len, "this %s was built without RDMA", conf->front->program);
}

static int set_sessname(void *arg, const char *value, char *why, size_t len)
{
	struct clt_conf *conf = arg;

	if (!rtrs_sessname_ok(value))
		return bad_value(why, len, "expected 1..%d characters without '/' and '.'",
				 RTRS_NAME_MAX - 1);
	snprintf(conf->sessname, sizeof(conf->sessname), "%s", value);
	return 0;
}

static int set_mode(void *arg, const char *value, char *why, size_t len)
{
	struct clt_conf *conf = arg;

	conf->mode_auto = !strcmp(value, "auto");
	return 0;
}

static int set_control(void *arg, const char *value, char *why, size_t len)
{
	struct clt_conf *conf = arg;

	/* A daemon goes to the root directory. */
	if (*value != '/' && strcmp(value, "none"))
		return bad_value(why, len, "expected an absolute path, or none");
	conf->control = value;
	return 0;
}

static int check_metrics(void *arg, const char *value, char *why, size_t len)
{
	return metric_sock_check(value, why, len);
}

static int set_metrics_file(void *arg, const char *value, char *why, size_t len)
{
	struct clt_conf *conf = arg;

	/* A daemon goes to the root directory. */
	if (*value != '/')
		return bad_value(why, len, "expected an absolute path");
	conf->metrics_file = value;
	return 0;
}

static int set_server_uid(void *arg, const char *value, char *why, size_t len)
{
	struct clt_conf *conf = arg;

	if (fab_users_parse(value, &conf->servers) == 0)
		return 0;
	return bad_value(why, len,
			 "expected names or numbers of users, at most %d, with commas between them",
			 FAB_USERS_MAX);
}

/* ---- values that change while the session runs: service thread ---- */

static void set_policy(const void *conf, void *sess)
{
	atomic_store(&((struct clt_sess *)sess)->io.policy,
		     ((const struct clt_conf *)conf)->policy);
}

static void set_attempts(const void *conf, void *sess)
{
	((struct clt_sess *)sess)->max_reconnect_attempts =
		((const struct clt_conf *)conf)->max_reconnect_attempts;
}

/* ---- the table ---- */

#define FIELD(field) OPT_FIELD(struct clt_conf, field)
/* "never" means opposites to different people, so a timeout without end is "forever" alone. */
#define FOREVER(key, what) .of = "seconds", .most = UINT_MAX, .scale = 1000, .special = "forever", \
	.special_value = CLOCK_NEVER, .special_help = "forever: " key "=forever " what

static const struct opt rows[] = {
	{ .name = "server", .type = OPT_OTHER, .call = set_server, .arg = "HOST[:PORT]",
	  .magic = true, .holds = OPT_AT_START,
	  .help = "(required) the rtrs-server (default port: 1234);\n"
	  "or unix:PATH, on this machine" },
	{ .name = "path", .type = OPT_OTHER, .call = set_path, .arg = "[SRC@]DST[:PORT]",
	  .many = true, .holds = OPT_AT_START,
	  .help = "one more path to the server; may be repeated" },
	{ .name = "server-uid", .type = OPT_OTHER, .call = set_server_uid, .arg = "USER[,USER]...",
	  .shown = "root, own user", .holds = OPT_AT_START,
	  .help = "users who may listen at unix:PATH" },
	{ .name = "policy", .type = OPT_WORD, FIELD(policy), .words = clt_pick_policies,
	  .nwords = CLT_NPOLICIES, .fallback = "min-inflight",
	  .holds = OPT_AT_START | OPT_AT_RUN_TIME, .carry_out = set_policy,
	  .help = "path of a request" },
	{ .name = "export", .type = OPT_OTHER, .call = set_export, .arg = "NAME",
	  .shown = "the client's choice", .holds = OPT_AT_START, .help = "export to open" },
	{ .name = "transport", .type = OPT_WORD, FIELD(transport), .words = clt_transport_names,
	  .nwords = CLT_TRANSPORTS, .call = set_transport, .fallback = "auto",
	  .holds = OPT_AT_START, .help = "how to reach the server" },
	{ .name = "sessname", .type = OPT_OTHER, .call = set_sessname, .arg = "NAME",
	  .shown = "unique", .holds = OPT_AT_START, .help = "name of the session, no '.' or '/'" },
	{ .name = "connections", .type = OPT_NUMBER, FIELD(connections), .arg = "N", .least = 1,
	  .most = RTRS_MAX_CONS - 1, .shown = "2 per CPU, at most 8", .holds = OPT_AT_START,
	  .help = "for IO, 1..4095" },
	{ .name = "mode", .type = OPT_WORD, FIELD(mode), .words = rnbd_access_names,
	  .nwords = RNBD_ACCESS_MODES, .special = "auto", .special_value = RNBD_ACCESS_RW,
	  .call = set_mode, .fallback = "auto", .holds = OPT_AT_START,
	  .help = "how to open the export" },
	{ .name = "io-timeout", .type = OPT_NUMBER, FIELD(io_timeout_ms), .arg = "SECONDS|forever",
	  FOREVER("io-timeout", "lets requests wait without end"), .fallback = "120",
	  .holds = OPT_AT_START,
	  .help = "how long requests wait for a server" },
	{ .name = "connect-timeout", .type = OPT_NUMBER, FIELD(connect_timeout_ms),
	  .arg = "SECONDS|forever", FOREVER("connect-timeout", "starts without the server"),
	  .fallback = "0", .holds = OPT_AT_START, .help = "how long to wait at the start" },
	{ .name = "heartbeat", .type = OPT_NUMBER, FIELD(heartbeat_ms), .arg = "MILLISECONDS",
	  .of = "milliseconds", .least = 100, .most = 60000, .fallback = "5000",
	  .holds = OPT_AT_START, .help = "interval of heartbeats to a silent server" },
	{ .name = "heartbeat-misses", .type = OPT_NUMBER, FIELD(heartbeat_misses), .arg = "N",
	  .least = 1, .most = 100, .fallback = "5", .holds = OPT_AT_START,
	  .help = "unanswered heartbeats until a path is lost" },
	{ .name = "max-reconnect-attempts", .type = OPT_NUMBER, FIELD(max_reconnect_attempts),
	  .arg = "N", .most = CLT_RECONNECTS_MAX, .special = "-1", .special_value = UINT64_MAX,
	  .special_help = "-1 for no end", .fallback = "-1", .shown = "-1, never",
	  .holds = OPT_AT_START | OPT_AT_RUN_TIME, .carry_out = set_attempts,
	  .help = "attempts until a path is given up" },
	{ .name = "poll", .type = OPT_NUMBER, FIELD(poll_us), .arg = "MICROSECONDS",
	  .of = "microseconds", .most = 1000000, .fallback = "100", .holds = OPT_AT_START,
	  .help = "busy-poll for up to this long before sleeping" },
	{ .name = "registration", .type = OPT_WORD, FIELD(registration),
	  .words = clt_registration_names, .nwords = CLT_NREGS, .fallback = "auto",
	  .holds = OPT_AT_START, .help = "lifetime of keys of reads" },
	{ .name = "control", .type = OPT_OTHER, .call = set_control, .arg = "PATH|none",
	  .shown = "below /run/nbdkit-rtrs", .holds = OPT_AT_START, .help = "socket for rtrsctl" },
	{ .name = "metrics", .type = OPT_TEXT, FIELD(metrics), .arg = "ADDR:PORT|unix:PATH",
	  .of = "an address", .call = check_metrics, .holds = OPT_AT_START,
	  .help = "tell metrics over HTTP" },
	{ .name = "metrics-file", .type = OPT_OTHER, .call = set_metrics_file, .arg = "FILE",
	  .holds = OPT_AT_START, .help = "tell metrics in a file for node_exporter" },
	{ .name = "metrics-page", .type = OPT_WORD, FIELD(metrics_page),
	  .words = metric_page_names, .nwords = METRIC_PAGE_N, .fallback = "yes",
	  .holds = OPT_AT_START, .help = "a status page beside the metrics" },
};

const struct opt_table clt_conf_options = {
	.program = "nbdkit-rtrs-plugin",
	.rows = rows,
	.n = ARRAY_SIZE(rows),
	.dashes = "",
	.head = "",
	.column = 28,
};

void clt_conf_init(struct clt_conf *conf, const struct clt_front *front)
{
	memset(conf, 0, sizeof(*conf));
	conf->front = front;
	conf->connections = MIN(2 * (unsigned)get_nprocs(), 8u);
	conf->nloops = 1;
	opt_defaults(&clt_conf_options, conf);
}

/* ---- a parameter ---- */

/* Set @err to the text, which is the caller's; NULL: no memory.  Returns -1. */
static int __attribute__((format(printf, 2, 3))) conf_error(char **err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(err, fmt, ap) < 0)
		*err = NULL;
	va_end(ap);
	return -1;
}

/* Refuse a second value, except of a path: of two values the first would be ignored. */
static int check_once(struct clt_conf *conf, const struct opt *row, const char *value, char **err)
{
	const char *key = row->name, **given = &conf->given[row - rows], *first = *given;

	*given = value;
	if (!first || row->many)
		return 0;
	if (!strcmp(key, "server"))
		return conf_error(err,
				  "server=%s: given twice, "
				  "the first is server=%s (path=%s is one more path)",
				  value, first, value);
	return conf_error(err, "%s=%s: given twice, the first is %s=%s", key, value, key, first);
}

static int unknown_parameter(const struct clt_conf *conf, const char *key, char **err)
{
	const char *meant = opt_suggest(&clt_conf_options, key, strlen(key));

	if (meant)
		return conf_error(err, "unknown parameter '%s' (did you mean %s=?)", key, meant);
	return conf_error(err, "unknown parameter '%s': see %s", key, conf->front->help);
}

int clt_conf_set(struct clt_conf *conf, const char *key, const char *value, char **err)
{
	const struct opt *row = opt_find(&clt_conf_options, key);
	char why[256];

	_Static_assert(ARRAY_SIZE(rows) <= ARRAY_SIZE(conf->given),
		       "each parameter has its first value");
	if (!row)
		return unknown_parameter(conf, key, err);
	if (check_once(conf, row, value, err) < 0)
		return -1;
	if (!opt_read(row, conf, value, why, sizeof(why)))
		return 0;
	return conf_error(err, "%s=%s: %s", key, value, why);
}

/* ---- paths ---- */

/* The parameter of @text, a member of path_texts. */
static const char *key_of(const struct clt_conf *conf, const char *text)
{
	return text == conf->server ? "server" : "path";
}

/* rdma://HOST means the same as transport=rdma: refuse two different transports. */
static int check_transports(const struct clt_conf *conf, const char *text, char **err)
{
	if (!conf->provider || fab_addr_text_agrees(text, conf->provider))
		return 0;
	return conf_error(err,
			  "transport=%s contradicts %s=%s: give one of them, or the same twice",
			  fab_provider_name(conf->provider), key_of(conf, text), text);
}

static int complete_path(struct clt_conf *conf, unsigned i, char **err)
{
	const struct fab_provider *provider = conf->provider ? conf->provider :
		fab_provider_find("tcp");
	const char *text = conf->path_texts[i];
	char why[256];
	int r;

	if (check_transports(conf, text, err) < 0)
		return -1;
	r = clt_addr_parse(text, provider, false, &conf->paths[i], why, sizeof(why));
	if (r < 0)
		return conf_error(err, "%s=%s: %s", key_of(conf, text), text, why);
	conf->chooses[i] = !conf->provider && clt_addr_is_open(text);
	conf->automatic |= conf->chooses[i];
	return r;
}

/* Refuse the path @last if an earlier path has the same addresses. */
static int check_twice(const struct clt_conf *conf, unsigned last, char **err)
{
	const char *text = conf->path_texts[last], *other;

	for (unsigned i = 0; i < last; i++) {
		if (!clt_paths_same(&conf->paths[i], &conf->paths[last]))
			continue;
		other = conf->path_texts[i];
		return conf_error(err,
				  "%s=%s and %s=%s are one path: give each path once, "
				  "or another SOURCE@ to each",
				  key_of(conf, other), other, key_of(conf, text), text);
	}
	return 0;
}

int clt_conf_complete(struct clt_conf *conf, char **err)
{
	if (!conf->npaths)
		return conf_error(err, "server= is missing: give the address of an rtrs-server, "
				  "HOST[:PORT]");
	for (unsigned i = 0; i < conf->npaths; i++) {
		if (complete_path(conf, i, err) < 0 || check_twice(conf, i, err) < 0)
			return -1;
	}
	if (!conf->server)
		conf->server = conf->path_texts[0];
	return 0;
}

void clt_conf_choose(struct clt_conf *conf, const struct fab_provider *provider)
{
	for (unsigned i = 0; i < conf->npaths; i++) {
		if (!conf->chooses[i])
			continue;
		conf->paths[i].src.provider = provider;
		conf->paths[i].dst.provider = provider;
	}
}

void clt_conf_sessname(const struct clt_conf *conf, char name[RTRS_NAME_MAX])
{
	char host[128] = "";
	uint32_t salt;

	if (conf->sessname[0]) {
		memcpy(name, conf->sessname, RTRS_NAME_MAX);
		return;
	}
	gethostname(host, sizeof(host) - 1);
	for (char *c = host; *c; c++) {
		if (*c == '.' || *c == '/')
			*c = '-';
	}
	random_bytes(&salt, sizeof(salt));
	snprintf(name, RTRS_NAME_MAX, "%s-%s-%d-%08x", conf->front->name, host, (int)getpid(),
		 salt);
}
