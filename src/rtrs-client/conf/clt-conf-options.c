/* SPDX-License-Identifier: BSD-3-Clause */
/* The parameters as a table, and the values with rules of their own.  Main thread, before the fork,
 * except where another thread is named. */
#include <config.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "clt-conf.h"
#include "number.h"
#include "opt-rows.h"
#include "process.h"
#include "rtrs-msg.h"
#include "unix-sock.h"
#include "util.h"

/* ---- values with rules of their own ---- */

static int add_path(struct clt_conf *conf, const char *value, char *why, size_t len)
{
	if (conf->npaths == CLT_CONF_PATHS_MAX)
		return fmt_error(-EINVAL, why, len, "a session has at most %d paths",
				 CLT_PATHS_MAX);
	conf->path_texts[conf->npaths++] = value;
	return 0;
}

static int set_server(void *arg, const char *value, char *why, size_t len)
{
	struct clt_conf *conf = arg;

	if (!*value)
		return fmt_error(-EINVAL, why, len,
				 "expected HOST[:PORT] or unix:PATH, not an empty value");
	conf->server = conf->server ? conf->server : value;
	return add_path(conf, value, why, len);
}

static int set_path(void *arg, const char *value, char *why, size_t len)
{
	if (*value)
		return add_path(arg, value, why, len);
	return fmt_error(-EINVAL, why, len,
			 "expected [SRC@]DST[:PORT] or unix:PATH, not an empty value");
}

