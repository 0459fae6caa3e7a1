/* SPDX-License-Identifier: BSD-3-Clause */
/* The keys and the passes by which a client proves itself.  Owns the passes: each ends with its
 * last connection, with its attempt, by its age, or for newer passes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "auth-creds.h"
#include "clock.h"
#include "conf.h"
#include "fab-tls.h"
#include "log.h"
#include "process.h"
#include "secrets.h"
#include "srv-auth.h"
#include "srv-con.h"
#include "srv-path.h"
#include "srv-sess.h"
#include "srv-state.h"

/* Many clients may share a key, and an attempt that never comes back leaves its pass. */
#define PASSES_OF_ONE 512u
#define PASSES_MAX 2048u

static struct log_limit version_limit = LOG_LIMIT_INIT(5, 10000);

struct srv_pass {
	struct list link;
	struct srv_who who;
	struct rtrs_conn_req req;	/* of the connection of the proof */
	struct fab_addr client;
	uint16_t next_cid;
	uint64_t deadline_ms;
};

void srv_pass_init(struct srv_passes *passes)
{
	list_init(&passes->all);
	passes->n = 0;
}

static void pass_end(struct srv_passes *passes, struct srv_pass *pass)
{
	list_del(&pass->link);
	passes->n--;
	explicit_bzero(pass, sizeof(*pass));
	free(pass);
}

void srv_pass_fini(struct srv_passes *passes)
{
	struct srv_pass *pass, *tmp;

	list_for_each_safe(pass, tmp, &passes->all, link)
		pass_end(passes, pass);
}

/* ---- giving ---- */

static bool same_path(const struct rtrs_conn_req *a, const struct rtrs_conn_req *b)
{
	return !memcmp(a->sess_uuid, b->sess_uuid, RTRS_UUID_LEN) &&
	       !memcmp(a->paths_uuid, b->paths_uuid, RTRS_UUID_LEN);
}

/* End passes that are too old, an earlier one of the same key and path, and one more if there are
 * too many: first of those of the same key. */
static void make_room(struct srv_passes *passes, const struct srv_pass *new)
{
	struct srv_pass *pass, *tmp, *oldest = NULL;
	uint64_t now = clock_now_ms();
	unsigned own = 0;

	list_for_each_safe(pass, tmp, &passes->all, link) {
		bool same = !memcmp(pass->who.key_id, new->who.key_id, sizeof(new->who.key_id));

		if (pass->deadline_ms <= now || (same && same_path(&pass->req, &new->req))) {
			pass_end(passes, pass);
			continue;
		}
		own += same;
		if (same && !oldest)
			oldest = pass;
	}
	if (own >= PASSES_OF_ONE)
		pass_end(passes, oldest);
	else if (passes->n >= PASSES_MAX)
		pass_end(passes, list_entry(passes->all.next, struct srv_pass, link));
}

int srv_pass_give(struct srv *srv, struct fab_conn *conn, const struct rtrs_conn_req *req,
		  const struct auth_chap *chap)
{
	struct srv_pass *pass = calloc(1, sizeof(*pass));

	if (!pass)
		return -ENOMEM;
	fab_conn_identity(conn, &pass->who.id);
	secret_name_identity(chap->peer, pass->who.id.name, sizeof(pass->who.id.name));
	snprintf(pass->who.key, sizeof(pass->who.key), "%s", chap->peer);
	memcpy(pass->who.key_id, chap->key_id, sizeof(pass->who.key_id));
	pass->who.id.key = chap->serial;
	pass->who.id.key_since_s = chap->since_s;
	memcpy(pass->who.conn_key, chap->conn_key, sizeof(pass->who.conn_key));
	pass->req = *req;
	fab_conn_addrs(conn, NULL, &pass->client);
	pass->deadline_ms = clock_now_ms() + srv->conf->setup_timeout_ms + SRV_PARK_TIMEOUT;
	make_room(&srv->passes, pass);
	list_add_tail(&srv->passes.all, &pass->link);
	srv->passes.n++;
	return 0;
}

void srv_pass_attempt_over(struct srv *srv, const uint8_t conn_key[AUTH_HASH_LEN])
{
	struct srv_pass *pass;

	list_for_each(pass, &srv->passes.all, link) {
		if (!memcmp(pass->who.conn_key, conn_key, AUTH_HASH_LEN)) {
			pass_end(&srv->passes, pass);
			return;
		}
	}
}

/* ---- asking ---- */

