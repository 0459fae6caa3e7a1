/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns a session's fence; control thread.  Ends with its last path, when no request is left in the
 * storage.  Only srv_sess_create() can fail. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "log.h"
#include "names.h"
#include "rtrs-msg.h"
#include "srv-auth.h"
#include "srv-path.h"
#include "srv-sess.h"
#include "srv-state.h"

struct srv_sess *srv_sess_create(struct srv *srv, const struct rtrs_conn_req *req,
				 const struct fab_conn *conn, const struct srv_who *who)
{
	struct srv_sess *sess = calloc(1, sizeof(*sess));

	if (!sess)
		return NULL;
	sess->srv = srv;
	fab_conn_addrs(conn, NULL, &sess->client);
	memcpy(sess->transport_identity, who->id.name, sizeof(who->id.name));
	memcpy(sess->key_id, who->key_id, sizeof(who->key_id));
	sess->refs = 1;
	memcpy(sess->uuid, req->paths_uuid, RTRS_UUID_LEN);
	sess->lineage = req->flags & RTRS_CONN_REQ_LINEAGE;
	list_init(&sess->paths);
	if (srv_fence_init(&sess->fence, srv->geom.queue_depth))
		goto err_free;
	if (srv->ops->sess_begins(sess))
		goto err_fence;
	list_add_tail(&srv->sessions, &sess->link);
	srv->nsessions++;
	return sess;

err_fence:
	srv_fence_fini(&sess->fence);
err_free:
	free(sess);
	return NULL;
}

void srv_sess_get(struct srv_sess *sess)
{
	sess->refs++;
}

void srv_sess_put(struct srv_sess *sess)
{
	assert(sess->refs);
	if (--sess->refs)
		return;
	assert(list_empty(&sess->paths) && !sess->nup);
	list_del(&sess->link);
	sess->srv->nsessions--;
	sess->srv->ops->sess_ends(sess);
	srv_fence_fini(&sess->fence);
	free(sess);
}

struct srv_sess *srv_sess_find(const struct srv *srv, const uint8_t uuid[RTRS_UUID_LEN])
{
	struct srv_sess *sess;

	list_for_each(sess, &srv->sessions, link) {
		if (!memcmp(sess->uuid, uuid, RTRS_UUID_LEN))
			return sess;
	}
	return NULL;
}

/* ---- lineages ---- */

/* Less than 0: @sess came before the session @uuid of @identity in the lineage of both; greater:
 * behind it; 0: it is this session, or has nothing to do with it. */
static int lineage_order(const struct srv_sess *sess, const uint8_t uuid[RTRS_UUID_LEN],
			 const char *identity)
{
	if (!sess->lineage || !rtrs_lineage_same(sess->uuid, uuid) ||
	    strcmp(sess->transport_identity, identity))
		return 0;
	return rtrs_lineage_compare(sess->uuid, uuid);
}

const struct srv_sess *srv_sess_later(const struct srv *srv, const uint8_t uuid[RTRS_UUID_LEN],
				      const char *identity)
{
	const struct srv_sess *sess;

	list_for_each(sess, &srv->sessions, link) {
		if (lineage_order(sess, uuid, identity) > 0)
			return sess;
	}
	return NULL;
}

struct srv_path *srv_sess_earlier_path(const struct srv *srv, const uint8_t uuid[RTRS_UUID_LEN],
				       const char *identity)
{
	struct srv_path *path, *draining = NULL;
	const struct srv_sess *sess;

	list_for_each(sess, &srv->sessions, link) {
		if (lineage_order(sess, uuid, identity) >= 0)
			continue;
		list_for_each(path, &sess->paths, link) {
			if (path->state < SRV_PATH_DRAINING)
				return path;
			draining = srv_path_linked(path) ? path : draining;
		}
	}
	return draining;
}

bool srv_sess_is_earlier(const struct srv_sess *other, const struct srv_sess *sess)
{
	return sess->lineage &&
	       lineage_order(other, sess->uuid, sess->transport_identity) < 0;
}

struct srv_path *srv_sess_find_path(const struct srv_sess *sess, const uint8_t uuid[RTRS_UUID_LEN])
{
	struct srv_path *path;

	list_for_each(path, &sess->paths, link) {
		if (srv_path_linked(path) && !memcmp(path->uuid, uuid, RTRS_UUID_LEN))
			return path;
	}
	return NULL;
}

static struct srv_path *sess_named_path(const struct srv_sess *sess)
{
	struct srv_path *path, *dying = NULL;

	list_for_each(path, &sess->paths, link) {
		if (path->info.state != SRV_INFO_NAMED || !srv_path_linked(path))
			continue;
		if (path->state != SRV_PATH_DRAINING)
			return path;
		dying = path;
	}
	return dying;
}

