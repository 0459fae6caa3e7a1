/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses parameters.  Main thread, before the fork. */
#include <config.h>

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "clock.h"
#include "clt-addr.h"
#include "clt-conf.h"
#include "clt-paths.h"
#include "number.h"
#include "rtrs-msg.h"
#include "suggest.h"
#include "util.h"

const char clt_conf_help[] =
	"[server=]HOST[:PORT]        (required) the rtrs-server (default port: 1234);\n"
	"                            or unix:PATH, on this machine\n"
	"path=[SRC@]DST[:PORT]       one more path to it, as often as there are\n"
	"server-uid=USER[,USER]...   who listens at unix:PATH (default: root, own user)\n"
	"policy=min-inflight|round-robin|min-latency  which path a request takes\n"
	"export=NAME                 export to open (default: what the client asks for)\n"
	"transport=auto|rdma|tcp     how to reach the server (default: auto)\n"
	"sessname=NAME               name of the session, no '.' or '/' (default: unique)\n"
	"connections=N               for IO, 1..4095 (default: 2 per CPU, at most 8)\n"
	"mode=auto|rw|ro|migration   how to open the export (default: auto)\n"
	"io-timeout=SECONDS|forever  how long requests wait for a server (default: 120)\n"
	"connect-timeout=SECONDS|forever  how long the start waits for it (default: 0)\n"
	"heartbeat=MILLISECONDS      ask a silent server so often (default: 5000)\n"
	"heartbeat-misses=N          without an answer a path is lost (default: 5)\n"
	"max-reconnect-attempts=N    then a path is given up (default: -1, never)\n"
	"poll=MICROSECONDS           look for at most so long before sleeping (100)\n"
	"registration=auto|window|static  how long keys of reads live (default: auto)\n"
	"control=PATH|none           socket for rtrsctl (default: below /run/nbdkit-rtrs)";

const char *const clt_conf_keys[] = {
	"server", "path", "export", "transport", "sessname", "connections", "mode", "policy", "io-timeout",
	"connect-timeout", "heartbeat", "heartbeat-misses", "max-reconnect-attempts", "poll",
	"registration", "control", "server-uid", NULL,
};

/* @err becomes the text, which is the caller's; NULL: no memory.  Returns -1. */
static int __attribute__((format(printf, 2, 3))) wrong(char **err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(err, fmt, ap) < 0)
		*err = NULL;
	va_end(ap);
	return -1;
}

/* @what: "a number", or of what. */
static int parse_number(const char *key, const char *value, const char *what, unsigned min, unsigned max,
			unsigned *n, char **err)
{
	if (number_parse_u(value, min, max, n))
		return 0;
	return wrong(err, "%s=%s: expected %s from %u to %u", key, value, what, min, max);
}

static int add_path(struct clt_conf *conf, const char *value, char **err)
{
	if (conf->npaths == CLT_PATHS_MAX)
		return wrong(err, "path=%s: a session has at most %d paths", value, CLT_PATHS_MAX);
	conf->path_texts[conf->npaths++] = value;
	return 0;
}

static int set_server(struct clt_conf *conf, const char *value, char **err)
{
	if (!*value)
		return wrong(err, "server=: expected HOST[:PORT] or unix:PATH, not an empty value");
	conf->server = value;
	return add_path(conf, value, err);
}

static int set_path(struct clt_conf *conf, const char *value, char **err)
{
	if (*value)
		return add_path(conf, value, err);
	return wrong(err, "path=: expected [SRC@]DST[:PORT] or unix:PATH, not an empty value");
}

static int set_export(struct clt_conf *conf, const char *value, char **err)
{
	if (!*value || strlen(value) >= RNBD_NAME_MAX)
		return wrong(err, "export=%s: expected a name of 1..%d characters", value,
			     RNBD_NAME_MAX - 1);
	conf->export_name = value;
	return 0;
}

static int set_transport(struct clt_conf *conf, const char *value, char **err)
{
	bool rdma = !strcmp(value, "rdma");

	if (!strcmp(value, "auto")) {
		conf->provider = NULL;
		return 0;
	}
	conf->provider = rdma || !strcmp(value, "tcp") ? fab_provider_find(value) : NULL;
	if (conf->provider)
		return 0;
	if (rdma)
		return wrong(err, "transport=rdma: this %s was built without RDMA", conf->front->program);
	return wrong(err, "transport=%s: expected auto, rdma or tcp", value);
}

static int set_sessname(struct clt_conf *conf, const char *value, char **err)
{
	if (!rtrs_sessname_ok(value))
		return wrong(err, "sessname=%s: expected 1..%d characters without '/' and '.'", value,
			     RTRS_NAME_MAX - 1);
	snprintf(conf->sessname, sizeof(conf->sessname), "%s", value);
	return 0;
}

static int set_connections(struct clt_conf *conf, const char *value, char **err)
{
	return parse_number("connections", value, "a number", 1, CLT_CONF_CONNECTIONS_MAX, &conf->connections, err);
}

