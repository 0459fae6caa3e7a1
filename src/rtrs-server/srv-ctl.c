/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing: looks up what a command names, on the control thread, and does it or says why not.  A
 * command with a member that it does not know is refused, because it may have meant less than all. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "ctl.h"
#include "export.h"
#include "exports.h"
#include "log.h"
#include "rundir.h"
#include "srv-ctl-json.h"
#include "srv-ctl.h"
#include "srv-open.h"
#include "srv-path.h"
#include "srv-priv.h"
#include "srv-sess.h"
#include "srv-stat.h"
#include "util.h"

struct ctl_call {
	struct srv *srv;
	struct ctl_client *client;
	const json_t *command;
};

/* The member @name, or NULL: it is not there, or it is no string. */
static const char *member(const struct ctl_call *call, const char *name)
{
	return json_string_value(json_object_get(call->command, name));
}

static void done(const struct ctl_call *call)
{
	ctl_answer(call->client, json_object());
}

/* ---- look ---- */

static void call_list(const struct ctl_call *call)
{
	ctl_answer(call->client, srv_ctl_json(call->srv, SRV_CTL_NAMES));
}

static void call_show(const struct ctl_call *call)
{
	ctl_answer(call->client, srv_ctl_json(call->srv, SRV_CTL_SHOW));
}

static void call_stats(const struct ctl_call *call)
{
	ctl_answer(call->client, srv_ctl_json(call->srv, SRV_CTL_STATS));
}

static void call_stats_reset(const struct ctl_call *call)
{
	struct srv *srv = call->srv;
	struct srv_sess *sess;
	struct srv_path *path;
	struct export *ex;
	int rc = 0;

	list_for_each(ex, &srv->exports->list, link)
		rc = rc ? rc : srv_stat_reset_export(srv, ex);
	list_for_each(sess, &srv->sessions, link) {
		list_for_each(path, &sess->paths, link)
			rc = rc ? rc : srv_stat_reset_path(path);
	}
	if (rc)
		ctl_refuse(call->client, "out of memory: not all were reset");
	else
		done(call);
}

/* ---- sessions and paths ---- */

/* Fail @path, if it is in service or in set-up.  Its client may come back. */
static bool disconnect(struct srv_path *path)
{
	if (path->state >= SRV_PATH_DRAINING)
		return false;
	srv_path_fail(path, "disconnected by rtrsctl");
	return true;
}

static unsigned sess_disconnect(struct srv_sess *sess)
{
	struct srv_path *path, *next;
	unsigned n = 0;

	/* A path without connections goes at once, and with the last one its session. */
	srv_sess_get(sess);
	list_for_each_safe(path, next, &sess->paths, link)
		n += disconnect(path);
	srv_sess_put(sess);
	return n;
}

static void call_sess_disconnect(const struct ctl_call *call)
{
	const char *name = member(call, "session");
	struct srv_sess *sess, *next;
	unsigned n = 0;

	/* The name may be that of a session that is going, too. */
	list_for_each_safe(sess, next, &call->srv->sessions, link) {
		if (!strcmp(sess->name, name))
			n += sess_disconnect(sess);
	}
	if (n)
		done(call);
	else
		ctl_refuse(call->client, "session '%s' is not connected", name);
}

static struct srv_path *find_path(const struct srv *srv, const char *name)
{
	struct srv_sess *sess;
	struct srv_path *path;

	list_for_each(sess, &srv->sessions, link) {
		list_for_each(path, &sess->paths, link) {
			if (srv_path_linked(path) && !strcmp(path->name, name))
				return path;
		}
	}
	return NULL;
}

static void call_path_disconnect(const struct ctl_call *call)
{
	const char *name = member(call, "path");
	struct srv_path *path = find_path(call->srv, name);

	if (path && disconnect(path))
		done(call);
	else
		ctl_refuse(call->client, "path '%s' is not connected", name);
}

static void call_export_kick(const struct ctl_call *call)
{
	const char *name = member(call, "export");
	const struct export *ex = exports_find(call->srv->exports, name);

	if (!ex)
		ctl_refuse(call->client, "there is no export '%s'", name);
	else if (!srv_open_kick(call->srv, ex))
		ctl_refuse(call->client, "nobody has export '%s' open", name);
	else
		done(call);
}

/* ---- the program ---- */

static void call_log_level(const struct ctl_call *call)
{
	const char *name = member(call, "level");
	enum log_level level;

	if (!name) {
		ctl_answer(call->client, json_pack("{s:s}", "log_level", log_level_name(log_level())));
		return;
	}
	if (log_level_parse(name, &level)) {
		ctl_refuse(call->client, "log level '%s': expected error, warning, info or debug", name);
		return;
	}
	log_info(NULL, "log level is %s from now on", name);
	log_set_level(level);
	done(call);
}

/* ---- dispatch ---- */

static const struct call {
	const char *name;
	void (*fn)(const struct ctl_call *call);
	const char *arg;		/* the member that it takes; NULL: none */
	bool needs_arg;
} calls[] = {
	{ .name = "list", .fn = call_list },
	{ .name = "show", .fn = call_show },
	{ .name = "stats", .fn = call_stats },
	{ .name = "stats reset", .fn = call_stats_reset },
	{ .name = "session disconnect", .fn = call_sess_disconnect, .arg = "session", .needs_arg = true },
	{ .name = "path disconnect", .fn = call_path_disconnect, .arg = "path", .needs_arg = true },
	{ .name = "export kick", .fn = call_export_kick, .arg = "export", .needs_arg = true },
	{ .name = "log-level", .fn = call_log_level, .arg = "level" },
};

static bool check(const struct ctl_call *call, const struct call *c)
{
	const char *name;
	json_t *value;

	if (c->needs_arg && !member(call, c->arg)) {
		ctl_refuse(call->client, "%s: needs a string \"%s\"", c->name, c->arg);
		return false;
	}
	json_object_foreach((json_t *)call->command, name, value) {
		if (!strcmp(name, "command") || (c->arg && !strcmp(name, c->arg) && json_is_string(value)))
			continue;
		ctl_refuse(call->client, "%s: takes no \"%s\"", c->name, name);
		return false;
	}
	return true;
}

static void serve(struct ctl_client *client, const json_t *command, void *arg)
{
	const struct ctl_call call = { .srv = arg, .client = client, .command = command };
	const char *name = member(&call, "command");

	for (unsigned i = 0; name && i < ARRAY_SIZE(calls); i++) {
		if (strcmp(name, calls[i].name))
			continue;
		if (check(&call, &calls[i]))
			calls[i].fn(&call);
		return;
	}
	ctl_refuse(client, "rtrs-server has no command '%s'", name ? name : "");
}

int srv_ctl_open(struct srv *srv, struct ctl **out, char *err, size_t errlen)
{
	const struct srv_conf *conf = srv->conf;
	int rc;

	*out = NULL;
	if (!conf->control)
		return 0;
	if (!conf->control_asked)
		mkdir(rundir_default(), 0755);		/* ctl_open() says what is wrong */
	rc = ctl_open(srv_loop(srv), conf->control, serve, srv, out, err, errlen);
	if (!rc) {
		log_info(NULL, "control socket: %s", conf->control);
	} else if (!conf->control_asked) {
		log_info(NULL, "no control socket: %s", err);
		rc = 0;
	}
	return rc;
}
