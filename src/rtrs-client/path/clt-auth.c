/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the proof, and the keys of an attempt: the one that is proven, and the one of the attempt's
 * connections.  Ends with clt_auth_release(), the end of the attempt. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "auth-creds.h"
#include "clt-path-priv.h"
#include "log.h"

static struct log_limit unproven_limit = LOG_LIMIT_INIT(1, 60000);

/* ---- CONN_REQ and CONN_RSP ---- */

/* True if the first connection of the attempt, which is not @con, has TLS. */
static bool first_has_tls(const struct clt_con *con)
{
	static const uint8_t plain[FAB_BINDING_LEN];
	const struct clt_path *path = clt_path_of(con);
	const struct fab_conn *first = path->att.cons[0].fab;
	uint8_t binding[FAB_BINDING_LEN];

	/* Of the connection of the proof, which is gone. */
	if (path->auth.proven)
		return memcmp(path->auth.chap.where.channel.binding, plain, sizeof(plain));
	return first && fab_conn_binding(first, binding);
}

const char *clt_auth_seal(struct fab_conn *conn, void *data, size_t len)
{
	struct clt_con *con = fab_conn_context(conn);
	struct clt_auth *auth = &clt_path_of(con)->auth;
	uint8_t binding[FAB_BINDING_LEN];
	struct rtrs_msg_conn_req *msg = data;
	struct auth_channel channel;
	bool tls = fab_conn_binding(conn, binding);

	if ((con->cid || auth->proven) && tls != first_has_tls(con))
		return tls ? "it has TLS, and the first connection of its path has none" :
			     "it has no TLS, and the first connection of its path has: TLS may "
			     "have been removed between the ends";
	if (auth->proven) {
		auth_conn_channel(&channel, conn);
		auth_conn_req_seal(msg, &channel, auth->chap.conn_key);
	}
	auth->req = *msg;
	return NULL;
}

static bool demands(const struct clt_path *path)
{
	return auth_mode(path->conf.auth) == AUTH_MODE_REQUIRE;
}

/* The server of @con has not asked for the proof.  0: go on without. */
static int not_asked(const struct clt_con *con, char *why, size_t len)
{
	static const char older[] = "; an older server has only version 1, which is not accepted "
				    "over TCP: it does not bind each connection to its TLS: "
				    "upgrade the server";
	const struct clt_path *path = clt_path_of(con);
	bool second = auth_conn_version(con->fab) != AUTH_VERSION_RDMA;

	if (demands(path)) {
		snprintf(why, len, "the server does not authenticate, which auth=require needs%s",
			 second ? older : "");
		return -EACCES;
	}
	if (auth_mode(path->conf.auth) != AUTH_MODE_NONE && !con->cid)
		log_limited(&unproven_limit, LOG_LEVEL_WARN, path->name,
			    "the server does not authenticate: continuing without (auth=require "
			    "refuses this)%s", second ? older : "");
	return 0;
}

int clt_auth_judge(const struct clt_con *con, const struct rtrs_conn_rsp *rsp,
		   const struct rtrs_msg_conn_rsp *msg, char *why, size_t len)
{
	struct clt_path *path = clt_path_of(con);
	struct clt_auth *auth = &path->auth;
	struct auth_channel channel;

	if (auth->proven) {
		auth_conn_channel(&channel, con->fab);
		if (auth_conn_rsp_ok(msg, &channel, auth->req.auth_data, auth->chap.conn_key))
			return 0;
		snprintf(why, len, "not accepted by the server that has proven itself");
		return -EACCES;
	}
	if (rsp->auth != RTRS_AUTHS_ASKS || auth_mode(path->conf.auth) == AUTH_MODE_NONE)
		return not_asked(con, why, len);
	if (con->cid) {
		snprintf(why, len, "the server asks for a proof, not on connection 0");
		return -EPROTO;
	}
	/* A version that was not asked for fails the handshake: the transcript has it. */
	auth->rsp = *msg;
	return 1;
}

/* ---- messages ---- */

