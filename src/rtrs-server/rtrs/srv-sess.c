/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns a session's fence; control thread.  Ends with its last path, when no request is left in the
 * storage.  Only srv_sess_create() can fail. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "log.h"
#include "srv-pass.h"
#include "srv-path.h"
#include "srv-state.h"
#include "srv-sess.h"

struct srv_sess *srv_sess_create(struct srv *srv, const uint8_t uuid[RTRS_UUID_LEN],
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
	memcpy(sess->uuid, uuid, RTRS_UUID_LEN);
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