static int set_mode(struct clt_conf *conf, const char *value, char **err)
{
	static const char *const modes[] = {
		[RNBD_ACCESS_RO] = "ro",
		[RNBD_ACCESS_RW] = "rw",
		[RNBD_ACCESS_MIGRATION] = "migration",
	};

	conf->mode_auto = !strcmp(value, "auto");
	if (conf->mode_auto) {
		conf->mode = RNBD_ACCESS_RW;
		return 0;
	}
	for (unsigned i = 0; i < ARRAY_SIZE(modes); i++) {
		if (!strcmp(value, modes[i])) {
			conf->mode = (enum rnbd_access_mode)i;
			return 0;
		}
	}
	return wrong(err, "mode=%s: expected auto, rw, ro or migration", value);
}

static int parse_timeout(const char *key, const char *what, const char *value, uint64_t *ms, char **err)
{
	unsigned seconds;

	if (!strcmp(value, "forever")) {
		*ms = CLOCK_NEVER;
		return 0;
	}
	/* "never" means opposites to different people, so that no word is taken but this one. */
	if (!number_parse_u(value, 0, UINT_MAX, &seconds))
		return wrong(err, "%s=%s: expected a number of seconds from 0 to %u, or forever: "
			     "%s=forever %s", key, value, UINT_MAX, key, what);
	*ms = (uint64_t)seconds * 1000;
	return 0;
}

static int set_io_timeout(struct clt_conf *conf, const char *value, char **err)
{
	return parse_timeout("io-timeout", "lets requests wait without end", value, &conf->io_timeout_ms, err);
}

static int set_connect_timeout(struct clt_conf *conf, const char *value, char **err)
{
	return parse_timeout("connect-timeout", "starts without the server", value,
			     &conf->connect_timeout_ms, err);
}

static int set_heartbeat(struct clt_conf *conf, const char *value, char **err)
{
	return parse_number("heartbeat", value, "a number of milliseconds", CLT_CONF_HEARTBEAT_MS_MIN,
			    CLT_CONF_HEARTBEAT_MS_MAX, &conf->heartbeat_ms, err);
}

static int set_heartbeat_misses(struct clt_conf *conf, const char *value, char **err)
{
	return parse_number("heartbeat-misses", value, "a number", 1, CLT_CONF_HEARTBEAT_MISSES_MAX,
			    &conf->heartbeat_misses, err);
}

static int set_reconnects(struct clt_conf *conf, const char *value, char **err)
{
	unsigned n;

	if (!strcmp(value, "-1")) {
		conf->max_reconnect_attempts = -1;
		return 0;
	}
	if (!number_parse_u(value, 0, CLT_RECONNECTS_MAX, &n))
		return wrong(err, "max-reconnect-attempts=%s: expected a number from 0 to %u, or -1 for no end", value,
			     CLT_RECONNECTS_MAX);
	conf->max_reconnect_attempts = (int)n;
	return 0;
}

static int set_policy(struct clt_conf *conf, const char *value, char **err)
{
	for (unsigned i = 0; i < CLT_NPOLICIES; i++) {
		if (!strcmp(value, clt_pick_policies[i])) {
			conf->policy = (enum clt_policy)i;
			return 0;
		}
	}
	return wrong(err, "policy=%s: expected round-robin, min-inflight or min-latency", value);
}

static int set_poll(struct clt_conf *conf, const char *value, char **err)
{
	return parse_number("poll", value, "a number of microseconds", 0, CLT_CONF_POLL_US_MAX, &conf->poll_us, err);
}

static int set_registration(struct clt_conf *conf, const char *value, char **err)
{
	for (unsigned i = 0; i < CLT_NREGS; i++) {
		if (!strcmp(value, clt_registration_names[i])) {
			conf->registration = (enum clt_registration)i;
			return 0;
		}
	}
	return wrong(err, "registration=%s: expected auto, window or static", value);
}

static int set_control(struct clt_conf *conf, const char *value, char **err)
{
	/* A daemon goes to the root directory. */
	if (*value != '/' && strcmp(value, "none"))
		return wrong(err, "control=%s: expected an absolute path, or none", value);
	conf->control = value;
	return 0;
}

static int set_server_uid(struct clt_conf *conf, const char *value, char **err)
{
	if (fab_users_parse(value, &conf->servers) == 0)
		return 0;
	return wrong(err, "server-uid=%s: expected names or numbers of users, at most %d, with commas between them", value,
		     FAB_USERS_MAX);
}

