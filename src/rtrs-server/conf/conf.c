/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes a configuration, in this order: defaults; the files; the command line, which replaces
 * values of the files; listeners that nobody has named; a check of the options against each other.
 * Opens no export or socket.
 *
 * Possible failures: each mistake is a line, and the files are read to their ends behind one. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf.h"
#include "fab-names.h"
#include "number.h"
#include "process.h"
#include "rtrs-imm.h"
#include "rtrs-proto.h"
#include "unix-sock.h"
#include "util.h"

#define CONF_THREADS_DEFAULT 4

/* ---- listeners ---- */

bool conf_same_listener(const struct fab_addr *a, const struct fab_addr *b)
{
	return a->provider == b->provider && fab_addr_same_host(a, b) &&
	       (fab_addr_is_unix(a) || fab_addr_port(a) == fab_addr_port(b));
}

/* True if @a and @b are the same place.  Port 0 is a different port each time. */
static bool same_place(const struct fab_addr *a, const struct fab_addr *b)
{
	return conf_same_listener(a, b) && (fab_addr_is_unix(a) || fab_addr_port(a));
}

bool conf_listener_is_missing(const struct conf_listener *l, int rc)
{
	return l->one_of && (rc == -EADDRNOTAVAIL || rc == -EAFNOSUPPORT);
}

/* Read ",auth=MODE" at the end of @text.  *@len becomes the length of the address. */
static int listener_mode(const char *text, size_t *len, enum auth_mode *mode, char *why,
			 size_t whylen)
{
	const char *end = strrchr(text, ',');

	*len = strlen(text);
	*mode = AUTH_MODES;
	if (!end || strncmp(end, ",auth=", 6))
		return 0;
	*len = (size_t)(end - text);
	for (unsigned i = 0; i < AUTH_MODES; i++) {
		if (!strcmp(end + 6, auth_mode_names[i])) {
			*mode = (enum auth_mode)i;
			return 0;
		}
	}
	snprintf(why, whylen, "expected auth=none, auth=psk or auth=require after the ','");
	return -EINVAL;
}

static int add_listen_address(struct srv_conf *conf, const struct conf_listener *l, char *why,
			      size_t len)
{
	unsigned n = conf->nlisteners;
	void *all;

	for (unsigned i = 0; i < n; i++) {
		if (same_place(&conf->listeners[i].addr, &l->addr))
			return fmt_error(-EINVAL, why, len, "this address is given twice");
		/* conf_listener_auth() does not tell the two apart. */
		if (conf_same_listener(&conf->listeners[i].addr, &l->addr) &&
		    conf->listeners[i].auth != l->auth)
			return fmt_error(-EINVAL, why, len, "another listener with port 0 at this "
					 "address has another auth=: expected the same, or a port");
	}
	all = conf_grow_array(conf->listeners, n, sizeof(*l), why, len);
	if (!all)
		return -ENOMEM;
	conf->listeners = all;
	conf->listeners[conf->nlisteners++] = *l;
	return 0;
}

int conf_add_listener(void *arg, const char *text, char *why, size_t len)
{
	struct fab_addr all[FAB_ADDRS_MAX];
	enum auth_mode mode;
	char addr[512];
	size_t addrlen;
	int n, rc = listener_mode(text, &addrlen, &mode, why, len);

	if (rc)
		return rc;
	if (addrlen >= sizeof(addr))
		return fmt_error(-EINVAL, why, len, "expected an address of at most %zu bytes",
				 sizeof(addr) - 1);
	memcpy(addr, text, addrlen);
	addr[addrlen] = '\0';
	n = fab_names_find(addr, fab_provider_find("tcp"), RTRS_PORT, all, why, len);
	if (n < 0)
		return n == -EINVAL || n == -EPROTONOSUPPORT ? -EINVAL : -ENOENT;
	for (int i = 0; !rc && i < n; i++)
		rc = add_listen_address(arg, &(struct conf_listener){ .addr = all[i], .auth = mode,
							       .first = !i, .one_of = n > 1 },
				 why, len);
	return rc;
}

enum auth_mode conf_listener_auth(const struct srv_conf *conf, const struct fab_addr *addr)
{
	for (unsigned i = 0; i < conf->nlisteners; i++) {
		if (conf_same_listener(&conf->listeners[i].addr, addr))
			return conf->listeners[i].auth;
	}
	return AUTH_MODES;
}

