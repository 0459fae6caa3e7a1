/* SPDX-License-Identifier: BSD-3-Clause */
/* From the request for a connection to a path that has it; control thread.
 *
 * The happy path: srv_accept_request() decodes the CONN_REQ; srv_pass_who() finds out who the
 * client is, before any session or path is looked up; accept_decide() finds session and path by
 * their uuids, or makes them within the limits; srv_setup_con() accepts.  A client that asks for a
 * proof goes to srv_auth_takes(), and comes again with a tag.
 *
 * Possible failures: a CONN_REQ that breaks a rule, another identity, a limit: the connection is
 * refused, and the reason is logged, rate limited, because anybody can cause refusals.  A request
 * that collides with a path on its way down, or whose client is back while its path is stale, is
 * parked: the stale path fails at once, srv_accept_retry() tries again when a path has drained, and
 * SRV_PARK_TIMEOUT ends the wait (doc/decisions.md D14). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "log.h"
#include "rtrs-msg.h"
#include "srv-auth.h"
#include "srv-con.h"
#include "srv-listen.h"
#include "srv-path.h"
#include "srv-sess.h"
#include "srv-state.h"
#include "util.h"

struct srv_parked {
	struct list link;
	struct fab_conn *conn;
	struct rtrs_conn_req req;
	struct srv_who who;
	uint64_t deadline_ms;
};

struct decision {
	enum { ACCEPT, PARK, REFUSE } what;
	enum rtrs_refusal refusal;	/* REFUSE, for a client that reads it */
	int status;			/* REFUSE */
	const char *why;
	struct srv_path *path;		/* ACCEPT */
};

static struct log_limit refuse_limit = LOG_LIMIT_INIT(20, 10000);

/* What a client that does not read reasons gets, and the reason in metrics and log. */
static const struct {
	int status;
	enum srv_refusal reason;
} refusals[RTRS_NREFUSALS] = {
	[RTRS_REFUSES_UNPROVEN] = { -EACCES, SRV_REFUSED_AUTH },
	[RTRS_REFUSES_TWO_NAMES] = { -EACCES, SRV_REFUSED_AUTH },
	[RTRS_REFUSES_IDENTITY] = { -EACCES, SRV_REFUSED_IDENTITY },
	[RTRS_REFUSES_OTHER_KEY] = { -EACCES, SRV_REFUSED_IDENTITY },
	[RTRS_REFUSES_MIXED] = { -EACCES, SRV_REFUSED_IDENTITY },
	[RTRS_REFUSES_KEY] = { -EKEYREVOKED, SRV_REFUSED_KEY },
	[RTRS_REFUSES_CERTIFICATE] = { -EKEYREVOKED, SRV_REFUSED_KEY },
	[RTRS_REFUSES_SESSIONS] = { -ENOMEM, SRV_REFUSED_LIMIT },
	[RTRS_REFUSES_PATHS] = { -ENOMEM, SRV_REFUSED_LIMIT },
	[RTRS_REFUSES_MEMORY] = { -ENOMEM, SRV_REFUSED_LIMIT },
	[RTRS_REFUSES_CONNECTIONS] = { -ENOMEM, SRV_REFUSED_LIMIT },
	[RTRS_REFUSES_SETUPS] = { -ENOMEM, SRV_REFUSED_LIMIT },
	[RTRS_REFUSES_OWN_PATHS] = { -ECONNRESET, SRV_REFUSED_CONNECT },
	[RTRS_REFUSES_STOPPING] = { -ECONNRESET, SRV_REFUSED_CONNECT },
	[RTRS_REFUSES_CLOSING] = { -ECONNRESET, SRV_REFUSED_CONNECT },
	[RTRS_REFUSES_SUCCEEDED] = { -ESTALE, SRV_REFUSED_IDENTITY },
};

static struct decision decision_refuse(enum rtrs_refusal refusal, const char *why)
{
	return (struct decision){ .what = REFUSE, .refusal = refusal, .why = why,
				  .status = refusals[refusal].status };
}

/* Of a mistake of a client, or of this machine, that has no reason of its own. */
static struct decision decision_refuse_for(int status, const char *why)
{
	return (struct decision){ .what = REFUSE, .status = status, .why = why };
}

static enum srv_refusal reason_of(const struct decision *d)
{
	if (d->refusal)
		return refusals[d->refusal].reason;
	return d->status == -ENOMEM ? SRV_REFUSED_LIMIT : SRV_REFUSED_CONNECT;
}

