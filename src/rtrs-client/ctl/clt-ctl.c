/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the control socket of the lasting session.  Commands run on the service thread, between the
 * other work of this thread, and so may change all of the session.
 *
 * An address must be a number: a name would make heartbeats wait for the resolver. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"
#include "clt-ctl.h"
#include "clt-reload.h"
#include "clt-sess.h"
#include "ctl-json.h"
#include "ctl.h"
#include "dev.h"
#include "log.h"
#include "loop.h"
#include "opt.h"
#include "unix-sock.h"

struct clt_ctl {
	struct clt_conf *conf;		/* the caller's: of the session, as it is now */
	struct client *clt;
	struct clt_reload *reload;
	struct ctl *ctl;
	char err[512];
};

/* Listens, and is not served yet: a fork keeps the socket, while a thread would be lost. */
static struct unix_sock bound = { .fd = -1 };

/* ---- look ---- */

static void ctl_answer_with(struct ctl_client *client, const struct clt_ctl *ctl,
			    enum clt_ctl_depth depth)
{
	ctl_answer(client, clt_ctl_json(ctl->clt, ctl->conf, depth));
}

static void call_list(struct ctl_client *client, const char *value, void *arg)
{
	ctl_answer_with(client, arg, CLT_CTL_NAMES);
}

static void call_show(struct ctl_client *client, const char *value, void *arg)
{
	ctl_answer_with(client, arg, CLT_CTL_SHOW);
}

static void call_stats(struct ctl_client *client, const char *value, void *arg)
{
	ctl_answer_with(client, arg, CLT_CTL_STATS);
}

static void call_stats_reset(struct ctl_client *client, const char *value, void *arg)
{
	struct client *clt = ((struct clt_ctl *)arg)->clt;
	struct clt_path *path;
	struct dev *dev;

	dev_for_each(dev, clt)
		dev_stat_reset(dev);
	clt_sess_for_each(path, &clt->sess)
		clt_path_stat_reset(path);
	ctl_call_done(client);
}

/* ---- the session ---- */

/* Set the option @name of the front end, which may change at run time, to @value. */
static void ctl_change_option(struct ctl_client *client, const char *name, const char *value,
			      struct clt_ctl *ctl)
{
	const struct opt *row = opt_find(&clt_conf_options, name);
	char why[128];

	if (opt_read(row, ctl->conf, value, why, sizeof(why))) {
		ctl_refuse(client, "%s '%s': %s", name, value, why);
		return;
	}
	row->carry_out(ctl->conf, &ctl->clt->sess);
	ctl_call_done(client);
}

static void call_policy(struct ctl_client *client, const char *value, void *arg)
{
	struct clt_io *io = &((struct clt_ctl *)arg)->clt->sess.io;

	if (!value) {
		const char *policy = clt_pick_policies[atomic_load(&io->policy)];

		ctl_answer(client, json_pack("{s:o}", "policy", ctl_json_text(policy)));
		return;
	}
	ctl_change_option(client, "policy", value, arg);
}

static void call_attempts(struct ctl_client *client, const char *value, void *arg)
{
	struct clt_sess *sess = &((struct clt_ctl *)arg)->clt->sess;

	if (!value) {
		ctl_answer(client,
			   json_pack("{s:i}", "max_reconnect_attempts",
				     sess->max_reconnect_attempts));
		return;
	}
	ctl_change_option(client, "max-reconnect-attempts", value, arg);
}

static void call_reload(struct ctl_client *client, const char *value, void *arg)
{
	clt_reload_run(((struct clt_ctl *)arg)->reload, ctl_call_ended, client);
}

/* ---- paths ---- */

/* Count the paths with the name @name: two paths may differ only in the transport.  @ret: the last
 * of these paths. */
static unsigned paths_called(struct clt_sess *sess, const char *name, struct clt_path **ret)
{
	struct clt_path *path;
	unsigned n = 0;

	clt_sess_for_each(path, sess) {
		if (path->removed || strcmp(clt_path_name(path), name))
			continue;
		*ret = path;
		n++;
	}
	return n;
}

/* Find the path with the name @name, or between the addresses in @name.  NULL: @client has the
 * refusal. */
static struct clt_path *ctl_find_path(struct ctl_client *client, const char *name, void *arg)
{
	struct clt_sess *sess = &((struct clt_ctl *)arg)->clt->sess;
	struct clt_sess_addr addr;
	struct clt_path *path;
	char why[256];