bool conf_listeners_ask_otherwise(const struct srv_conf *a, const struct srv_conf *b)
{
	for (unsigned i = 0; i < b->nlisteners; i++) {
		for (unsigned k = 0; k < a->nlisteners; k++) {
			if (conf_same_listener(&a->listeners[k].addr, &b->listeners[i].addr) &&
			    a->listeners[k].auth != b->listeners[i].auth)
				return true;
		}
	}
	return false;
}

/* ---- options against each other ---- */

static const char *where_of(const struct conf_listener *l)
{
	return l->where ? l->where : "";
}

/* There is no TLS over RDMA.  Keys for TLS mean that nobody gets in without a proof: a listener
 * there has to ask for another one.  A --tls=require of the user has no such listener. */
static int check_without_tls(const struct srv_conf *conf, char *err, size_t len)
{
	char text[FAB_ADDR_STRLEN];

	if (fab_tls_conf_mode(&conf->tls) != FAB_TLS_REQUIRE)
		return 0;
	for (unsigned i = 0; i < conf->nlisteners; i++) {
		enum auth_mode mode = conf->listeners[i].auth;

		if (mode == AUTH_MODES)
			mode = auth_conf_mode(&conf->auth);
		if (fab_provider_has_tls(conf->listeners[i].addr.provider) ||
		    (mode == AUTH_MODE_REQUIRE && !conf->tls.asked))
			continue;
		snprintf(err, len, "%s--listen=%s and --tls%s: there is no TLS over RDMA: expected "
			 "%s--tls=on", where_of(&conf->listeners[i]),
			 fab_addr_url(&conf->listeners[i].addr, text, sizeof(text)),
			 conf->tls.asked ? "=require" : conf->tls.psk ? "-psk" : "-certificates",
			 conf->tls.asked ? "" : "--auth=require beside it, or ");
		return -EINVAL;
	}
	return 0;
}

/* A listener that asks clients who they are needs keys. */
static int check_listeners(const struct srv_conf *conf, char *err, size_t len)
{
	char text[FAB_ADDR_STRLEN];

	for (unsigned i = 0; !conf->auth.psk && i < conf->nlisteners; i++) {
		enum auth_mode mode = conf->listeners[i].auth;

		if (mode == AUTH_MODES || mode == AUTH_MODE_NONE)
			continue;
		snprintf(err, len, "%s--listen=%s,auth=%s: expected --auth-psk=FILE beside it",
			 where_of(&conf->listeners[i]),
			 fab_addr_url(&conf->listeners[i].addr, text, sizeof(text)),
			 auth_mode_names[mode]);
		return -EINVAL;
	}
	return check_without_tls(conf, err, len);
}

/* Check options against each other; each alone is in range. */
static int conf_check_together(const struct srv_conf *conf, char *err, size_t len)
{
	unsigned max = rtrs_geom_depth_max(conf->max_io_size, CONF_HDR_SIZE);

	if (conf->queue_depth <= max)
		return check_listeners(conf, err, len);
	snprintf(err, len, "--queue-depth %u and --max-io-size %u do not fit together: with that "
		 "size the depth is at most %u", conf->queue_depth, conf->max_io_size, max);
	return -EINVAL;
}

/* ---- reading ---- */

/* Loopback, whose addresses are those of one name. */
static int default_listeners(struct srv_conf *conf, char *err, size_t len)
{
	int rc = conf_add_listener(conf, "tcp://127.0.0.1", err, len);

	if (!rc)
		rc = conf_add_listener(conf, "tcp://[::1]", err, len);
	if (rc)
		return rc;
	conf->listeners[1].first = false;
	conf->listeners[0].one_of = conf->listeners[1].one_of = true;
	return 0;
}

/* The default of --control; NULL: this user has no directory for the socket.  CONF_RELOAD: the
 * control thread uses the text of before, which stays. */