void clt_conf_init(struct clt_conf *conf, const struct clt_front *front)
{
	memset(conf, 0, sizeof(*conf));
	conf->front = front;
	conf->connections = MIN(2 * (unsigned)get_nprocs(), 8u);
	conf->mode = RNBD_ACCESS_RW;
	conf->mode_auto = true;
	conf->io_timeout_ms = CLT_CONF_IO_TIMEOUT_S * UINT64_C(1000);
	conf->policy = CLT_POLICY_MIN_INFLIGHT;
	conf->heartbeat_ms = RTRS_HB_INTERVAL_MS;
	conf->heartbeat_misses = RTRS_HB_MISSED_MAX;
	conf->max_reconnect_attempts = -1;
	conf->poll_us = CLT_CONF_POLL_US;
}

/* Only paths are a list.  Of two values of anything else one would be ignored. */
static int check_once(struct clt_conf *conf, unsigned i, const char *value, char **err)
{
	const char *key = clt_conf_keys[i], *first = conf->given[i];

	conf->given[i] = value;
	if (!first || !strcmp(key, "path"))
		return 0;
	if (!strcmp(key, "server"))
		return wrong(err, "server=%s: given twice, the first is server=%s (path=%s is one more path)", value,
			     first, value);
	return wrong(err, "%s=%s: given twice, the first is %s=%s", key, value, key, first);
}

static int unknown_parameter(const struct clt_conf *conf, const char *key, char **err)
{
	const char *meant;
	size_t n = 0;

	while (clt_conf_keys[n])
		n++;
	meant = suggest(key, strlen(key), clt_conf_keys, n);
	if (meant)
		return wrong(err, "unknown parameter '%s' (did you mean %s=?)", key, meant);
	return wrong(err, "unknown parameter '%s': see %s", key, conf->front->help);
}

int clt_conf_set(struct clt_conf *conf, const char *key, const char *value, char **err)
{
	static int (*const set[])(struct clt_conf *conf, const char *value, char **err) = {
		set_server, set_path, set_export, set_transport, set_sessname, set_connections, set_mode, set_policy,
		set_io_timeout, set_connect_timeout, set_heartbeat, set_heartbeat_misses, set_reconnects, set_poll,
		set_registration, set_control, set_server_uid,
	};

	_Static_assert(ARRAY_SIZE(set) <= ARRAY_SIZE(conf->given), "each parameter has its first value");
	for (unsigned i = 0; clt_conf_keys[i]; i++) {
		if (!strcmp(key, clt_conf_keys[i]))
			return check_once(conf, i, value, err) < 0 ? -1 : set[i](conf, value, err);
	}
	return unknown_parameter(conf, key, err);
}

/* ---- paths ---- */

/* Which parameter @text, one of path_texts, came with. */
static const char *key_of(const struct clt_conf *conf, const char *text)
{
	return text == conf->server ? "server" : "path";
}

/* rdma://HOST says what transport= says: which of two that differ is meant nobody knows. */
static int check_transports(const struct clt_conf *conf, const char *text, char **err)
{
	if (!conf->provider || fab_addr_text_agrees(text, conf->provider))
		return 0;
	return wrong(err, "transport=%s contradicts %s=%s: give one of them, or the same twice", fab_provider_name(conf->provider),
		     key_of(conf, text), text);
}

static int complete_path(struct clt_conf *conf, unsigned i, char **err)
{
	const struct fab_provider *provider = conf->provider ? conf->provider : fab_provider_find("tcp");
	const char *text = conf->path_texts[i];
	char why[256];
	int r;

	if (check_transports(conf, text, err) < 0)
		return -1;
	r = clt_addr_parse(text, provider, false, &conf->paths[i], why, sizeof(why));
	if (r < 0)
		return wrong(err, "%s=%s: %s", key_of(conf, text), text, why);
	conf->chooses[i] = !conf->provider && clt_addr_is_open(text);
	conf->automatic |= conf->chooses[i];
	return r;
}

/* The last path so far is none of those before it. */
static int check_twice(const struct clt_conf *conf, unsigned last, char **err)
{
	const char *text = conf->path_texts[last], *other;

	for (unsigned i = 0; i < last; i++) {
		if (!clt_paths_same(&conf->paths[i], &conf->paths[last]))
			continue;
		other = conf->path_texts[i];
		return wrong(err, "%s=%s and %s=%s are one path: give each path once, or another SOURCE@ to "
			     "each", key_of(conf, other), other, key_of(conf, text), text);
	}
	return 0;
}

int clt_conf_complete(struct clt_conf *conf, char **err)
{
	if (!conf->npaths)
		return wrong(err, "server= is missing: give the address of an rtrs-server, HOST[:PORT]");
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
	uint32_t salt = 0;

	if (conf->sessname[0]) {
		memcpy(name, conf->sessname, RTRS_NAME_MAX);
		return;
	}
	gethostname(host, sizeof(host) - 1);
	for (char *c = host; *c; c++) {
		if (*c == '.' || *c == '/')
			*c = '-';
	}
	if (getrandom(&salt, sizeof(salt), 0) != sizeof(salt))
		salt = (uint32_t)clock_now_ms();
	snprintf(name, RTRS_NAME_MAX, "%s-%s-%d-%08x", conf->front->name, host, (int)getpid(), salt);
}
