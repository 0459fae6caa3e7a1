/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns keys and certificates that were read, until the server has them.  The change calls one
 * function at a time, on the thread that the header names. */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "conf.h"
#include "certs.h"
#include "tell.h"
#include "trust.h"

/* ---- files ---- */

/* False: a mistake, which is told in @errors. */
static bool keys_read(const char *option, const char *file, struct psks *keys, FILE *errors)
{
	char why[256];

	if (!psk_read(file, geteuid(), keys, why, sizeof(why)))
		return true;
	fprintf(errors, "--%s=%s: %s\n", option, file, why);
	return false;
}

/* The same, of certificates. */
static bool dir_read(const struct srv *srv, const char *dir, struct certs **certs, FILE *errors)
{
	char why[2048];

	if (!srv_keys_read_certs(srv, dir, certs, why, sizeof(why)))
		return true;
	fprintf(errors, "--%s\n", why);
	return false;
}

bool trust_read(struct trust *t, const struct srv *srv, const struct srv_conf *conf, FILE *errors)
{
	bool good = true;

	if (srv_keys_of_tls(srv))
		good = keys_read("tls-psk", conf->tls.psk, &t->keys.tls, errors);
	if (srv_keys_of_auth(srv))
		good = keys_read("auth-psk", conf->auth.psk, &t->keys.auth, errors) && good;
	if (srv_keys_of_certs(srv))
		good = dir_read(srv, conf->tls.certificates, &t->certs, errors) && good;
	return good;
}

static void free_keys(struct srv_key_files *keys)
{
	psk_free(&keys->tls);
	psk_free(&keys->auth);
}

int trust_narrow(struct trust *t, const struct trust *later)
{
	struct srv_key_files both = { 0 };
	int rc = psk_common(&t->keys.tls, &later->keys.tls, &both.tls);

	if (!rc)
		rc = psk_common(&t->keys.auth, &later->keys.auth, &both.auth);
	if (rc) {
		free_keys(&both);
		return rc;
	}
	free_keys(&t->keys);
	t->keys = both;
	return 0;
}

/* ---- what holds ---- */

int trust_withdraw(struct trust *t, struct srv *srv)
{
	size_t len = 0;
	FILE *out = open_memstream(&t->withdrawn, &len);
	int rc;

	if (!out)
		return -ENOMEM;
	rc = srv_keys_withdraw(srv, &t->keys, out);
	if (!rc && t->certs) {
		srv_keys_take_certs(srv, t->certs, out);
		t->certs = NULL;
	}
	fclose(out);
	if (t->withdrawn)
		tell_changes(t->withdrawn);
	return rc;
}

void trust_give(struct trust *t, struct srv *srv, FILE *report)
{
	srv_keys_give(srv, &t->keys, report);
}

void trust_fini(struct trust *t)
{
	free_keys(&t->keys);
	certs_put(t->certs);
	free(t->withdrawn);
	*t = (struct trust){ 0 };
}