/* The pass under which @msg is sealed for @conn, or NULL. */
static struct srv_pass *pass_of(const struct srv *srv, const struct fab_conn *conn,
				const struct rtrs_conn_req *req,
				const struct rtrs_msg_conn_req *msg)
{
	struct auth_channel channel;
	struct srv_pass *pass;

	auth_conn_channel(&channel, conn);
	list_for_each(pass, &srv->passes.all, link) {
		if (same_path(&pass->req, req) &&
		    auth_conn_req_ok(msg, &channel, pass->who.conn_key))
			return pass;
	}
	return NULL;
}

/* True if @pass lets the connection @req of @conn, which has @tls, pass; else *@why says why
 * not. */
static bool pass_holds(const struct srv_pass *pass, const struct fab_conn *conn,
		       const struct rtrs_conn_req *req, const struct fab_identity *tls,
		       const char **why)
{
	struct fab_addr peer;

	fab_conn_addrs(conn, NULL, &peer);
	if (!pass || pass->deadline_ms <= clock_now_ms())
		*why = "its path has not been authenticated, or too long ago, or TLS was "
		       "terminated between the ends";
	else if (!fab_addr_same_host(&pass->client, &peer))
		*why = "its path has been authenticated from another address";
	else if (req->recon_cnt != pass->req.recon_cnt || req->cid_num != pass->req.cid_num ||
		 req->cid != pass->next_cid)
		*why = "it is not the next connection of its path that was authenticated";
	else if (!*pass->who.id.cipher != !*tls->cipher)
		*why = "this connection has TLS and the connection of its proof had none, or vice "
		       "versa";
	else
		return true;
	return false;
}

/* Let the connection @req of @conn pass, or say why not. */
static enum rtrs_refusal pass_use(struct srv *srv, struct fab_conn *conn,
				  const struct rtrs_conn_req *req,
				  const struct rtrs_msg_conn_req *msg, struct srv_who *who,
				  const char **why)
{
	struct srv_pass *pass = pass_of(srv, conn, req, msg);
	struct fab_identity tls = who->id;
	static char text[2 * FAB_IDENTITY_LEN + 64];

	if (!pass_holds(pass, conn, req, &tls, why))
		return RTRS_REFUSES_UNPROVEN;
	*who = pass->who;
	memcpy(who->id.cipher, tls.cipher, sizeof(tls.cipher));
	who->tls_key = tls.key;
	if (++pass->next_cid == req->cid_num)
		pass_end(&srv->passes, pass);
	if (strncmp(tls.name, "psk:", 4) || !strcmp(tls.name, who->id.name))
		return RTRS_REFUSES_NOT;
	snprintf(text, sizeof(text), "its TLS key belongs to %s, but the client is %s", tls.name,
		 who->id.name);
	*why = text;
	return RTRS_REFUSES_TWO_NAMES;
}

/* The client of @conn speaks version @version, which is not that of @conn. */
static enum rtrs_refusal other_version(struct srv *srv, struct fab_conn *conn, enum auth_mode mode,
				       unsigned version, const char **why)
{
	static const char text[] = "its version of authentication is not accepted over this "
				   "transport: version 1 does not bind each connection to its "
				   "TLS: upgrade the client";
	char name[FAB_ADDR_STRLEN];
	struct fab_addr peer;

	*why = text;
	if (mode == AUTH_MODE_REQUIRE)
		return RTRS_REFUSES_UNPROVEN;
	fab_conn_addrs(conn, NULL, &peer);
	srv_log_limited(srv, &peer, &version_limit, LOG_LEVEL_WARN,
			fab_addr_format(&peer, name, sizeof(name)),
			"not authenticated: %s (it has version %u, and --auth=require refuses "
			"this)", text, version);
	return RTRS_REFUSES_NOT;
}

enum rtrs_refusal srv_pass_who(struct srv *srv, struct fab_conn *conn, enum auth_mode mode,
			       const struct rtrs_conn_req *req,
			       const struct rtrs_msg_conn_req *msg, struct srv_who *who,
			       const char **why)
{
	memset(who, 0, sizeof(*who));
	fab_conn_identity(conn, &who->id);
	who->tls_key = who->id.key;
	if (req->auth == RTRS_AUTHS_PROVES)
		return pass_use(srv, conn, req, msg, who, why);
	if (*who->id.name || mode == AUTH_MODE_NONE)
		return RTRS_REFUSES_NOT;
	if (req->auth == RTRS_AUTHS_ASKS && req->auth_version != auth_conn_version(conn))
		return other_version(srv, conn, mode, req->auth_version, why);
	if (mode != AUTH_MODE_REQUIRE)
		return RTRS_REFUSES_NOT;
	*why = "it does not authenticate, which --auth=require needs";
	return RTRS_REFUSES_UNPROVEN;
}

