/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the end of handles, and the CLOSEs that wait for this end; control thread.  A handle is
 * freed when the last reference has gone; then the OPENs that wait for a closing handle are tried
 * again.  A CLOSE ends in srv_req_finish_control(), once; errors are answers. */
#include <errno.h>
#include <string.h>

#include "export.h"
#include "log.h"
#include "srv-allow.h"
#include "srv-limit.h"
#include "srv-open.h"
#include "srv-rnbd-state.h"
#include "srv-sess.h"
#include "store-lead.h"
#include "util.h"

static void handle_closed(struct srv_dev *dev)
{
	struct srv *srv = dev->sess->srv;
	char name[SRV_SESS_NAME_LEN];
	struct list *l;

	srv_log_access(
		srv, &dev->sess->client,
		LOG_FIELDS(DEVICE_CLOSED, .session = dev->sess->name, .export = dev->ex->name,
			   .identity = dev->sess->identity),
		srv_sess_tell_name(dev->sess, name, sizeof(name)), "device %u closed: %s",
		srv_dev_number(dev), dev->ex->name);
	export_release(dev->ex, dev->mode);
	store_lead_closed(dev->ex->store);
	while ((l = list_pop(&dev->closers)))
		srv_req_finish_control(list_entry(l, struct srv_req, link), 0);
	srv_dev_free(dev);
	srv_open_retry(srv);
}

void srv_close_quiet(struct loop_msg *msg)
{
	handle_closed(container_of(msg, struct srv_dev, quiet_msg));
}

void srv_close_request(struct srv_req *req)
{
	struct srv_dev *dev;
	uint32_t id;

	/* A CLOSE has no data to answer with: the client would get the old content of the chunk. */
	if (rnbd_close_decode(req->rtrs.usr, req->rtrs.usr_len, &id) || req->rtrs.has_desc) {
		srv_req_finish_control(req, -EINVAL);
		return;
	}
	dev = srv_dev_by_id(&srv_rnbd_sess(req->path->sess)->devs, id);
	if (!dev) {
		srv_req_finish_control(req, 0);
		return;
	}
	list_add_tail(&dev->closers, &req->link);
	if (srv_dev_begin_close(dev, SRV_DEV_CLOSED))
		handle_closed(dev);
}

void srv_close_sess_lost(struct srv_sess *sess)
{
	srv_dev_for_each(dev, &srv_rnbd_sess(sess)->devs) {
		/* The session that comes back may open the export again: see srv_dev_revive(). */
		if (dev->state == SRV_DEV_KICKED)
			srv_limit_kick_over(dev->ex, &dev->limit);
		if ((dev->state == SRV_DEV_OPEN || dev->state == SRV_DEV_KICKED) &&
		    srv_dev_begin_close(dev, SRV_DEV_LOST))
			handle_closed(dev);
	}
}

/* Close the handles of @sess that @match(@arg); @why is for the log. */
static unsigned kick_from_sess(struct srv_sess *sess,
			       bool (*match)(const struct srv_dev *dev, const void *arg),
			       const void *arg, const char *why)
{
	char name[SRV_SESS_NAME_LEN];
	unsigned n = 0;

	srv_dev_for_each(dev, &srv_rnbd_sess(sess)->devs) {
		if (dev->state != SRV_DEV_OPEN || !match(dev, arg))
			continue;
		log_event(LOG_LEVEL_WARN,
			  LOG_FIELDS(DEVICE_KICKED, .session = sess->name, .export = dev->ex->name,
				     .identity = sess->identity),
			  srv_sess_tell_name(sess, name, sizeof(name)),
			  "device %u of %s is taken away: %s", srv_dev_number(dev), dev->ex->name,
			  why);
		n++;
		if (srv_dev_begin_close(dev, SRV_DEV_KICKED))
			handle_closed(dev);
		else
			srv_limit_kick(dev->ex, &dev->limit);
	}
	return n;
}

struct kick {
	const char *name, *client;	/* @client NULL: everybody */
};

/* True if @sess is called @client: by a name of it, its identity, or the address of a path. */
static bool sess_is_of(const struct srv_sess *sess, const char *client)
{
	const struct srv_path *path;
	char text[FAB_ADDR_STRLEN];

	if (srv_sess_is_called(sess, client) ||
	    (*sess->identity && !strcmp(sess->identity, client)))
		return true;
	list_for_each(path, &sess->paths, link) {
		if (!strcmp(fab_addr_format_host(&path->client, text, sizeof(text)), client))
			return true;
	}
	return false;
}

