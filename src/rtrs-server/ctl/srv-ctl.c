/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing: looks up the object that a command names, on the control thread, and carries the
 * command out or says why not. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "change.h"
#include "ctl-json.h"
#include "ctl.h"
#include "export.h"
#include "exports.h"
#include "log.h"
#include "srv-ctl.h"
#include "srv-export.h"
#include "srv-limit.h"
#include "srv-open.h"
#include "srv-path.h"
#include "srv-rnbd-state.h"
#include "srv-sess.h"
#include "srv-state.h"
#include "srv-storage.h"
#include "store.h"
#include "unix-sock.h"
#include "util.h"

#define NAMES_LEN (2 * (FAB_IDENTITY_LEN + RTRS_NAME_MAX) + 16)	/* two sessions, in words */

static struct srv *srv_of(void *arg)
{
	return ((const struct change *)arg)->srv;
}

/* ---- look ---- */

static void srv_call_list(struct ctl_client *client, const char *name, void *arg)
{
	ctl_answer(client, srv_ctl_json(srv_of(arg), SRV_CTL_NAMES));
}

/* An answer that waits for a look at the paths of exports. */
struct answer {
	struct ctl_client *client;
	const struct srv *srv;
	enum srv_ctl_depth depth;
};

static void looked(void *arg, int rc, const char *text)
{
	struct answer *wait = arg;

	ctl_answer(wait->client, srv_ctl_json(wait->srv, wait->depth));
	free(wait);
}

static void look_and_answer(struct ctl_client *client, struct srv *srv, enum srv_ctl_depth depth)
{
	struct answer *wait = malloc(sizeof(*wait));

	if (!wait) {
		ctl_refuse(client, "out of memory");
		return;
	}
	*wait = (struct answer){ .client = client, .srv = srv, .depth = depth };
	srv_storage_look(srv, looked, wait);
}

static void srv_call_show(struct ctl_client *client, const char *name, void *arg)
{
	look_and_answer(client, srv_of(arg), SRV_CTL_SHOW);
}

static void srv_call_stats(struct ctl_client *client, const char *name, void *arg)
{
	look_and_answer(client, srv_of(arg), SRV_CTL_STATS);
}

static void srv_call_stats_reset(struct ctl_client *client, const char *name, void *arg)
{
	struct srv *srv = srv_of(arg);
	struct srv_sess *sess;
	struct srv_path *path;
	struct export *ex;
	int rc = 0;

	srv_export_each(ex, srv) {
		srv_export_stat_reset(srv_rnbd(srv), ex);
		srv_limit_stat_reset(ex);
	}
	list_for_each(sess, &srv->sessions, link) {
		list_for_each(path, &sess->paths, link)
			rc = rc ? rc : srv_stat_reset_path(path);
	}
	if (rc)
		ctl_refuse(client, "out of memory: some counters were not reset");
	else
		ctl_call_done(client);
}

static void srv_call_explain(struct ctl_client *client, const char *name, const char *whom,
			     void *arg)
{
	struct explain_who who;
	char err[1024];

	if (!whom)
		ctl_refuse(client, "explain: needs \"client\"");
	else if (srv_explain_who_find(srv_of(arg), whom, &who, err, sizeof(err)))
		ctl_refuse(client, "%s", err);
	else
		ctl_answer(client, srv_explain(srv_of(arg), name, &who));
}

/* ---- sessions and paths ---- */

/* Fail @path, if @path is in service or in set-up.  The client may come back.  True if @path has
 * failed by this call. */
static bool srv_disconnect_path(struct srv_path *path)
{
	if (path->state >= SRV_PATH_DRAINING)
		return false;
	srv_path_fail(path, "disconnected by rtrsctl");
	return true;
}

static unsigned srv_disconnect_sess(struct srv_sess *sess)
{
	struct srv_path *path, *next;
	unsigned n = 0;

	/* A path without connections goes at once, and the last path takes its session along. */
	srv_sess_get(sess);
	list_for_each_safe(path, next, &sess->paths, link)
		n += srv_disconnect_path(path);
	srv_sess_put(sess);
	return n;
}