/* @req, @who: NULL: the request is broken. */
static void accept_refuse(struct srv *srv, struct fab_conn *conn, const struct rtrs_conn_req *req,
			  const struct srv_who *who, const struct decision *d)
{
	bool hears = req && req->flags & RTRS_CONN_REQ_HEARS;
	enum srv_refusal reason = reason_of(d);
	char text[FAB_ADDR_STRLEN], line[1024];
	struct fab_addr local, peer;
	const char *error = strerror(-d->status);
	struct fab_identity id;

	srv->refused[reason]++;
	fab_conn_addrs(conn, &local, &peer);
	if (who)
		id = who->id;
	else
		fab_conn_identity(conn, &id);
	if (who && *who->key)
		srv_pass_attempt_over(srv, who->conn_key);
	fab_addr_format(&peer, text, sizeof(text));
	if (strstr(d->why, error))
		snprintf(line, sizeof(line), "connection refused: %s", d->why);
	else
		snprintf(line, sizeof(line), "connection refused: %s (%s)", d->why, error);
	srv_log_again(&srv->log, &peer, &refuse_limit, LOG_LEVEL_WARN,
		      LOG_FIELDS(CLIENT_REFUSED, .peer = text, .identity = id.name,
				 .reason = srv_refusal_names[reason]), text, line);
	srv_log_refusal(srv, &peer, id.name, NULL, d->why);
	srv_con_refuse(conn, d->status, hears ? d->refusal : RTRS_REFUSES_NOT);
}

static struct decision decision_park(const char *why)
{
	return (struct decision){ .what = PARK, .why = why };
}

/* ---- rules 6 to 13 ---- */

struct host_use {
	unsigned paths, half_open, cons;
	uint64_t memory;
};

/* The paths, connections and memory of the host of @conn. */
static struct host_use use_of_host(const struct srv *srv, struct fab_conn *conn)
{
	struct host_use use = { 0 };
	struct fab_addr local, peer;
	struct srv_sess *sess;
	struct srv_path *path;

	fab_conn_addrs(conn, &local, &peer);
	list_for_each(sess, &srv->sessions, link) {
		list_for_each(path, &sess->paths, link) {
			if (!fab_addr_same_net(&path->client, &peer))
				continue;
			use.paths++;
			use.half_open += path->state == SRV_PATH_CONNECTING;
			use.cons += path->cid_num;
			use.memory += path->memory;
		}
	}
	return use;
}

/* ACCEPT, or the limit that refuses a new path. */
static struct decision check_limits(const struct srv *srv, const struct srv_sess *sess,
				    const struct rtrs_conn_req *req, struct fab_conn *conn)
{
	uint64_t all = srv_setup_memory(srv, req->cid_num, conn);
	uint64_t max = srv->conf->max_memory;
	struct host_use host = use_of_host(srv, conn);

	/* A host's first path is let in at any size. */
	if (host.paths && host.memory + all > max / CONF_HOST_MEMORY_SHARE)
		return decision_refuse(RTRS_REFUSES_MEMORY,
				       "this host has reached its memory limit, see "
				       "--queue-depth and --max-memory");
	if (host.cons + req->cid_num > conf_host_cons(srv->conf))
		return decision_refuse(RTRS_REFUSES_CONNECTIONS,
				       "too many connections from this host, see "
				       "--max-connections");
	if (host.half_open >= SRV_MAX_HOST_HALF_OPEN)
		return decision_refuse(RTRS_REFUSES_SETUPS,
				       "too many paths in set-up from this host");
	if (!sess && srv->nsessions >= srv->conf->max_sessions)
		return decision_refuse(RTRS_REFUSES_SESSIONS,
				       "too many sessions, see --max-sessions");
	if (srv->npaths >= srv->conf->max_paths)
		return decision_refuse(RTRS_REFUSES_PATHS, "too many paths, see --max-paths");
	if (srv->nhalf_open >= SRV_MAX_HALF_OPEN)
		return decision_refuse(RTRS_REFUSES_SETUPS, "too many paths in set-up");
	if (srv->ncons + req->cid_num > srv->conf->max_cons)
		return decision_refuse(RTRS_REFUSES_CONNECTIONS,
				       "too many connections, see --max-connections");
	if (srv->npaths && srv->memory + all > max)
		return decision_refuse(RTRS_REFUSES_MEMORY,
				       "paths and connections have reached --max-memory, see "
				       "--queue-depth, too");
	return (struct decision){ .what = ACCEPT };
}

