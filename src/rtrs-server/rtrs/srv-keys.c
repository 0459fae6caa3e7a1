/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing: the keys are those of srv->tls and srv->auth; control thread. */
#include <string.h>

#include "auth-creds.h"
#include "certs.h"
#include "fab-tls.h"
#include "srv-con.h"
#include "srv-keys.h"
#include "srv-names.h"
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

bool srv_keys_of_certs(const struct srv *srv)
{
	return srv->tls && srv->conf->tls.certificates;
}

bool srv_keys_any(const struct srv *srv)
{
	return srv_keys_of_tls(srv) || srv_keys_of_auth(srv) || srv_keys_of_certs(srv);
}

bool srv_keys_hold(const struct srv *srv, uint64_t key)
{
	return !key || psk_by_serial(fab_tls_keys(srv->tls), key) ||
	       (srv->auth && psk_by_serial(&srv->auth->psks, key));
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
			      srv_names_person(path->identity), end->why);
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

/* End a line of @report about something that has ended @n paths. */
static void tell_ended(unsigned n, FILE *report)
{
	if (n)
		fprintf(report, " (%u path%s ended)", n, n == 1 ? "" : "s");
	fprintf(report, "\n");
}

/* ---- keys ---- */

/* As fab_tls_take_keys(), for the keys of authentication in messages. */
static void take_auth_keys(struct srv *srv, struct psks *psks)
{
	struct psks before = srv->auth->psks;

	psk_adopt(psks, &before);
	srv->auth->psks = *psks;
	*psks = before;
	srv_pass_drop_old(srv);
}

/* End what was made with keys of @before that are not among @now, and tell of each; @kind stands in
 * front of "key". */
static void end_taken_out(struct srv *srv, const struct psks *now, const struct psks *before,
			  const char *kind, FILE *report)
{
	for (unsigned i = 0; i < before->n; i++) {
		const struct psk *old = &before->all[i];
		const struct end end = { is_under_key, old->serial, "key", "was taken out" };
		unsigned n;

		if (psk_by_serial(now, old->serial))
			continue;
		n = end_paths(srv, &end);
		fprintf(report, "-%skey %s", kind, old->name);
		tell_ended(n, report);
	}
}

int srv_keys_withdraw(struct srv *srv, const struct srv_key_files *files, FILE *report)
{
	const bool tls = srv_keys_of_tls(srv), auth = srv_keys_of_auth(srv);
	struct srv_key_files keys = { 0 };
	int rc = 0;

	if (tls)
		rc = psk_common(fab_tls_keys(srv->tls), &files->tls, &keys.tls);
	if (auth && !rc)
		rc = psk_common(&srv->auth->psks, &files->auth, &keys.auth);
	if (tls && !rc) {
		fab_tls_take_keys(srv->tls, &keys.tls);
		end_taken_out(srv, fab_tls_keys(srv->tls), &keys.tls, "", report);
	}
	if (auth && !rc) {
		take_auth_keys(srv, &keys.auth);
		end_taken_out(srv, &srv->auth->psks, &keys.auth, "auth ", report);
	}
	psk_free(&keys.tls);
	psk_free(&keys.auth);
	return rc;
}

static void tell_new(const struct psks *now, const struct psks *before, const char *kind,
		     FILE *report)
{
	for (unsigned i = 0; i < now->n; i++) {
		if (!psk_by_serial(before, now->all[i].serial))
			fprintf(report, "+%skey %s\n", kind, now->all[i].name);
	}
}

void srv_keys_give(struct srv *srv, struct srv_key_files *files, FILE *report)
{
	if (srv_keys_of_tls(srv)) {
		fab_tls_take_keys(srv->tls, &files->tls);
		tell_new(fab_tls_keys(srv->tls), &files->tls, "", report);
	}
	if (srv_keys_of_auth(srv)) {
		take_auth_keys(srv, &files->auth);
		tell_new(&srv->auth->psks, &files->auth, "auth ", report);
	}
}

/* ---- certificates ---- */

int srv_keys_read_certs(const struct srv *srv, const char *dir, struct certs **out, char *err,
			size_t len)
{
	return fab_tls_read_certs(srv->tls, dir, out, err, len);
}

void srv_keys_take_certs(struct srv *srv, struct certs *certs, FILE *report)
{
	static const struct end end = { is_distrusted, 0, "certificate",
					"is not accepted any more" };

	const bool same = certs_same(certs, fab_tls_certs(srv->tls));
	unsigned n;

	if (same)
		certs_put(certs);
	else
		fab_tls_take_certs(srv->tls, certs);
	/* The same files, too, refuse a certificate that has ended. */
	n = end_paths(srv, &end);
	if (same && !n)
		return;
	fprintf(report, "tls-certificates: %s", same ? "nothing has changed" : "read again");
	tell_ended(n, report);
}