	switch (paths_called(sess, name, &path)) {
	case 0:
		path = NULL;
		if (!clt_paths_parse(name, sess->paths[0]->conf.addr.dst.provider, &addr, why,
				     sizeof(why)))
			path = clt_paths_find(sess, &addr);
		if (!path)
			ctl_refuse(client, "there is no path '%s'", name);
		return path;
	case 1:
		return path;
	default:
		ctl_refuse(client, "there are several paths '%s': put tcp:// or rdma:// in front",
			   name);
		return NULL;
	}
}

static void call_path_disconnect(struct ctl_client *client, const char *value, void *arg)
{
	struct clt_path *path = ctl_find_path(client, value, arg);

	if (!path)
		return;
	if (clt_path_state(path) >= CLT_PATH_CLOSING) {
		ctl_refuse(client, "path '%s' is not connected", clt_path_name(path));
		return;
	}
	log_warn(path->name, "disconnected by rtrsctl");
	clt_path_close(path);
	ctl_call_done(client);
}

static void call_path_reconnect(struct ctl_client *client, const char *value, void *arg)
{
	struct clt_path *path = ctl_find_path(client, value, arg);

	if (!path)
		return;
	if (clt_attempt_is_up(&path->att)) {
		clt_path_fail(path, -ECONNRESET, "reconnected by rtrsctl");
	} else if (clt_path_state(path) == CLT_PATH_CLOSED) {
		clt_path_start(path);
	} else if (clt_path_state(path) == CLT_PATH_BACKOFF) {
		clt_path_retry(path);
	} else {
		ctl_refuse(client, "path '%s' is %s", clt_path_name(path),
			   clt_path_fsm.states[clt_path_state(path)]);
		return;
	}
	ctl_call_done(client);
}

/* What answers in the place of the server is its copy. */
static void call_server_accept(struct ctl_client *client, const char *value, void *arg)
{
	struct client *clt = ((struct clt_ctl *)arg)->clt;
	struct clt_path *path;

	if (client_accept(clt)) {
		ctl_refuse(client, "no other machine, and no other file, has answered in the place "
			   "of the server since a path was up: there is nothing to accept");
		return;
	}
	log_warn(clt->sess.name, "what answers in the place of the server is accepted, by rtrsctl: "
		 "writes that were acknowledged and that it does not have are lost");
	clt_sess_for_each(path, &clt->sess) {
		if (clt_path_state(path) == CLT_PATH_BACKOFF)
			clt_path_retry(path);
	}
	ctl_call_done(client);
}

static void call_path_remove(struct ctl_client *client, const char *value, void *arg)
{
	struct clt_sess *sess = &((struct clt_ctl *)arg)->clt->sess;
	struct clt_path *path = ctl_find_path(client, value, arg);

	if (!path)
		return;
	if (clt_paths_remove(sess, path)) {
		ctl_refuse(client, "cannot remove '%s', the last path", clt_path_name(path));
		return;
	}
	log_warn(path->name, "removed by rtrsctl");
	ctl_call_done(client);
}

static void call_path_add(struct ctl_client *client, const char *value, void *arg)
{
	struct clt_sess *sess = &((struct clt_ctl *)arg)->clt->sess;
	struct clt_sess_addr addr;
	struct clt_path *path;
	char why[256];
	int r;

	if (clt_paths_parse(value, sess->paths[0]->conf.addr.dst.provider, &addr, why,
			    sizeof(why))) {
		ctl_refuse(client, "path '%s': %s", value, why);
		return;
	}
	if (atomic_load(&sess->io.state) >= CLT_SESS_CLOSING) {
		ctl_refuse(client, "the session ends");
		return;
	}
	r = clt_paths_add(sess, &addr, &path);
	switch (r) {
	case 0:
		log_warn(path->name, "added by rtrsctl");
		clt_path_start(path);
		ctl_call_done(client);
		break;
	case -EEXIST:
		ctl_refuse(client, "there is a path '%s' already",
			   clt_path_name(clt_paths_find(sess, &addr)));
		break;
	case -EAGAIN:
		ctl_refuse(client, "a path that was removed has not ended yet: try again");
		break;
	case -ENOSPC:
		ctl_refuse(client, "a session has at most %d paths", CLT_PATHS_MAX);
		break;
	default:
		ctl_refuse(client, "path '%s': %s", value, strerror(-r));
	}
}

static void call_path_save(struct ctl_client *client, const char *value, void *arg)
{
	clt_save_paths(((struct clt_ctl *)arg)->reload, ctl_call_ended, client);
}