static void auth_fail(struct clt_path *path, int err, const char *what)
{
	static const char one_answer[] =
		" (the answer is the same for an unknown name and for a wrong key: \"rtrsctl "
		"explain\" at the server says which)";
	char why[CLT_WHY];

	snprintf(why, sizeof(why), "authentication as %.64s: %s%s",
		 auth_key_name(path->auth.key), what, err == -EKEYREJECTED ? one_answer : "");
	path->auth.done(path, err, why);
}

/* Take a message, and answer. */
static void auth_take(struct clt_path *path, size_t len)
{
	struct clt_auth *auth = &path->auth;
	const struct auth_creds *creds = path->conf.auth;
	struct auth_reply reply;
	char why[CLT_WHY];
	int r = auth_chap_take(&auth->chap, path->talk.in, len, &reply);

	if (r < 0) {
		auth_fail(path, r, auth->chap.why);
		return;
	}
	if (auth->chap.state == AUTH_PROVEN && !auth_creds_want(creds, auth->chap.peer)) {
		snprintf(why, sizeof(why), "authentication: the server has proven to be %.80s, "
			 "expected auth-hostname=%.80s", auth->chap.peer, creds->hostname);
		auth->done(path, -EACCES, why);
		return;
	}
	if (auth->chap.state == AUTH_PROVEN) {
		auth->proven = true;
		log_dbg(path->name, "authenticated as %s to %s", auth_key_name(auth->key),
			auth->chap.peer);
		auth->done(path, 0, "");
		return;
	}
	memcpy(path->talk.out, reply.bytes, reply.len);
	r = clt_con_zero_say(path, reply.len, why);
	if (r < 0)
		auth->done(path, r, why);
}

static void auth_came(struct clt_path *path, const struct ibv_wc *wc)
{
	bool is_send = wc->opcode == IBV_WC_RECV && !(wc->wc_flags & IBV_WC_WITH_IMM);

	if (clt_attempt_state(&path->att) == CLT_PATH_PROVING)	/* else closing */
		auth_take(path, is_send ? wc->byte_len : 0);
}

/* ---- the key ---- */

/* The key by which another path of the session is connected; NULL: no other path is. */
static const struct auth_key *key_of_others(const struct clt_path *path)
{
	const struct clt_io *io = path->conf.io;

	for (unsigned i = 0; i < io->natts; i++) {
		struct clt_path *other = container_of(io->atts[i], struct clt_path, att);

		if (other != path && other->auth.proven && clt_path_runs(other))
			return other->auth.key;
	}
	return NULL;
}

static int choose_key(struct clt_path *path)
{
	struct clt_auth *auth = &path->auth;
	const struct auth_key *key = key_of_others(path);

	if (!key || auth->passed_over)
		auth->key = auth_key_own(path->conf.auth);
	else
		auth->key = auth_key_copy(key);
	return auth->key ? 0 : -ENOMEM;
}

/* The attempt ends: decide which key the next one has. */
static void leave_key(struct clt_path *path)
{
	struct clt_auth *auth = &path->auth;

	if (!auth->key)
		return;
	auth->passed_over = !path->up_since_ms && !auth_key_is_own(auth->key, path->conf.auth);
	auth_key_free(auth->key);
	auth->key = NULL;
}

/* ---- begin and end ---- */

int clt_auth_begin(struct clt_path *path,
		   void (*done)(struct clt_path *path, int err, const char *why),
		   char why[CLT_WHY])
{
	struct clt_auth *auth = &path->auth;
	struct auth_reply hello;
	struct auth_where where;
	int r = clt_con_zero_talk(path, AUTH_MSG_MAX, AUTH_MSG_MAX, auth_came, why);

	if (r < 0)
		return r;
	r = choose_key(path);
	if (r < 0) {
		snprintf(why, CLT_WHY, "out of memory");
		return r;
	}
	auth->done = done;
	auth_conn_where(&where, &auth->req, &auth->rsp, path->att.cons[0].fab);
	auth_key_prove(auth->key, &where, &auth->chap, &hello);
	memcpy(path->talk.out, hello.bytes, hello.len);
	return clt_con_zero_say(path, hello.len, why);
}

void clt_auth_release(struct clt_path *path)
{
	auth_chap_end(&path->auth.chap);
	leave_key(path);
	path->auth.proven = false;
}