struct srv_path *srv_sess_name_holder(const struct srv_path *path, const char *name)
{
	struct srv_sess *other;
	struct srv_path *holder;

	list_for_each(other, &path->srv->sessions, link) {
		if (other == path->sess || strcmp(other->name, name) ||
		    strcmp(other->identity, path->identity))
			continue;
		holder = sess_named_path(other);
		if (holder)
			return holder;
	}
	return NULL;
}

void srv_sess_path_up(struct srv_sess *sess, const char *path_name)
{
	if (sess->nup++)
		return;
	sess->up_since_ms = clock_now_ms();
	srv_log_access(sess->srv, &sess->client,
		       LOG_FIELDS(SESSION_OPENED, .session = sess->name, .peer = path_name,
				  .identity = sess->identity),
		       sess->name, "session opened by %s%s%s", path_name,
		       *sess->identity ? ", " : "", sess->identity);
}

bool srv_sess_path_down(struct srv_sess *sess)
{
	assert(sess->nup);
	if (--sess->nup)
		return false;
	sess->down_since_ms = clock_now_ms();
	srv_log_access(sess->srv, &sess->client,
		       LOG_FIELDS(SESSION_CLOSED, .session = sess->name,
				  .identity = sess->identity),
		       sess->name, "session closed%s%s", *sess->identity ? ": " : "",
		       sess->identity);
	return true;
}

uint64_t srv_sess_up_ms(const struct srv_sess *sess)
{
	return sess->nup ? clock_now_ms() - sess->up_since_ms : 0;
}

const char *srv_sess_state(const struct srv_sess *sess, uint64_t *down_ms)
{
	const struct srv_path *path;

	*down_ms = 0;
	list_for_each(path, &sess->paths, link) {
		if (path->state == SRV_PATH_CONNECTED)
			return "up";
	}
	if (!sess->nup && !sess->down_since_ms)
		return "connecting";
	*down_ms = sess->nup ? 0 : clock_now_ms() - sess->down_since_ms;
	return "down";
}

bool srv_sess_dying(const struct srv_sess *sess)
{
	const struct srv_path *path;
	bool draining = false;

	list_for_each(path, &sess->paths, link) {
		if (path->state == SRV_PATH_CONNECTED)
			return false;
		draining |= path->state == SRV_PATH_DRAINING;
	}
	return draining;
}

/* ---- what people call sessions and paths ---- */

const char *srv_sess_person(const char *identity)
{
	return *identity ? identity : "a client without a name";
}

/* True if @text is @name, with @identity and a '/' in front. */
static bool is_full(const char *text, const char *identity, const char *name)
{
	size_t len = strlen(identity);

	return !strncmp(text, identity, len) && text[len] == '/' && !strcmp(text + len + 1, name);
}

bool srv_sess_is_called(const struct srv_sess *sess, const char *text)
{
	return !strcmp(sess->name, text) || is_full(text, sess->identity, sess->name);
}

bool srv_sess_path_is_called(const struct srv_path *path, const char *text)
{
	const char *sep = *path->sess->name ? strchr(path->name, '/') : NULL;

	return !strcmp(path->name, text) || (sep && !strcmp(sep + 1, text)) ||
	       is_full(text, path->sess->identity, path->name);
}

bool srv_sess_two_called(const struct srv *srv, const char *text, char *buf, size_t len)
{
	const struct srv_sess *sess, *first = NULL;

	list_for_each(sess, &srv->sessions, link) {
		if (!srv_sess_is_called(sess, text))
			continue;
		if (!first)
			first = sess;
		if (!strcmp(first->identity, sess->identity))
			continue;
		snprintf(buf, len, "'%s/%s' or '%s/%s'", first->identity, first->name,
			 sess->identity, sess->name);
		return true;
	}
	return false;
}

const char *srv_sess_tell_name(const struct srv_sess *sess, char *buf, size_t len)
{
	bool two = srv_sess_two_called(sess->srv, sess->name, buf, len);

	snprintf(buf, len, "%s%s%s", two ? sess->identity : "", two ? "/" : "", sess->name);
	return buf;
}

/* The client's port is left out: the port is another after each reconnect. */
void srv_sess_name_path(struct srv_path *path)
{
	char client[FAB_ADDR_STRLEN], server[FAB_ADDR_STRLEN];
	const char *sess = path->sess->name;

	snprintf(path->name, sizeof(path->name), "%s%s%s@%s", sess, *sess ? "/" : "",
		 fab_addr_format_host(&path->client, client, sizeof(client)),
		 fab_addr_format(&path->server, server, sizeof(server)));
	/* All texts for people are masked, so that the name is the same in each. */
	mask_control(path->name);
}