static const char *default_control(enum conf_purpose purpose)
{
	static char path[4096 + 32];
	const char *dir = rundir_default();
	char name[32];

	if (!dir)
		return NULL;
	if (purpose == CONF_RELOAD)
		return path;
	rundir_socket_name(RUNDIR_SERVER, getpid(), name, sizeof(name));
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void set_defaults(struct srv_conf *conf, enum conf_purpose purpose)
{
	*conf = (struct srv_conf){
		.purpose = purpose,
		.threads = MIN(MAX(machine()->cpus / 2, 1u), (unsigned)CONF_THREADS_DEFAULT),
		.max_memory = MIN(machine()->memory / 2, (uint64_t)CONF_MAX_MEMORY),
		.ready_fd = -1,
		.state_dir.path = rundir_default(),
		.control.path = default_control(purpose),
		.tls.server = true,
		.tls.auth = true,	/* check_without_tls() */
		.auth.server = true,
	};
	opt_defaults(&conf_options, conf);
}

/* ---- files ---- */

/* Without --config, and with no export on the command line, the default file is read if there is
 * one. */
static void choose_config(struct srv_conf *conf, const struct srv_conf *line, int nexports)
{
	conf->config = line->config;
	if (!conf->config && !nexports && !access(CONF_FILE, F_OK))
		conf->config = CONF_FILE;
}

static enum opt_result read_files(struct srv_conf *conf, FILE *errors)
{
	int rc = conf_file_read_all(conf, errors);

	return !rc ? OPT_RUN : rc == -EINVAL ? OPT_USAGE : OPT_FAILED;
}

/* ---- the command line ---- */

/* The exports of @specs, the words behind the options, replace those of the files. */
static enum opt_result add_exports(struct srv_conf *conf, int n, char **specs, char *err,
				   size_t len)
{
	if (!n && !conf->config) {
		snprintf(err, len, "nothing to export: expected NAME=PATH, or --config=FILE, or "
			 "the file " CONF_FILE ": see rtrs-server --help");
		return OPT_USAGE;
	}
	for (int i = 0; i < n; i++) {
		int rc = conf_set_export(conf, specs[i], err, len);

		if (rc)
			return rc == -ENOMEM ? OPT_FAILED : OPT_USAGE;
	}
	return OPT_RUN;
}

/* The lists of the command line replace those of the files. */
static void drop_lists(struct srv_conf *conf, uint64_t given)
{
	if (opt_given(&conf_options, given, "listen"))
		conf->nlisteners = 0;
	if (opt_given(&conf_options, given, "allow"))
		conf->nallow = 0;
}

/* Read the words of @argv into @conf, which has the options of the files. */
static enum opt_result add_line(struct srv_conf *conf, int argc, char **argv, uint64_t given,
				char *err, size_t len)
{
	enum opt_result rc;
	int first = argc;

	drop_lists(conf, given);
	rc = opt_argv(&conf_options, conf, argc, argv, &first, NULL, err, len);
	if (rc == OPT_RUN && conf_check_together(conf, err, len))
		rc = OPT_USAGE;
	if (rc == OPT_RUN && !conf->nlisteners && default_listeners(conf, err, len))
		rc = OPT_FAILED;
	if (rc == OPT_RUN)
		rc = add_exports(conf, argc - first, argv + first, err, len);
	if (rc == OPT_RUN && !*conf->name)
		snprintf(conf->name, sizeof(conf->name), "%s",
			 conf->nexports ? conf->exports[0]->spec.name : "rtrs-server");
	return rc;
}

/* ---- the whole ---- */

enum opt_result conf_parse(struct srv_conf *conf, enum conf_purpose purpose, int argc, char **argv,
			   FILE *errors)
{
	struct srv_conf line;		/* names the file, before the file is read */
	enum opt_result rc;
	uint64_t given = 0;
	char err[1024] = "";
	int first = argc;

	set_defaults(&line, purpose);
	set_defaults(conf, purpose);
	rc = opt_argv(&conf_options, &line, argc, argv, &first, &given, err, sizeof(err));
	if (rc == OPT_RUN)
		choose_config(conf, &line, argc - first);
	if (rc == OPT_RUN && conf->config)
		rc = read_files(conf, errors);
	if (rc == OPT_RUN)
		rc = add_line(conf, argc, argv, given, err, sizeof(err));
	conf_fini(&line);
	if (*err)
		fprintf(errors, "%s\n", err);
	return rc;
}