static const struct ctl_call calls[] = {
	{ .name = "list", .fn = call_list },
	{ .name = "show", .fn = call_show },
	{ .name = "stats", .fn = call_stats },
	{ .name = "stats reset", .fn = call_stats_reset },
	{ .name = "path add", .fn = call_path_add, .member = "path", .needed = true },
	{ .name = "path remove", .fn = call_path_remove, .member = "path", .needed = true },
	{ .name = "path disconnect", .fn = call_path_disconnect, .member = "path", .needed = true },
	{ .name = "path reconnect", .fn = call_path_reconnect, .member = "path", .needed = true },
	{ .name = "path save", .fn = call_path_save },
	{ .name = "server accept", .fn = call_server_accept },
	{ .name = "policy", .fn = call_policy, .member = "policy" },
	{ .name = "max-reconnect-attempts", .fn = call_attempts, .member = "attempts" },
	{ .name = "reload", .fn = call_reload },
};

static void ctl_serve(struct ctl_client *client, const json_t *command, void *arg)
{
	const struct clt_front *front = ((const struct clt_ctl *)arg)->conf->front;

	if (ctl_call_has(command, front->calls, front->ncalls))
		ctl_call(client, command, front->program, front->calls, front->ncalls,
			 front->calls_arg);
	else
		ctl_call(client, command, front->program, calls, ARRAY_SIZE(calls), arg);
}

/* ---- start and end ---- */

static void ctl_open_call(struct loop_call *call)
{
	struct clt_ctl *ctl = call->arg;

	call->rc = ctl_open_at(ctl->clt->sess.loop, &bound, ctl_serve, ctl, &ctl->ctl, ctl->err,
			       sizeof(ctl->err));
	loop_call_end(call);
}

static void ctl_close_call(struct loop_call *call)
{
	ctl_close(((struct clt_ctl *)call->arg)->ctl, loop_call_end, call);
}

static int bind_at(const char *path, char *err, size_t errlen)
{
	struct unix_sock sock;
	int rc = ctl_listen(&sock, path, err, errlen);

	if (!rc)
		bound = sock;
	return rc;
}

int clt_ctl_bind(const char *path, char *err, size_t errlen)
{
	return path && strcmp(path, "none") ? bind_at(path, err, errlen) : 0;
}

/* Remove the socket if the program ends between .get_ready and .after_fork, unless a forked process
 * goes on. */
static void __attribute__((destructor)) ctl_unbind(void)
{
	if (bound.fd >= 0)
		unix_sock_leave(&bound);
}

/* The default name has the number of the process. */
static int bind_default(const struct clt_front *front, char *err, size_t errlen)
{
	const char *dir = rundir_default();
	_cleanup_free_ char *path = NULL;
	char name[32];

	if (!dir) {
		snprintf(err, errlen,
			 "this user has no directory for it (XDG_RUNTIME_DIR is not set)");
		return -ENOENT;
	}
	mkdir(dir, 0755);			/* ctl_listen() reports a failure */
	rundir_sweep(dir);
	rundir_socket_name(front->name, getpid(), name, sizeof(name));
	if (asprintf(&path, "%s/%s", dir, name) < 0) {
		snprintf(err, errlen, "no memory");
		return -ENOMEM;
	}
	return bind_at(path, err, errlen);
}

static int ctl_create(struct clt_conf *conf, struct client *clt, struct clt_reload *reload,
		      struct clt_ctl **out, char *err, size_t errlen)
{
	struct clt_ctl *ctl = calloc(1, sizeof(*ctl));
	int rc;

	if (!ctl) {
		snprintf(err, errlen, "no memory");
		return -ENOMEM;
	}
	ctl->conf = conf;
	ctl->clt = clt;
	ctl->reload = reload;
	rc = loop_call(clt->sess.loop, ctl_open_call, ctl);
	if (rc) {
		snprintf(err, errlen, "%s", ctl->err);
		free(ctl);
		return rc;
	}
	log_info(NULL, "control socket: %s", bound.path);
	bound.fd = -1;
	*out = ctl;
	return 0;
}

int clt_ctl_open(struct clt_conf *conf, struct client *clt, struct clt_reload *reload,
		 struct clt_ctl **out, char *err, size_t errlen)
{
	const char *path = conf->control;
	int rc = 0;

	*out = NULL;
	if (path && !strcmp(path, "none"))
		return 0;
	if (!path && bound.fd < 0)
		rc = bind_default(conf->front, err, errlen);
	if (!rc)
		rc = ctl_create(conf, clt, reload, out, err, errlen);
	if (!rc || path)
		return rc;
	log_warn(NULL, "no control socket for rtrsctl: %s; choose another place with control=PATH, "
		 "or none with control=none", err);
	return 0;
}

void clt_ctl_close(struct clt_ctl *ctl)
{
	if (!ctl)
		return;
	loop_call(ctl->clt->sess.loop, ctl_close_call, ctl);
	free(ctl);
}