static struct decision accept_decide_known_path(struct srv_path *path,
						const struct rtrs_conn_req *req)
{
	if (path->state == SRV_PATH_CONNECTED)
		srv_path_fail(path, "its client has reconnected");
	/* Connections of one attempt share recon_cnt (1.4); another number is another attempt. */
	else if (path->state == SRV_PATH_CONNECTING && path->recon_cnt != req->recon_cnt)
		srv_path_fail(path, "its client has restarted");
	if (path->state != SRV_PATH_CONNECTING)
		return decision_park("its former path is still closing");
	if (path->cid_num != req->cid_num)
		return decision_refuse_for(-ECONNRESET, "cid_num differs from the path's");
	if (path->cons[req->cid])
		return decision_refuse_for(-ECONNRESET, "connection number is taken");
	if (path->srv->ncons >= path->srv->conf->max_cons)
		return decision_refuse(RTRS_REFUSES_CONNECTIONS,
				       "too many connections, see --max-connections");
	return (struct decision){ .what = ACCEPT, .path = path };
}

static struct decision check_session_paths(const struct srv_sess *sess, struct fab_conn *conn)
{
	struct fab_addr local, peer;
	struct srv_path *path;
	unsigned n = 0;

	fab_conn_addrs(conn, &local, &peer);
	list_for_each(path, &sess->paths, link)
		n += srv_path_linked(path);
	if (n >= RTRS_MAX_PATHS)
		return decision_refuse(RTRS_REFUSES_OWN_PATHS, "session has too many paths");
	list_for_each(path, &sess->paths, link) {
		if (!srv_path_linked(path) || !fab_addr_same_host(&path->client, &peer) ||
		    !fab_addr_same_host(&path->server, &local))
			continue;
		if (path->state == SRV_PATH_DRAINING)
			return decision_park("a path between these addresses is still closing");
		return decision_refuse_for(-EEXIST, "session has a path between these addresses");
	}
	return (struct decision){ .what = ACCEPT };
}

static struct decision accept_create_path(struct srv *srv, struct srv_sess *sess,
					  const struct rtrs_conn_req *req,
					  const struct srv_who *who, struct fab_conn *conn)
{
	static char error[SRV_CAUSE_LEN];	/* for the refusal that follows */
	struct decision d;
	bool is_new = !sess;
	int rc = srv_setup_fit_client(srv, conn, error, sizeof(error));

	if (rc)
		return decision_refuse_for(rc, error);
	d = check_limits(srv, sess, req, conn);
	if (d.what != ACCEPT)
		return d;
	if (is_new)
		sess = srv_sess_create(srv, req, conn, who);
	if (!sess)
		return decision_refuse_for(-ENOMEM, "no memory for a session");
	rc = srv_setup_path(sess, req, who, conn, &d.path, error, sizeof(error));
	if (is_new)
		srv_sess_put(sess);	/* the path holds the session now, or the session goes */
	return rc ? decision_refuse_for(rc, error) : d;
}

/* True if @who may be the client of @sess, NULL: of a new session, and of @path, NULL: of a new
 * path.  False: *@d refuses the peer. */
