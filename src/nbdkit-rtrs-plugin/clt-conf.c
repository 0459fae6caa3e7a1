/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses the plugin's parameters.  Main thread, before the fork. */
#include <config.h>

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <nbdkit-plugin.h>

#include "clock.h"
#include "clt-conf.h"
#include "rtrs-msg.h"
#include "suggest.h"
#include "util.h"

const char clt_conf_help[] =
	"[server=]HOST[:PORT]        (required) the rtrs-server (default port: 1234)\n"
	"export=NAME                 export to open (default: what the client asks for)\n"
	"transport=auto|rdma|tcp     how to reach the server (default: auto)\n"
	"sessname=NAME               name of the session, no '.' or '/' (default: unique)\n"
	"connections=N               for IO, 1..4095 (default: 2 per CPU, at most 8)\n"
	"mode=auto|rw|ro|migration   how to open the export (default: auto)\n"
	"io-timeout=SECONDS|forever  how long requests wait for a server (default: 30)\n"
	"poll=MICROSECONDS           look so long before sleeping (default: 0)\n"
	"registration=auto|window|static  how long keys of reads live (default: auto)";

const char *const clt_conf_keys[] = {
	"server", "export", "transport", "sessname", "connections", "mode", "io-timeout",
	"poll", "registration", NULL,
};

/* Digits only, at most @max. */
static int read_number(const char *value, unsigned min, unsigned max, unsigned *n)
{
	unsigned long x = 0;
	char *end = NULL;

	errno = 0;
	if (isdigit((unsigned char)*value))
		x = strtoul(value, &end, 10);
	if (!end || *end || errno || x < min || x > max)
		return -1;
	*n = (unsigned)x;
	return 0;
}

static int parse_number(const char *key, const char *value, unsigned min, unsigned max,
			unsigned *n)
{
	if (read_number(value, min, max, n) == 0)
		return 0;
	nbdkit_error("%s=%s: expected a number from %u to %u", key, value, min, max);
	return -1;
}

static int set_server(struct clt_conf *conf, const char *value)
{
	if (!*value) {
		nbdkit_error("server=: expected HOST[:PORT], not an empty value");
		return -1;
	}
	if (conf->server) {
		nbdkit_error("server=%s: given twice, the first is server=%s", value, conf->server);
		return -1;
	}
	conf->server = value;
	return 0;
}

static int set_export(struct clt_conf *conf, const char *value)
{
	if (!*value || strlen(value) >= RNBD_NAME_MAX) {
		nbdkit_error("export=%s: expected a name of 1..%d characters", value,
			     RNBD_NAME_MAX - 1);
		return -1;
	}
	conf->export_name = value;
	return 0;
}

static int set_transport(struct clt_conf *conf, const char *value)
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
		nbdkit_error("transport=rdma: this nbdkit-rtrs-plugin was built without RDMA");
	else
		nbdkit_error("transport=%s: expected auto, rdma or tcp", value);
	return -1;
}

static int set_sessname(struct clt_conf *conf, const char *value)
{
	if (!rtrs_sessname_ok(value)) {
		nbdkit_error("sessname=%s: expected 1..%d characters without '/' and '.'", value,
			     RTRS_NAME_MAX - 1);
		return -1;
	}
	snprintf(conf->sessname, sizeof(conf->sessname), "%s", value);
	return 0;
}

static int set_connections(struct clt_conf *conf, const char *value)
{
	return parse_number("connections", value, 1, CLT_CONF_CONNECTIONS_MAX, &conf->connections);
}

static int set_mode(struct clt_conf *conf, const char *value)
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
	nbdkit_error("mode=%s: expected auto, rw, ro or migration", value);
	return -1;
}

static int set_io_timeout(struct clt_conf *conf, const char *value)
{
	unsigned seconds;

	if (!strcmp(value, "forever")) {
		conf->io_timeout_ms = CLOCK_NEVER;
		return 0;
	}
	/* "never" means opposites to different people, so that no word is taken but this one. */
	if (read_number(value, 0, UINT_MAX, &seconds) < 0) {
		nbdkit_error("io-timeout=%s: expected a number of seconds from 0 to %u, or forever: "
			     "io-timeout=forever lets requests wait without end", value, UINT_MAX);
		return -1;
	}
	conf->io_timeout_ms = (uint64_t)seconds * 1000;
	return 0;
}

static int set_poll(struct clt_conf *conf, const char *value)
{
	return parse_number("poll", value, 0, CLT_CONF_POLL_US_MAX, &conf->poll_us);
}

static int set_registration(struct clt_conf *conf, const char *value)
{
	for (unsigned i = 0; i < CLT_NREGS; i++) {
		if (!strcmp(value, clt_registration_names[i])) {
			conf->registration = (enum clt_registration)i;
			return 0;
		}
	}
	nbdkit_error("registration=%s: expected auto, window or static", value);
	return -1;
}

void clt_conf_init(struct clt_conf *conf)
{
	memset(conf, 0, sizeof(*conf));
	conf->connections = MIN(2 * (unsigned)get_nprocs(), 8u);
	conf->mode = RNBD_ACCESS_RW;
	conf->mode_auto = true;
	conf->io_timeout_ms = CLT_CONF_IO_TIMEOUT_S * UINT64_C(1000);
}

int clt_conf_set(struct clt_conf *conf, const char *key, const char *value)
{
	static int (*const set[])(struct clt_conf *conf, const char *value) = {
		set_server, set_export, set_transport, set_sessname, set_connections, set_mode,
		set_io_timeout, set_poll, set_registration,
	};
	const char *meant;

	for (unsigned i = 0; clt_conf_keys[i]; i++) {
		if (!strcmp(key, clt_conf_keys[i]))
			return set[i](conf, value);
	}
	meant = suggest(key, strlen(key), clt_conf_keys, ARRAY_SIZE(set));
	if (meant)
		nbdkit_error("unknown parameter '%s' (did you mean %s=?)", key, meant);
	else
		nbdkit_error("unknown parameter '%s': see nbdkit rtrs --help", key);
	return -1;
}

/* server=rdma://HOST says what transport= says: which of two that differ is meant nobody knows. */
static int check_transports(const struct clt_conf *conf)
{
	const char *sep = strstr(conf->server, "://");
	const char *name = conf->provider ? fab_provider_name(conf->provider) : NULL;
	size_t len = name ? strlen(name) : 0;

	if (!sep || !name || ((size_t)(sep - conf->server) == len && !strncmp(conf->server, name, len)))
		return 0;
	nbdkit_error("transport=%s contradicts server=%s: give one of them, or the same twice", name,
		     conf->server);
	return -1;
}

int clt_conf_complete(struct clt_conf *conf)
{
	char err[256];

	if (!conf->server) {
		nbdkit_error("server= is missing: give the address of an rtrs-server, HOST[:PORT]");
		return -1;
	}
	if (check_transports(conf) < 0)
		return -1;
	conf->automatic = !conf->provider && !strstr(conf->server, "://");
	if (fab_addr_parse(conf->server, conf->provider ? conf->provider : fab_provider_find("tcp"),
			   RTRS_PORT, &conf->dst, err, sizeof(err)) < 0) {
		nbdkit_error("server: %s", err);
		return -1;
	}
	return 0;
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
	snprintf(name, RTRS_NAME_MAX, "nbdkit-%s-%d-%08x", host, (int)getpid(), salt);
}
