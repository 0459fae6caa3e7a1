/* SPDX-License-Identifier: BSD-3-Clause */
/* The secrets of an end, out of one option of its user: pre-shared keys for TLS or for
 * authentication in messages, or certificates.
 *
 * The owner is one thread, and replaces what holds (secrets-set.h) while handshakes on other
 * threads look for a key, or take certificates.  A handshake keeps a copy of the key, and a
 * reference to the certificates, so the owner may free those of before at once. */
#ifndef SECRETS_H
#define SECRETS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "certs.h"
#include "psk.h"

enum secrets_kind {
	SECRETS_TLS_KEYS,		/* tls-psk: a file of keys */
	SECRETS_AUTH_KEYS,		/* auth-psk: likewise */
	SECRETS_CERTS,			/* tls-certificates: a directory */
	SECRETS_KINDS
};

/* The options of a user.  Texts live during secrets_create() alone. */
struct secrets_conf {
	enum secrets_kind kind;
	bool server;
	bool nbd;			/* of NBD clients: the lines of a report say so */
	const char *file;
	const char *username;		/* client: whose key; NULL: the only one in @file */
};

struct secrets {
	/* constant */
	enum secrets_kind kind;
	bool server, nbd;
	char *username;
	pthread_mutex_t lock;		/* of what follows; innermost */
	struct psks psks;		/* of a client its own alone */
	struct certs *certs;		/* a reference; NULL: not of this kind */
};

/* What a file says, apart from what holds. */
struct secrets_next {
	struct secrets *of;		/* whose place it is to take */
	const char *file;		/* the caller's; a directory of certificates */
	struct psks psks;
	struct certs *certs;		/* a reference; NULL: none */
	bool told;			/* secrets_set_withdraw() has told of it */
};

/* Read the secrets of @conf.  0, or -errno with a line in @err that names option and value:
 * "tls-psk=FILE: ...". */
int secrets_create(const struct secrets_conf *conf, struct secrets **out, char *err, size_t len);
/* Wipe and free @s; NULL: do nothing. */
void secrets_destroy(struct secrets *s);
/* Read next->file, as next->of says: of a client its own key alone; a list of revocations that
 * next->of has may not be gone.  Changes nothing of next->of; any thread.  0, or -errno with a line
 * in @err as of secrets_create(), and @next has nothing.  Give @next to secrets_next_free(). */
int secrets_read(struct secrets_next *next, char *err, size_t len);
/* Wipe and free what @next has. */
void secrets_next_free(struct secrets_next *next);

/* The first key of @s, which has keys: of a client its own.  The owner's thread; valid until
 * another one holds. */
const struct psk *secrets_own(const struct secrets *s);
/* Its name.  Likewise. */
const char *secrets_own_name(const struct secrets *s);
/* False: @serial, of a key that @s had once (struct psk), is none of its keys now.  @s NULL: it has
 * none.  Any thread. */
bool secrets_has_key(struct secrets *s, uint64_t serial);
/* True if a key of @s is that of the identity @identity, "psk:NAME"; @s NULL: it has none.  Any
 * thread. */
bool secrets_name(struct secrets *s, const char *identity);
/* Write to @buf the names of the keys of @s, which may be NULL, that prove the identity @identity,
 * "psk:gw2"; of "psk:gw2/new" that key alone: "gw2, gw2/new".  Returns how many; @buf may be too
 * short for all.  Any thread. */
unsigned secrets_list(struct secrets *s, const char *identity, char *buf, size_t len);
/* A reference to the certificates of now; NULL: there are none.  Any thread. */
struct certs *secrets_get_certs(struct secrets *s);

/* The dates of the certificates of @s; none of keys, and of NULL.  The owner's thread. */
struct secrets_dates secrets_dates(const struct secrets *s);

/* ---- a look by a tool ----
 *
 * A tool reads files of keys and certificates as a program does, and does not use them: what was
 * read is wiped at once.  Any thread. */

struct secrets_keys_seen {
	unsigned n;			/* keys */
	int64_t since_s;		/* the last change of the file, since 1970 */
};

/* Look at the file of keys @path, as a program of the user @reader may use it.  Nothing but a file
 * is opened.  0, or -errno with the reason in @why, without the name of the file. */
int secrets_look_keys(const char *path, uid_t reader, struct secrets_keys_seen *seen, char *why,
		      size_t len);
/* Look at the certificates in the directory @dir, of a server or a client.  0, or -errno with a
 * line in @err as of certs_read(). */
int secrets_look_certs(const char *dir, bool server, struct secrets_dates *dates, char *err,
		       size_t len);

#endif