static int set_export(void *arg, const char *value, char *why, size_t len)
{
	struct clt_conf *conf = arg;

	if (!*value || strlen(value) >= RNBD_NAME_MAX)
		return fmt_error(-EINVAL, why, len, "expected a name of 1..%d characters",
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
	return fmt_error(-EINVAL, why, len, "this %s was built without RDMA", conf->front->program);
}

static int check_digest(void *arg, const char *value, char *why, size_t len)
{
	const struct clt_conf *conf = arg;

	if (conf->sess.path.digest == RTRS_DIGEST_NONE || rtrs_digest_works())
		return 0;
	return fmt_error(-EINVAL, why, len, "this %s was built without ISA-L (libisal)",
			 conf->front->program);
}

static int set_sessname(void *arg, const char *value, char *why, size_t len)
{
	struct clt_conf *conf = arg;

	if (!rtrs_sessname_ok(value))
		return fmt_error(-EINVAL, why, len, "expected 1..%d characters without '/' and '.'",
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

static bool same_mode(const void *a, const void *b)
{
	const struct clt_conf *in_a = a, *in_b = b;

	return in_a->mode == in_b->mode && in_a->mode_auto == in_b->mode_auto;
}

static int set_control(void *arg, const char *value, char *why, size_t len)
{
	struct clt_conf *conf = arg;

	/* A daemon goes to the root directory. */
	if (*value != '/' && strcmp(value, "none"))
		return fmt_error(-EINVAL, why, len, "expected an absolute path, or none");
	conf->control = value;
	return unix_sock_check(conf, value, why, len);
}

static int set_metrics_file(void *arg, const char *value, char *why, size_t len)
{
	struct clt_conf *conf = arg;

	/* A daemon goes to the root directory. */
	if (*value != '/')
		return fmt_error(-EINVAL, why, len, "expected an absolute path");
	conf->metrics_file = value;
	return 0;
}

static int set_name(void *arg, const char *value, char *why, size_t len)
{
	struct clt_conf *conf = arg;

	if (!rundir_name_ok(value))
		return fmt_error(-EINVAL, why, len,
				 "expected 1 to %d bytes of UTF-8 without control characters",
				 RUNDIR_NAME_MAX - 1);
	conf->name = value;
	return 0;
}

static int set_server_uid(void *arg, const char *value, char *why, size_t len)
{
	struct clt_conf *conf = arg;

	if (fab_users_parse(value, &conf->sess.path.servers) == 0)
		return 0;
	return fmt_error(-EINVAL, why, len,
			 "expected names of users of this machine, or numbers, at most %d, with "
			 "commas between them",
			 FAB_USERS_MAX);
}

static int set_verify_peer(void *arg, const char *value, char *why, size_t len)
{
	struct clt_conf *conf = arg;

	if (fab_tls_parse_bool(value, &conf->tls_conf.verify_peer))
		return 0;
	return fmt_error(-EINVAL, why, len, "expected true or false");
}

/* ---- values that change while the session runs: service thread ---- */

static void set_policy(const void *conf, void *sess)
{
	atomic_store(&((struct clt_sess *)sess)->io.policy,
		     ((const struct clt_conf *)conf)->sess.policy);
}

static void set_attempts(const void *conf, void *sess)
{
	((struct clt_sess *)sess)->max_reconnect_attempts =
		((const struct clt_conf *)conf)->sess.max_reconnect_attempts;
}

static void set_io_timeout(const void *conf, void *sess)
{
	clt_sess_set_io_timeout(sess, ((const struct clt_conf *)conf)->sess.io_timeout_ms);
}

static void set_heartbeats(const void *arg, void *sess)
{
	const struct clt_conf *conf = arg;

	clt_sess_set_heartbeats(sess, conf->sess.path.hb_interval_ms,
				conf->sess.path.hb_misses);
}

static void set_poll(const void *conf, void *sess)
{
	clt_sess_set_poll(sess, ((const struct clt_conf *)conf)->sess.poll_us);
}

/* The start is over. */
static void set_connect_timeout(const void *conf, void *sess)
{
}

/* ---- the table ---- */

#define FIELD(field) OPT_FIELD(struct clt_conf, field)
#define ASKED(field) OPT_ASKED(struct clt_conf, field)
#define IN_FILE (OPT_AT_START | OPT_IN_FILE)
/* "never" means opposites to different people, so a timeout without end is "forever" alone. */
#define FOREVER(key, what) .of = "seconds", .most = UINT_MAX, .scale = 1000, .special = "forever", \
	.special_value = CLOCK_NEVER, .special_help = "forever: " key "=forever " what

static const struct opt rows[] = {
	{ .name = "server", .type = OPT_OTHER, .call = set_server, .arg = "HOST[:PORT]",
	  .magic = true, .holds = IN_FILE,
	  .twice = "another address of this server is a path",
	  .help = "(required) the rtrs-server (default port: 1234);\n"
	  "or unix:PATH, on this machine" },
	{ .name = "path", .type = OPT_OTHER, .call = set_path, .arg = "[SRC@]DST[:PORT]",
	  .many = true, .holds = IN_FILE,
	  .help = "one more path to the server; may be repeated" },
	{ .name = "server-uid", .type = OPT_OTHER, .call = set_server_uid, .arg = "USER[,USER]...",
	  .shown = "root, own user", .holds = IN_FILE,
	  .help = "users listening at unix:PATH" },
	{ OPT_ROW_TLS(struct clt_conf, tls_conf), .help = "encrypt" },
	{ OPT_ROW_TLS_PSK(struct clt_conf, tls_conf), .help = "pre-shared keys, NAME:KEY" },
	{ .name = "tls-username", .type = OPT_TEXT, FIELD(tls_conf.username), .arg = "NAME",
	  .of = "a name", .shown = "the only one", .holds = IN_FILE,
	  .help = "name of the key in tls-psk" },
	{ OPT_ROW_TLS_CERTIFICATES(struct clt_conf, tls_conf), .help = "X.509 certificates" },
	{ .name = "tls-hostname", .type = OPT_TEXT, FIELD(tls_conf.hostname), .arg = "NAME",
	  .of = "a name", .shown = "the address", .holds = IN_FILE,
	  .help = "name in the server's certificate" },
	{ .name = "tls-verify-peer", .type = OPT_OTHER, .call = set_verify_peer,
	  .arg = "true|false", .shown = "true", .holds = IN_FILE,
	  .help = "check the server's certificate" },
	{ OPT_ROW_TLS_KTLS(struct clt_conf, tls_conf) },
	{ OPT_ROW_AUTH(struct clt_conf, auth_conf), .help = "authenticate" },
	{ OPT_ROW_AUTH_PSK(struct clt_conf, auth_conf) },
	{ .name = "auth-username", .type = OPT_TEXT, FIELD(auth_conf.username), .arg = "NAME",
	  .of = "a name", .shown = "the only one", .holds = IN_FILE,
	  .help = "name of the key in auth-psk" },
	{ .name = "auth-hostname", .type = OPT_TEXT, FIELD(auth_conf.hostname),
	  .arg = "NAME[,NAME...]", .of = "a name", .shown = "any", .holds = IN_FILE,
	  .help = "name that the server has to prove" },
	{ .name = "policy", .type = OPT_WORD, FIELD(sess.policy), .words = clt_pick_policies,
	  .nwords = CLT_NPOLICIES, .fallback = "min-inflight",
	  .holds = IN_FILE | OPT_AT_RUN_TIME, .carry_out = set_policy,
	  .help = "path of a request" },
	{ .name = "export", .type = OPT_OTHER, .call = set_export, .arg = "NAME",
	  .shown = "the client's choice", .holds = IN_FILE, .help = "export to open" },
	{ .name = "transport", .type = OPT_WORD, FIELD(transport), .words = clt_transport_names,
	  .nwords = CLT_TRANSPORTS, .call = set_transport, .fallback = "auto",
	  .holds = IN_FILE, .help = "how to reach the server" },
	{ .name = "sessname", .type = OPT_OTHER, .call = set_sessname, .arg = "NAME",
	  .shown = "unique", .holds = IN_FILE, .help = "name of the session, no '.' or '/'" },
	{ .name = "connections", .type = OPT_NUMBER, FIELD(sess.connections), .arg = "N",
	  .least = 1, .most = RTRS_MAX_CONS - 1, .shown = "2 per CPU, at most 8", .holds = IN_FILE,
	  .help = "for IO, 1..4095" },
	{ .name = "mode", .type = OPT_WORD, FIELD(mode), .words = rnbd_access_names,
	  .nwords = RNBD_ACCESS_MODES, .special = "auto", .special_value = RNBD_ACCESS_RW,
	  .call = set_mode, .same = same_mode, .fallback = "auto", .holds = IN_FILE,
	  .help = "how to open the export" },
	{ .name = "io-timeout", .type = OPT_NUMBER, FIELD(sess.io_timeout_ms),
	  .arg = "SECONDS|forever", FOREVER("io-timeout", "lets requests wait without end"),
	  .fallback = "120", .holds = IN_FILE | OPT_AT_RUN_TIME, .carry_out = set_io_timeout,
	  .help = "how long requests wait for a server" },
	{ .name = "connect-timeout", .type = OPT_NUMBER, FIELD(connect_timeout_ms),
	  .arg = "SECONDS|forever", FOREVER("connect-timeout", "starts without the server"),
	  .fallback = "0", .holds = IN_FILE | OPT_AT_RUN_TIME, .carry_out = set_connect_timeout,
	  .help = "how long to wait at the start" },
	{ .name = "heartbeat", .type = OPT_NUMBER, FIELD(sess.path.hb_interval_ms),
	  .arg = "MILLISECONDS", .of = "milliseconds", .least = 100, .most = 60000,
	  .shown = "750; RDMA 5000", .holds = IN_FILE | OPT_AT_RUN_TIME,
	  .carry_out = set_heartbeats, .help = "interval of heartbeats" },
	{ .name = "heartbeat-misses", .type = OPT_NUMBER, FIELD(sess.path.hb_misses), .arg = "N",
	  .least = 1, .most = 100, .shown = "2; RDMA 5",
	  .holds = IN_FILE | OPT_AT_RUN_TIME, .carry_out = set_heartbeats,
	  .help = "unanswered ones until a path is lost" },
	{ .name = "max-reconnect-attempts", .type = OPT_NUMBER, FIELD(sess.max_reconnect_attempts),
	  .arg = "N", .most = CLT_RECONNECTS_MAX, .special = "-1", .special_value = UINT64_MAX,
	  .special_help = "-1 for no end", .fallback = "-1", .shown = "-1, never",
	  .holds = IN_FILE | OPT_AT_RUN_TIME, .carry_out = set_attempts,
	  .help = "attempts until a path is given up" },
	{ .name = "poll", .type = OPT_NUMBER, FIELD(sess.poll_us), .arg = "MICROSECONDS",
	  .of = "microseconds", .most = 1000000, .fallback = "100",
	  .holds = IN_FILE | OPT_AT_RUN_TIME, .carry_out = set_poll,
	  .help = "busy-poll for up to this long before sleeping" },
	{ .name = "registration", .type = OPT_WORD, FIELD(sess.path.registration),
	  .words = clt_registration_names, .nwords = CLT_NREGS, .fallback = "auto",
	  .holds = IN_FILE, .help = "lifetime of memory keys of reads" },
	{ .name = "digest", .type = OPT_WORD, FIELD(sess.path.digest), .words = rtrs_digest_names,
	  .nwords = RTRS_DIGESTS, .call = check_digest, .fallback = "none", .holds = IN_FILE,
	  .help = "checksums of requests and answers" },
	{ .name = "control", .type = OPT_OTHER, .call = set_control, .arg = "PATH|none",
	  .shown = "below /run/nbdkit-rtrs", .holds = IN_FILE, .help = "socket for rtrsctl" },
	{ OPT_ROW_METRICS(struct clt_conf) },
	{ .name = "metrics-file", .type = OPT_OTHER, .call = set_metrics_file, .arg = "FILE",
	  .holds = IN_FILE, .help = "write metrics to a file for node_exporter" },
	{ OPT_ROW_METRICS_PAGE(struct clt_conf) },
	{ OPT_ROW_METRICS_HOST(struct clt_conf) },
	{ .name = "name", .type = OPT_OTHER, .call = set_name, .arg = "NAME",
	  .shown = "the export's", .holds = IN_FILE, .help = "name for rtrsctl" },
	{ .name = "config", .type = OPT_TEXT, FIELD(config), .of = "a file", .arg = "FILE",
	  .holds = OPT_AT_START, .instead = "a file cannot name another file",
	  .help = "more parameters, a line each; FILE.d/*.conf, too" },
};

const struct opt_table clt_conf_options = {
	.program = "nbdkit-rtrs-plugin",
	.rows = rows,
	.n = ARRAY_SIZE(rows),
	.dashes = "",
	.head = "",
	.column = 28,
};

_Static_assert(ARRAY_SIZE(rows) <= OPT_ROWS_MAX, "clt_conf.values has a place for each parameter");

/* Part 0 of the rows behind those of a front end (opt_table.more). */
const struct opt_table *clt_conf_part(unsigned i)
{
	return i ? NULL : &clt_conf_options;
}

bool clt_conf_is_path(const struct opt *row)
{
	return !strcmp(row->name, "server") || !strcmp(row->name, "path");
}

size_t clt_conf_size(const struct clt_front *front)
{
	return front->options ? front->conf_size : sizeof(struct clt_conf);
}

void clt_conf_init(struct clt_conf *conf, const struct clt_front *front)
{
	memset(conf, 0, sizeof(*conf));
	conf->front = front;
	conf->sess.connections = MIN(2 * machine()->cpus, 8u);
	conf->sess.nloops = 1;
	conf->tls_conf.verify_peer = true;
	opt_defaults(&clt_conf_options, conf);
	if (front->defaults)
		front->defaults(conf);
}