static void srv_call_sess_disconnect(struct ctl_client *client, const char *name, void *arg)
{
	struct srv *srv = srv_of(arg);
	struct srv_sess *sess, *next;
	unsigned n = 0;
	char two[NAMES_LEN];

	if (srv_sess_two_called(srv, name, two, sizeof(two))) {
		ctl_refuse(client, "several clients have a session '%s': expected %s", name, two);
		return;
	}
	/* Several sessions can have the name: sessions that are going, too. */
	list_for_each_safe(sess, next, &srv->sessions, link) {
		if (srv_sess_is_called(sess, name))
			n += srv_disconnect_sess(sess);
	}
	if (n)
		ctl_call_done(client);
	else
		ctl_refuse(client, "session '%s' is not connected", name);
}

/* Count the paths called @name; @ret has the first and the last of these paths. */
static unsigned srv_paths_called(const struct srv *srv, const char *name, struct srv_path *ret[2])
{
	struct srv_sess *sess;
	struct srv_path *path;
	unsigned n = 0;

	list_for_each(sess, &srv->sessions, link) {
		list_for_each(path, &sess->paths, link) {
			if (!srv_path_linked(path) || !srv_sess_path_is_called(path, name))
				continue;
			ret[!!n] = path;
			n++;
		}
	}
	return n;
}

static void srv_call_path_disconnect(struct ctl_client *client, const char *name, void *arg)
{
	struct srv_path *path[2] = { NULL };
	unsigned n = srv_paths_called(srv_of(arg), name, path);

	if (n > 1)
		ctl_refuse(client, "%u sessions have a path '%s': expected '%s/%s' or '%s/%s'", n,
			   name, path[0]->sess->identity, path[0]->name, path[1]->sess->identity,
			   path[1]->name);
	else if (n && srv_disconnect_path(path[0]))
		ctl_call_done(client);
	else
		ctl_refuse(client, "path '%s' is not connected", name);
}

/* @whom: NULL, or the client that is to lose the export. */
static void srv_call_export_kick(struct ctl_client *client, const char *name, const char *whom,
				 void *arg)
{
	struct srv *srv = srv_of(arg);
	const struct export *ex = exports_find(srv_rnbd(srv)->exports, name);
	char openers[256] = "", two[NAMES_LEN];

	if (whom && srv_sess_two_called(srv, whom, two, sizeof(two))) {
		ctl_refuse(client, "several clients have a session '%s': expected %s", whom, two);
		return;
	}
	/* A session may have an export open that is not listed any more. */
	if (srv_close_kick(srv, name, whom)) {
		ctl_call_done(client);
		return;
	}
	srv_close_openers_of(srv, name, openers, sizeof(openers));
	if (!ex && !*openers)
		ctl_refuse(client, "there is no export '%s'", name);
	else if (!*openers)
		ctl_refuse(client, "no session has export '%s' open", name);
	else
		ctl_refuse(client, "no client '%s' has export '%s' open: expected the name, the "
			   "identity or the address of one of %s", whom, name, openers);
}

/* ---- what changes the program ---- */

static void srv_call_change(struct ctl_client *client, int change, const char *text, bool force,
			    void *arg)
{
	change_run(arg, change, text, force, ctl_call_ended, client);
}

static void srv_call_export_snapshot(struct ctl_client *client, const char *name,
				     const char *snapshot, void *arg)
{
	char text[RNBD_NAME_MAX + 2 * SNAPSHOT_NAME_MAX];

	/* A name that is cut is too long for any export, and for a snapshot. */
	snprintf(text, sizeof(text), "%.*s\n%s", RNBD_NAME_MAX, name, snapshot ? snapshot : "");
	change_run(arg, CHANGE_EXPORT_SNAPSHOT, text, false, ctl_call_ended, client);
}

/* ---- the log ---- */

