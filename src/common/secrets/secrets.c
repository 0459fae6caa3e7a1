/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the keys or certificates of an end.
 *
 * RACE: a handshake looks for a key, or takes a reference to certificates, while the owner replaces
 * them; secrets.lock keeps the two apart.  Under the lock bytes are copied and references taken:
 * nothing is read, and nothing freed. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"
#include "number.h"
#include "secrets.h"

/* ---- read ---- */

/* The options of a kind of keys. */
static const struct {
	const char *psk, *username;
} words[] = {
	[SECRETS_TLS_KEYS] = { "tls-psk", "tls-username" },
	[SECRETS_AUTH_KEYS] = { "auth-psk", "auth-username" },
};

/* The key of @next that a client is to use; NULL with a line in @err. */
static const struct psk *choose_own(const struct secrets_next *next, char *err, size_t len)
{
	const char *username = next->of->username;
	const struct psk *own = NULL;

	if (username) {
		own = psk_find(&next->psks, username, strlen(username));
		if (!own)
			fmt_error(0, err, len, "%s=%s: no key in %s has this name",
				  words[next->of->kind].username, username, next->file);
	} else if (next->psks.n == 1) {
		own = &next->psks.all[0];
	} else {
		fmt_error(0, err, len, "%s=%s: has %u keys: expected %s=NAME",
			  words[next->of->kind].psk, next->file, next->psks.n,
			  words[next->of->kind].username);
	}
	return own;
}

/* Leave @psks the key @own alone: keys of others are no business of a client. */
static void keep_own(struct psks *psks, const struct psk *own)
{
	if (own != &psks->all[0])
		psks->all[0] = *own;
	explicit_bzero(&psks->all[1], (psks->n - 1) * sizeof(psks->all[0]));
	psks->n = 1;
}

static int read_keys(struct secrets_next *next, char *err, size_t len)
{
	const struct psk *own;
	char why[256];
	int rc = psk_read(next->file, geteuid(), &next->psks, why, sizeof(why));

	if (rc)
		return fmt_error(rc, err, len, "%s=%s: %s", words[next->of->kind].psk,
				 next->file, why);
	if (next->of->server)
		return 0;
	own = choose_own(next, err, len);
	if (own)
		keep_own(&next->psks, own);
	else
		psk_free(&next->psks);
	return own ? 0 : -EINVAL;
}

int secrets_read(struct secrets_next *next, char *err, size_t len)
{
	struct certs *before;
	int rc;

	if (next->of->kind != SECRETS_CERTS)
		return read_keys(next, err, len);
	before = secrets_get_certs(next->of);
	rc = certs_read(next->file, next->of->server, before, &next->certs, err, len);
	certs_put(before);
	return rc;
}

void secrets_next_free(struct secrets_next *next)
{
	psk_free(&next->psks);
	certs_put(next->certs);
	next->certs = NULL;
}

/* ---- what holds ---- */

const struct psk *secrets_own(const struct secrets *s)
{
	return &s->psks.all[0];
}

const char *secrets_own_name(const struct secrets *s)
{
	return secrets_own(s)->name;
}

bool secrets_has_key(struct secrets *s, uint64_t serial)
{
	if (!s)
		return false;
	LOCK_SCOPE(&s->lock);
	return psk_by_serial(&s->psks, serial);
}

/* True if @name, of a key, proves @identity, or is the key that @identity names with its label. */
static bool name_proves(const char *name, const char *identity)
{
	char text[sizeof("psk:") + PSK_NAME_MAX];

	if (strchr(identity, '/'))
		return !strncmp(identity, "psk:", 4) && !strcmp(identity + 4, name);
	return !strcmp(secret_name_identity(name, text, sizeof(text)), identity);
}

unsigned secrets_list(struct secrets *s, const char *identity, char *buf, size_t len)
{
	unsigned n = 0;
	size_t at = 0;

	if (len)
		*buf = '\0';
	if (!s)
		return 0;
	LOCK_SCOPE(&s->lock);
	for (unsigned i = 0; i < s->psks.n; i++) {
		const char *name = s->psks.all[i].name;

		if (!name_proves(name, identity))
			continue;
		if (at < len)
			at += (size_t)snprintf(buf + at, len - at, "%s%s", n ? ", " : "", name);
		n++;
	}
	return n;
}

bool secrets_name(struct secrets *s, const char *identity)
{
	return secrets_list(s, identity, NULL, 0);
}

struct certs *secrets_get_certs(struct secrets *s)
{
	LOCK_SCOPE(&s->lock);
	return s->certs ? certs_get(s->certs) : NULL;
}

struct secrets_dates secrets_dates(const struct secrets *s)
{
	return certs_dates(s ? s->certs : NULL);
}

/* ---- life ---- */

int secrets_create(const struct secrets_conf *conf, struct secrets **out, char *err, size_t len)
{
	struct secrets_next next = { .of = calloc(1, sizeof(*next.of)), .file = conf->file };
	struct secrets *s = next.of;
	int rc;

	*out = NULL;
	if (!s)
		return fmt_error(-ENOMEM, err, len, "out of memory");
	pthread_mutex_init(&s->lock, NULL);
	s->kind = conf->kind;
	s->server = conf->server;
	s->nbd = conf->nbd;
	s->username = conf->username ? strdup(conf->username) : NULL;
	rc = conf->username && !s->username ? fmt_error(-ENOMEM, err, len, "out of memory") :
					      secrets_read(&next, err, len);
	if (rc) {
		secrets_destroy(s);
		return rc;
	}
	s->psks = next.psks;
	s->certs = next.certs;
	*out = s;
	return 0;
}

void secrets_destroy(struct secrets *s)
{
	if (!s)
		return;
	psk_free(&s->psks);
	certs_put(s->certs);
	pthread_mutex_destroy(&s->lock);
	free(s->username);
	free(s);
}

/* ---- a look by a tool ---- */

int secrets_look_keys(const char *path, uid_t reader, struct secrets_keys_seen *seen, char *why,
		      size_t len)
{
	struct psks psks;
	struct stat st;
	int rc;

	/* The name comes from another program or its files. */
	if (!stat(path, &st) && !S_ISREG(st.st_mode))
		return fmt_error(-EINVAL, why, len, "expected a regular file");
	rc = psk_read(path, reader, &psks, why, len);
	if (!rc)
		*seen = (struct secrets_keys_seen){ psks.n, psks.all[0].since_s };
	psk_free(&psks);
	return rc;
}

int secrets_look_certs(const char *dir, bool server, struct secrets_dates *dates, char *err,
		       size_t len)
{
	struct certs *certs;
	int rc = certs_read(dir, server, NULL, &certs, err, len);

	*dates = certs_dates(certs);
	certs_put(certs);
	return rc;
}