static bool dev_is_meant(const struct srv_dev *dev, const void *arg)
{
	const struct kick *kick = arg;

	return !strcmp(dev->ex->name, kick->name) &&
	       (!kick->client || sess_is_of(dev->sess, kick->client));
}

/* True if @mine is @ex, or a removed export of the same name and store. */
static bool is_of(const struct export *mine, const struct export *ex)
{
	return mine == ex || (mine->user == ex->user && mine->life.rung != EXPORT_SHOWN);
}

static bool dev_has_export(const struct srv_dev *dev, const void *ex)
{
	return is_of(dev->ex, ex);
}

unsigned srv_close_kick(struct srv *srv, const char *name, const char *client)
{
	const struct kick kick = { name, client };
	struct srv_sess *sess;
	unsigned n = 0;

	list_for_each(sess, &srv->sessions, link)
		n += kick_from_sess(sess, dev_is_meant, &kick, "kicked by rtrsctl");
	return n;
}

static bool dev_is_refused(const struct srv_dev *dev, const void *ex)
{
	return is_of(dev->ex, ex) && srv_allow_over(dev);
}

void srv_close_kick_refused(struct srv *srv, const struct export *ex)
{
	struct srv_sess *sess;

	list_for_each(sess, &srv->sessions, link)
		kick_from_sess(sess, dev_is_refused, ex, "its rules no longer allow the client to "
			       "have it open like that");
}

void srv_close_kick_export(void *arg, const struct export *ex)
{
	struct srv *srv = arg;
	struct srv_sess *sess;

	list_for_each(sess, &srv->sessions, link)
		kick_from_sess(sess, dev_has_export, ex, "it is not exported any more");
}

/* True if @sess has a handle open that @match(@arg). */
static bool sess_has_open(const struct srv_sess *sess,
			  bool (*match)(const struct srv_dev *dev, const void *arg),
			  const void *arg)
{
	srv_dev_for_each(dev, &srv_rnbd_sess(sess)->devs) {
		if (dev->state == SRV_DEV_OPEN && match(dev, arg))
			return true;
	}
	return false;
}

static bool sess_has_store(const struct srv_sess *sess, const struct store *store)
{
	srv_dev_for_each(dev, &srv_rnbd_sess(sess)->devs) {
		if (dev->ex->store == store)
			return true;
	}
	return false;
}

void srv_close_fenced(void *arg, const struct store *store)
{
	struct srv *srv = arg;
	const char *name = store_oldest_name(store)->name;
	struct srv_path *path, *next;
	struct srv_sess *sess, *tmp;

	list_for_each_safe(sess, tmp, &srv->sessions, link) {
		if (!sess_has_store(sess, store))
			continue;
		srv_sess_get(sess);
		list_for_each_safe(path, next, &sess->paths, link)
			srv_path_fail(path, "%s: another server has taken the store over", name);
		srv_sess_put(sess);
	}
}

static void put_openers(const struct srv *srv,
			bool (*match)(const struct srv_dev *dev, const void *arg), const void *arg,
			char *buf, size_t len)
{
	char name[SRV_SESS_NAME_LEN];
	const struct srv_sess *sess;

	*buf = '\0';
	list_for_each(sess, &srv->sessions, link) {
		size_t at = strlen(buf);

		if (sess_has_open(sess, match, arg))
			snprintf(buf + at, len - at, "%s%s", at ? ", " : "",
				 srv_sess_tell_name(sess, name, sizeof(name)));
	}
}

void srv_close_openers(const struct srv *srv, const struct export *ex, char *buf, size_t len)
{
	put_openers(srv, dev_has_export, ex, buf, len);
}

void srv_close_openers_of(const struct srv *srv, const char *name, char *buf, size_t len)
{
	const struct kick kick = { name, NULL };

	put_openers(srv, dev_is_meant, &kick, buf, len);
}

unsigned srv_close_nopeners(const struct srv *srv, const struct export *ex)
{
	const struct srv_sess *sess;
	unsigned n = 0;

	list_for_each(sess, &srv->sessions, link)
		n += sess_has_open(sess, dev_has_export, ex);
	return n;
}