static void srv_call_log_level(struct ctl_client *client, const char *name, void *arg)
{
	const struct opt *row = opt_find(&conf_options, "log-level");
	struct srv_conf wanted;
	char why[128];

	if (!name) {
		ctl_answer(client,
			   json_pack("{s:o}", "log_level",
				     ctl_json_text(log_level_names[log_level()])));
		return;
	}
	if (opt_read(row, &wanted, name, why, sizeof(why))) {
		ctl_refuse(client, "log-level '%s': %s", name, why);
		return;
	}
	row->carry_out(&wanted, NULL);
	ctl_call_done(client);
}

/* ---- dispatch ---- */

static const struct ctl_call calls[] = {
	{ .name = "list", .fn = srv_call_list },
	{ .name = "show", .fn = srv_call_show },
	{ .name = "stats", .fn = srv_call_stats },
	{ .name = "stats reset", .fn = srv_call_stats_reset },
	{ .name = "explain", .fn_two = srv_call_explain, .member = "export", .needed = true,
	  .second = "client" },
	{ .name = "session disconnect", .fn = srv_call_sess_disconnect, .member = "session",
	  .needed = true },
	{ .name = "path disconnect", .fn = srv_call_path_disconnect, .member = "path",
	  .needed = true },
	{ .name = "export add", .fn_change = srv_call_change, .change = CHANGE_EXPORT_ADD,
	  .member = "export", .needed = true },
	{ .name = "export remove", .fn_change = srv_call_change, .change = CHANGE_EXPORT_REMOVE,
	  .takes_force = true, .member = "export", .needed = true },
	{ .name = "export kick", .fn_two = srv_call_export_kick, .member = "export",
	  .needed = true, .second = "client" },
	{ .name = "export resize", .fn_change = srv_call_change, .change = CHANGE_EXPORT_RESIZE,
	  .takes_force = true, .member = "export", .needed = true },
	{ .name = "export break", .fn_change = srv_call_change, .change = CHANGE_EXPORT_BREAK,
	  .takes_force = true, .member = "export", .needed = true },
	{ .name = "export snapshot", .fn_two = srv_call_export_snapshot, .member = "export",
	  .needed = true, .second = "snapshot" },
	{ .name = "export set", .fn_change = srv_call_change, .change = CHANGE_EXPORT_SET,
	  .takes_force = true, .member = "export", .needed = true },
	{ .name = "reload", .fn_change = srv_call_change, .change = CHANGE_RELOAD,
	  .takes_force = true },
	{ .name = "save", .fn_change = srv_call_change, .change = CHANGE_SAVE },
	{ .name = "log-level", .fn = srv_call_log_level, .member = "level" },
};

static void srv_ctl_serve(struct ctl_client *client, const json_t *command, void *arg)
{
	ctl_call(client, command, "rtrs-server", calls, ARRAY_SIZE(calls), arg);
}

int srv_ctl_open(struct change *change, struct ctl **out, char *err, size_t errlen)
{
	const struct srv_conf *conf = change->conf;
	int rc;

	*out = NULL;
	if (!conf->control.path && !conf->control.asked)
		log_warn(NULL, "no control socket for rtrsctl: this user has no directory for it "
			 "(XDG_RUNTIME_DIR is not set); --control=PATH makes one");
	if (!conf->control.path)
		return 0;
	if (!conf->control.asked) {
		mkdir(rundir_default(), 0755);		/* a failure shows in ctl_open() */
		rundir_sweep(rundir_default());
	}
	rc = ctl_open(srv_loop(change->srv), conf->control.path, srv_ctl_serve, change, out, err,
		      errlen);
	if (!rc) {
		log_info(NULL, "control socket: %s", conf->control.path);
	} else if (!conf->control.asked) {
		log_warn(NULL,
			 "no control socket for rtrsctl: %s; "
			 "choose another place with --control=PATH, or none with "
			 "--control=none", err);
		rc = 0;
	}
	return rc;
}