/* ---- other keys ---- */

void srv_pass_drop_old(struct srv *srv)
{
	struct srv_pass *pass, *tmp;

	list_for_each_safe(pass, tmp, &srv->passes.all, link) {
		if (!secrets_has_key(srv->auth->secrets, pass->who.id.key))
			pass_end(&srv->passes, pass);
	}
}

/* ---- the keys of clients, and the certificates ---- */

/* The secrets are those of srv->tls and srv->auth; control thread. */

int srv_keys_open(const struct srv_conf *conf, struct fab_tls **tls, struct auth_creds **auth,
		  char *err, size_t errlen)
{
	char why[512];
	int rc = fab_tls_create(&conf->tls, tls, why, sizeof(why));

	*auth = NULL;
	if (!rc)
		rc = auth_creds_create(&conf->auth, auth, why, sizeof(why));
	if (rc)
		snprintf(err, errlen, "--%s", why);
	return exit_file_error(rc);
}

int srv_keys_try(const struct srv_conf *conf, FILE *errors)
{
	return auth_files_try(&conf->tls, &conf->auth, "--", errors);
}

bool srv_keys_name(const struct fab_tls *tls, const struct auth_creds *auth, const char *identity)
{
	return secrets_name(fab_tls_secrets(tls), identity) ||
	       secrets_name(auth_secrets(auth), identity);
}

bool srv_keys_any(const struct srv *srv)
{
	return srv->tls || srv->auth;
}

bool srv_keys_hold(const struct srv *srv, uint64_t key)
{
	return !key || secrets_has_key(fab_tls_secrets(srv->tls), key) ||
	       secrets_has_key(auth_secrets(srv->auth), key);
}

void srv_keys_add(const struct srv *srv, struct secrets_set *set)
{
	const struct srv_conf *conf = srv->conf;

	secrets_set_add(set, fab_tls_secrets(srv->tls), fab_tls_conf_file(&conf->tls));
	secrets_set_add(set, auth_secrets(srv->auth), conf->auth.psk);
}

/* ---- the end of paths ---- */

/* True if @path was let in by the key with the serial @key. */
static bool is_under_key(const struct srv_path *path, uint64_t key)
{
	return path->key == key || path->transport.key == key;
}

/* True if a connection of @path would not be let in any more. */
static bool is_distrusted(const struct srv_path *path, uint64_t key)
{
	for (unsigned cid = 0; cid < path->cid_num; cid++) {
		if (path->cons[cid] && path->cons[cid]->fab &&
		    !fab_conn_trusted(path->cons[cid]->fab))
			return true;
	}
	return false;
}

/* The paths to end, and why. */
struct end {
	bool (*match)(const struct srv_path *path, uint64_t key);
	uint64_t key;
	const char *what, *why;		/* around the identity of the path */
};

/* Fail the paths of @sess that @end is for.  Returns how many. */
static unsigned end_paths_of(struct srv_sess *sess, const struct end *end)
{
	struct srv_path *path, *next;
	unsigned n = 0;

	/* The last path takes its session along. */
	srv_sess_get(sess);
	list_for_each_safe(path, next, &sess->paths, link) {
		if (path->state >= SRV_PATH_DRAINING || !end->match(path, end->key))
			continue;
		srv_path_fail(path, "the %s of %s %s", end->what,
			      srv_sess_person(path->identity), end->why);
		n++;
	}
	srv_sess_put(sess);
	return n;
}

static unsigned end_paths(struct srv *srv, const struct end *end)
{
	struct srv_sess *sess, *next;
	unsigned n = 0;

	list_for_each_safe(sess, next, &srv->sessions, link)
		n += end_paths_of(sess, end);
	return n;
}

/* End what was made by the key with the serial @key; 0: by certificates. */
static unsigned end_made_by(void *arg, uint64_t key)
{
	const struct end of_key = { is_under_key, key, "key", "was removed" };
	const struct end of_certificate = { is_distrusted, 0, "certificate",
					    "is no longer accepted" };

	return end_paths(arg, key ? &of_key : &of_certificate);
}

int srv_keys_withdraw(struct srv *srv, struct secrets_change *change, char **lines)
{
	int rc = secrets_change_withdraw(change, end_made_by, srv, lines);

	if (!rc && srv->auth)
		srv_pass_drop_old(srv);
	return rc;
}
