/* SPDX-License-Identifier: BSD-3-Clause */
/* A session: the paths that share a paths_uuid, and the fence of these paths.
 *
 * A session lives as long as any of the paths, lingering paths included: a client that comes back
 * while the storage still works for the former path finds the same fence.  Control thread;
 * requests on other threads use the fence. */
#ifndef SRV_SESS_H
#define SRV_SESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fabric.h"
#include "list.h"
#include "rtrs-proto.h"
#include "srv-fence.h"

struct rtrs_conn_req;
struct srv;
struct srv_path;
struct srv_sess;
struct srv_who;

struct srv_sess {
	struct srv *srv;
	struct srv_fence fence;		/* any thread */
	void *user;			/* srv_ops.sess_begins()'s; constant */
	/* control thread */
	struct list link;		/* in srv->sessions */
	struct list paths;		/* struct srv_path, in order of creation */
	unsigned refs;			/* paths, and callers of srv_sess_get() */
	unsigned nup;			/* paths from CONNECTED until drained */
	uint64_t up_since_ms;		/* when the first of the paths that are up came up; 0:
					 * never */
	uint64_t down_since_ms;		/* when the last path up was drained; 0: never */
	uint64_t oldest_ns;		/* srv-ctl.h: the age of the oldest request, at the last
					 * look */
	uint8_t uuid[RTRS_UUID_LEN];	/* paths_uuid of the wire */
	bool lineage;			/* @uuid is of one (rtrs-msg.h); constant */
	struct fab_addr client;		/* of the first path */
	/* The name that the client of the first connection has proven, by messages or by its
	 * transport; each later connection is by the same.  Constant. */
	char transport_identity[FAB_IDENTITY_LEN];
	/* The key of the proof by messages (auth_chap_key_id()), which each later connection has;
	 * else zero: by TLS any key of the name lets a path join.  Constant. */
	uint8_t key_id[16];
	/* The owner of the session, from its first INFO_REQ on; "": anonymous.  Each path that
	 * joins has the same srv_path.identity. */
	char identity[FAB_IDENTITY_LEN];
	char name[RTRS_NAME_MAX];	/* "" until the first INFO_REQ */
};

/* Create the session of @req with no path and one reference for the caller, for the peer of @conn,
 * who is @who.  NULL: no memory. */
struct srv_sess *srv_sess_create(struct srv *srv, const struct rtrs_conn_req *req,
				 const struct fab_conn *conn, const struct srv_who *who);
/* Take a reference. */
void srv_sess_get(struct srv_sess *sess);
/* Put a reference; the last frees @sess. */
void srv_sess_put(struct srv_sess *sess);

/* The session of @srv with @uuid, or NULL. */
struct srv_sess *srv_sess_find(const struct srv *srv, const uint8_t uuid[RTRS_UUID_LEN]);
/* ---- lineages (doc/decisions.md D27) ----
 * Sessions of a lineage are of one identity: a client that names the lineage of another identity
 * has one of its own. */

/* A session that comes behind the session @uuid of @identity in its lineage; NULL: none. */
const struct srv_sess *srv_sess_later(const struct srv *srv, const uint8_t uuid[RTRS_UUID_LEN],
				      const char *identity);
/* A linked path of a session that came before that one, if possible one that is not DRAINING; NULL:
 * none. */
struct srv_path *srv_sess_earlier_path(const struct srv *srv, const uint8_t uuid[RTRS_UUID_LEN],
				       const char *identity);
/* True if @other came before @sess in the lineage of both. */
bool srv_sess_is_earlier(const struct srv_sess *other, const struct srv_sess *sess);

/* The path of @sess that holds @uuid, or NULL. */
struct srv_path *srv_sess_find_path(const struct srv_sess *sess, const uint8_t uuid[RTRS_UUID_LEN]);
/* A path that holds @name for the identity of @path, and is of another session, preferably a path
 * in service.  NULL: @name is free. */
struct srv_path *srv_sess_name_holder(const struct srv_path *path, const char *name);

/* Count a path that is up.  The first path up begins the RNBD session. */
void srv_sess_path_up(struct srv_sess *sess, const char *path_name);
/* Count a path that has drained.  True for the last path up, which ends the RNBD session
 * (doc/protocol.md 8.7): the caller closes the session's devices. */
bool srv_sess_path_down(struct srv_sess *sess);
/* For how long @sess has had a path that is up without a break, in ms.  0: none is up. */
uint64_t srv_sess_up_ms(const struct srv_sess *sess);
/* The state of @sess in words: "connecting" if no path has been up yet; "up"; "down", and
 * *@down_ms for how long, else 0. */
const char *srv_sess_state(const struct srv_sess *sess, uint64_t *down_ms);
/* True if no path is in service, but a path is draining: the handles of @sess are about to be
 * closed. */
bool srv_sess_dying(const struct srv_sess *sess);

/* ---- what people call sessions and paths ---- */

/* The name of a session is its client's choice, and unique among the sessions of one identity
 * alone: two clients may have a session of one name each, and neither keeps the other one out.
 * IDENTITY/NAME is one client's; "/NAME" that of a client without an identity. */

/* @identity for people: the same, or words for "". */
const char *srv_sess_person(const char *identity);
/* True if @text names @sess: NAME, or IDENTITY/NAME. */
bool srv_sess_is_called(const struct srv_sess *sess, const char *text);
/* True if @text names @path: the name of @path, with or without the name of its session in front,
 * or IDENTITY/ in front of the whole. */
bool srv_sess_path_is_called(const struct srv_path *path, const char *text);
/* Room for the name of a session as srv_sess_tell_name() writes it, in a buffer. */
#define SRV_SESS_NAME_LEN (FAB_IDENTITY_LEN + RTRS_NAME_MAX)

/* Write the name of @sess to @buf: IDENTITY/NAME if a session of another identity is called NAME,
 * too. */
const char *srv_sess_tell_name(const struct srv_sess *sess, char *buf, size_t len);
/* True if sessions of two identities are called @text.  @buf gets what to say instead:
 * "'psk:gw1/vm' or 'psk:gw2/vm'". */
bool srv_sess_two_called(const struct srv *srv, const char *text, char *buf, size_t len);
/* Make path->name again from the name of the session. */
void srv_sess_name_path(struct srv_path *path);

#endif