static bool identity_fits(const struct srv *srv, const struct srv_sess *sess,
			  const struct srv_path *path, const struct srv_who *who,
			  const struct fab_conn *conn, struct decision *d)
{
	static char why[2 * FAB_IDENTITY_LEN + 64];	/* for the refusal that follows */
	const struct fab_identity *id = &who->id;
	bool holds = srv_keys_hold(srv, id->key) && srv_keys_hold(srv, who->tls_key);
	enum rtrs_refusal refusal;

	if (!fab_conn_trusted(conn)) {
		refusal = RTRS_REFUSES_CERTIFICATE;
		snprintf(why, sizeof(why), "the certificate of %s is no longer accepted",
			 srv_sess_person(id->name));
	} else if (!holds) {
		refusal = RTRS_REFUSES_KEY;
		snprintf(why, sizeof(why), "the key of %s was removed", id->name);
	} else if (sess && strcmp(id->name, sess->transport_identity)) {
		refusal = RTRS_REFUSES_IDENTITY;
		snprintf(why, sizeof(why), "its session belongs to %s, but the client is %s",
			 srv_sess_person(sess->transport_identity), srv_sess_person(id->name));
	} else if (sess && memcmp(who->key_id, sess->key_id, sizeof(sess->key_id))) {
		refusal = RTRS_REFUSES_OTHER_KEY;
		snprintf(why, sizeof(why), "its session was made with another key of %s",
			 srv_sess_person(id->name));
	} else if (path && path->state == SRV_PATH_CONNECTING &&
		   (id->key != path->key || who->tls_key != path->transport.key)) {
		refusal = RTRS_REFUSES_OTHER_KEY;
		snprintf(why, sizeof(why), "its path has another key of %s", id->name);
	} else if (path && path->state == SRV_PATH_CONNECTING &&
		   !*id->cipher != !*path->transport.cipher) {
		refusal = RTRS_REFUSES_MIXED;
		snprintf(why, sizeof(why), "this connection has TLS and the first one of its path "
			 "has none, or vice versa");
	} else {
		return true;
	}
	*d = decision_refuse(refusal, why);
	return false;
}

/* The sessions before that of @req in its lineage end: the process of each has ended, whether its
 * paths have or not.  PARK until none of their paths is read any more. */
static struct decision accept_decide_lineage(const struct srv *srv,
					     const struct rtrs_conn_req *req,
					     const char *identity)
{
	static char why[RTRS_NAME_MAX + 64];	/* for the refusal that follows */
	const struct srv_sess *later = srv_sess_later(srv, req->paths_uuid, identity);
	struct srv_path *path;

	if (later) {
		snprintf(why, sizeof(why), "a later process of this client has the session %s",
			 later->name);
		return decision_refuse(RTRS_REFUSES_SUCCEEDED, why);
	}
	while ((path = srv_sess_earlier_path(srv, req->paths_uuid, identity))) {
		if (path->state == SRV_PATH_DRAINING)
			return decision_park("the session of its former process is still closing");
		srv_path_fail(path, "its client goes on in another process");
	}
	return (struct decision){ .what = ACCEPT };
}

static struct decision accept_decide(struct srv *srv, const struct rtrs_conn_req *req,
				     const struct srv_who *who, struct fab_conn *conn)
{
	struct srv_sess *sess = srv_sess_find(srv, req->paths_uuid);
	struct srv_path *path = sess ? srv_sess_find_path(sess, req->sess_uuid) : NULL;
	struct decision d;

	if (srv->life != SRV_RUNNING)
		return decision_refuse(RTRS_REFUSES_STOPPING, "server is shutting down");
	if (!sess && !(req->flags & RTRS_CONN_REQ_FIRST_CONN))
		return decision_refuse_for(-ENXIO, "unknown session");
	/* First of all: another client that knows the uuids ends no path of the session, either. */
	if (!identity_fits(srv, sess, path, who, conn, &d))
		return d;
	if (path)
		return accept_decide_known_path(path, req);
	if (req->flags & RTRS_CONN_REQ_LINEAGE) {
		d = accept_decide_lineage(srv, req, who->id.name);
		if (d.what != ACCEPT)
			return d;
		/* With the end of a path a parked request may have come in. */
		sess = srv_sess_find(srv, req->paths_uuid);
	}
	if (sess) {
		d = check_session_paths(sess, conn);
		if (d.what != ACCEPT)
			return d;
	}
	return accept_create_path(srv, sess, req, who, conn);
}

/* Carry out @d, an ACCEPT or REFUSE. */
static void accept_carry_out(struct srv *srv, const struct decision *d, struct fab_conn *conn,
			     const struct rtrs_conn_req *req, const struct srv_who *who)
{
	if (d->what == REFUSE)
		accept_refuse(srv, conn, req, who, d);
	else
		srv_setup_con(d->path, req, conn);
}

/* ---- parking ---- */

static void park_rearm(struct srv *srv)
{
	struct srv_parked *first;

	loop_timer_cancel(&srv->park_timer);
	if (list_empty(&srv->parked))
		return;
	first = list_entry(srv->parked.next, struct srv_parked, link);	/* the oldest */
	loop_timer_set(srv_loop(srv), &srv->park_timer, first->deadline_ms);
}

/* Free @p, which is off the list. */
static void accept_unpark(struct srv *srv, struct srv_parked *p)
{
	srv->nparked--;
	explicit_bzero(&p->who, sizeof(p->who));
	free(p);
}

