/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing: the secrets are those of srv->tls and srv->auth; control thread. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "auth-creds.h"
#include "fab-tls.h"
#include "process.h"
#include "secrets.h"
#include "srv-auth.h"
#include "srv-con.h"
#include "srv-path.h"
#include "srv-sess.h"
#include "srv-state.h"

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

static struct secrets *auth_secrets(const struct srv *srv)
{
	return srv->auth ? srv->auth->secrets : NULL;
}

bool srv_keys_name(const struct fab_tls *tls, const struct auth_creds *auth, const char *identity)
{
	return secrets_name(fab_tls_secrets(tls), identity) ||
	       secrets_name(auth ? auth->secrets : NULL, identity);
}

bool srv_keys_any(const struct srv *srv)
{
	return srv->tls || srv->auth;
}

bool srv_keys_hold(const struct srv *srv, uint64_t key)
{
	return !key || secrets_has_key(fab_tls_secrets(srv->tls), key) ||
	       secrets_has_key(auth_secrets(srv), key);
}

void srv_keys_add(const struct srv *srv, struct secrets_set *set)
{
	const struct srv_conf *conf = srv->conf;

	secrets_set_add(set, fab_tls_secrets(srv->tls), fab_tls_conf_file(&conf->tls));
	secrets_set_add(set, auth_secrets(srv), conf->auth.psk);
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
