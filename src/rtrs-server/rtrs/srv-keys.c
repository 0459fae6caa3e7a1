/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing: the keys are those of srv->tls and srv->auth; control thread. */
#include <string.h>

#include "auth-creds.h"
#include "fab-tls.h"
#include "srv-keys.h"
#include "srv-pass.h"
#include "srv-path.h"
#include "srv-sess.h"
#include "srv-state.h"

bool srv_keys_of_tls(const struct srv *srv)
{
	return srv->tls && srv->conf->tls.psk;
}

bool srv_keys_of_auth(const struct srv *srv)
{
	return srv->auth;
}

bool srv_keys_any(const struct srv *srv)
{
	return srv_keys_of_tls(srv) || srv_keys_of_auth(srv);
}

bool srv_keys_hold(const struct srv *srv, uint64_t key)
{
	return !key || fab_psk_by_serial(fab_tls_keys(srv->tls), key) ||
	       (srv->auth && fab_psk_by_serial(&srv->auth->psks, key));
}

/* Fail the paths of @sess under @key.  Returns how many. */
static unsigned end_paths_of(struct srv_sess *sess, uint64_t key)
{
	struct srv_path *path, *next;
	unsigned n = 0;

	/* The last path takes its session along. */
	srv_sess_get(sess);
	list_for_each_safe(path, next, &sess->paths, link) {
		if ((path->key != key && path->transport.key != key) ||
		    path->state >= SRV_PATH_DRAINING)
			continue;
		srv_path_fail(path, "the key of %s was taken out", path->identity);
		n++;
	}
	srv_sess_put(sess);
	return n;
}

static unsigned end_paths(struct srv *srv, uint64_t key)
{
	struct srv_sess *sess, *next;
	unsigned n = 0;

	list_for_each_safe(sess, next, &srv->sessions, link)
		n += end_paths_of(sess, key);
	return n;
}

static bool is_key_of(const struct fab_psk *psk, const char *identity)
{
	char text[FAB_IDENTITY_LEN];

	return !strcmp(fab_psk_identity(psk->name, text, sizeof(text)), identity);
}

static bool has_key_of(const struct fab_psks *psks, const char *identity)
{
	for (unsigned i = 0; i < psks->n; i++) {
		if (is_key_of(&psks->all[i], identity))
			return true;
	}
	return false;
}

/* Take the names of sessions from the identity of @old, unless another key of it is left. */
static void forget_names(struct srv *srv, const struct fab_psk *old)
{
	char identity[FAB_IDENTITY_LEN];

	fab_psk_identity(old->name, identity, sizeof(identity));
	if (!has_key_of(fab_tls_keys(srv->tls), identity) &&
	    !(srv->auth && has_key_of(&srv->auth->psks, identity)))
		srv_names_forget(&srv->names, identity);
}

/* End what was made with keys of @before that are not among @now, and tell the difference; @kind
 * stands in front of "key". */
static void tell_difference(struct srv *srv, const struct fab_psks *now,
			    const struct fab_psks *before, const char *kind, FILE *report)
{
	for (unsigned i = 0; i < before->n; i++) {
		const struct fab_psk *old = &before->all[i];
		unsigned n = 0;

		if (fab_psk_by_serial(now, old->serial))
			continue;
		n = end_paths(srv, old->serial);
		forget_names(srv, old);
		fprintf(report, "-%skey %s", kind, old->name);
		if (n)
			fprintf(report, " (%u path%s ended)", n, n == 1 ? "" : "s");
		fprintf(report, "\n");
	}
	for (unsigned i = 0; i < now->n; i++) {
		if (!fab_psk_by_serial(before, now->all[i].serial))
			fprintf(report, "+%skey %s\n", kind, now->all[i].name);
	}
}

void srv_keys_take(struct srv *srv, struct fab_psks *psks, FILE *report)
{
	fab_tls_take_keys(srv->tls, psks);
	tell_difference(srv, fab_tls_keys(srv->tls), psks, "", report);
}

void srv_keys_take_auth(struct srv *srv, struct fab_psks *psks, FILE *report)
{
	struct fab_psks before = srv->auth->psks;

	fab_psk_adopt(psks, &before);
	srv->auth->psks = *psks;
	*psks = before;
	srv_pass_drop_old(srv);
	tell_difference(srv, &srv->auth->psks, psks, "auth ", report);
}