static void accept_park(struct srv *srv, struct fab_conn *conn, const struct rtrs_conn_req *req,
			const struct srv_who *who, const char *why)
{
	struct srv_parked *p = srv->nparked < SRV_MAX_PARKED ? malloc(sizeof(*p)) : NULL;
	struct decision d;

	if (!p) {
		d = decision_refuse(RTRS_REFUSES_CLOSING, why);
		accept_refuse(srv, conn, req, who, &d);
		return;
	}
	*p = (struct srv_parked){
		.conn = conn,
		.req = *req,
		.who = *who,
		.deadline_ms = clock_now_ms() + SRV_PARK_TIMEOUT,
	};
	list_add_tail(&srv->parked, &p->link);
	srv->nparked++;
	park_rearm(srv);
}

static void park_timeout(struct loop_timer *timer)
{
	struct srv *srv = container_of(timer, struct srv, park_timer);
	uint64_t now = clock_now_ms();
	struct srv_parked *p, *tmp;
	struct decision d;

	list_for_each_safe(p, tmp, &srv->parked, link) {
		if (p->deadline_ms > now)
			break;
		list_del(&p->link);
		d = decision_refuse(RTRS_REFUSES_CLOSING,
				    "its former path has not closed in time");
		accept_refuse(srv, p->conn, &p->req, &p->who, &d);
		accept_unpark(srv, p);
	}
	park_rearm(srv);
}

void srv_accept_retry(struct srv *srv)
{
	struct srv_parked *p;
	struct list again;

	/* The list is emptied first, because an accept may lead back here. */
	list_take(&again, &srv->parked);
	while ((p = list_pop_entry(&again, struct srv_parked, link))) {
		struct decision d = accept_decide(srv, &p->req, &p->who, p->conn);

		if (d.what == PARK) {
			list_add_tail(&srv->parked, &p->link);
			continue;
		}
		accept_carry_out(srv, &d, p->conn, &p->req, &p->who);
		accept_unpark(srv, p);
	}
	park_rearm(srv);
}

bool srv_accept_forget(struct srv *srv, struct fab_conn *conn)
{
	struct srv_parked *p;

	list_for_each(p, &srv->parked, link) {
		if (p->conn != conn)
			continue;
		list_del(&p->link);
		fab_conn_destroy(conn);
		if (*p->who.key)
			srv_pass_attempt_over(srv, p->who.conn_key);
		accept_unpark(srv, p);
		park_rearm(srv);
		return true;
	}
	return false;
}

void srv_accept_refuse_parked(struct srv *srv)
{
	const struct decision d = decision_refuse(RTRS_REFUSES_STOPPING,
						  "server is shutting down");
	struct srv_parked *p, *tmp;

	list_for_each_safe(p, tmp, &srv->parked, link) {
		list_del(&p->link);
		accept_refuse(srv, p->conn, &p->req, &p->who, &d);
		accept_unpark(srv, p);
	}
	park_rearm(srv);
}

void srv_accept_init(struct srv *srv)
{
	list_init(&srv->parked);
	loop_timer_init(&srv->park_timer, park_timeout);
}

void srv_accept_request(struct srv *srv, struct fab_conn *conn, enum auth_mode mode,
			const uint8_t *data, size_t len)
{
	const struct rtrs_msg_conn_req *msg = (const void *)data;
	struct rtrs_conn_req req;
	enum rtrs_refusal refusal;
	struct srv_who who;
	struct decision d;
	const char *why;
	int rc = rtrs_conn_req_decode(data, len, &req, &why);

	if (rc) {
		d = decision_refuse_for(rc, why);
		accept_refuse(srv, conn, NULL, NULL, &d);
		return;
	}
	if (srv_auth_takes(srv, conn, mode, &req, msg))
		return;
	/* ORDER: before any session or path is looked up. */
	refusal = srv_pass_who(srv, conn, mode, &req, msg, &who, &why);
	if (refusal) {
		d = decision_refuse(refusal, why);
		accept_refuse(srv, conn, &req, &who, &d);
		return;
	}
	d = accept_decide(srv, &req, &who, conn);
	if (d.what == PARK)
		accept_park(srv, conn, &req, &who, d.why);
	else
		accept_carry_out(srv, &d, conn, &req, &who);
	explicit_bzero(&who, sizeof(who));
}
