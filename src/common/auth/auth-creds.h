/* SPDX-License-Identifier: BSD-3-Clause */
/* The keys of an end for authentication in messages, and whether the end insists on it
 * (doc/decisions.md D23).  The files are those of tls-psk (psk.h).
 *
 * Made on the main thread.  Then constant but for its secrets (secrets.h), which belong to the
 * thread that uses the keys: the control thread of a server or the service thread of a client. */
#ifndef AUTH_CREDS_H
#define AUTH_CREDS_H

#include <stdbool.h>
#include <stddef.h>

#include "secrets.h"

enum auth_mode {
	AUTH_MODE_NONE,			/* server: ask nobody; client: offer nothing */
	AUTH_MODE_PSK,			/* with a peer that is able to; others are anonymous */
	AUTH_MODE_REQUIRE,		/* nobody else */
	AUTH_MODES
};
/* "none", "psk", "require". */
extern const char *const auth_mode_names[AUTH_MODES];

/* The options of a user.  Texts live during auth_creds_create() alone. */
struct auth_conf {
	bool server;
	bool asked;			/* @mode was given; else require, if a file was */
	enum auth_mode mode;
	const char *psk;		/* a file of keys; NULL: none */
	const char *username;		/* client: whose key; NULL: the only one */
	const char *hostname;		/* client: the server's own name, or several, "a,b"; NULL:
					 * any */
};

struct auth_creds {
	enum auth_mode mode;
	struct secrets *secrets;
	char *hostname;			/* client: NULL: any */
	char name[PSK_NAME_MAX + 1];	/* server: the name of this machine */
};

/* The mode that the options of @conf mean together. */
enum auth_mode auth_conf_mode(const struct auth_conf *conf);
/* Read the keys as @conf says.  @out gets NULL if authentication is off.  0, or -errno with a line
 * in @err that names option and value: "auth-psk=FILE: ...". */
int auth_creds_create(const struct auth_conf *conf, struct auth_creds **out, char *err, size_t len);
/* Wipe and free @creds; NULL: do nothing. */
void auth_creds_destroy(struct auth_creds *creds);
/* True if a client with @creds goes on with a server that has proven to be called @name. */
bool auth_creds_want(const struct auth_creds *creds, const char *name);
/* The mode; of NULL AUTH_MODE_NONE. */
static inline enum auth_mode auth_mode(const struct auth_creds *creds)
{
	return creds ? creds->mode : AUTH_MODE_NONE;
}

#endif
