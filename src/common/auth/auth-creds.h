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
#include <stdio.h>

#include "auth-chap.h"
#include "fab-tls.h"
#include "rtrs-proto.h"
#include "secrets.h"

struct auth_creds;
struct auth_key;
struct fab_conn;

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
/* True if two configurations name the same files. */
bool auth_files_same(const struct fab_tls_conf *tls_a, const struct auth_conf *auth_a,
		     const struct fab_tls_conf *tls_b, const struct auth_conf *auth_b);
/* Read the files of @tls and @auth, and forget them: a later start can read them, too.  0, or
 * -errno and a line in @errors for each that cannot be used, the name of its option behind
 * @dashes.  Any thread. */
int auth_files_try(const struct fab_tls_conf *tls, const struct auth_conf *auth, const char *dashes,
		   FILE *errors);
/* True if a client with @creds goes on with a server that has proven to be called @name. */
bool auth_creds_want(const struct auth_creds *creds, const char *name);
/* The mode; of NULL AUTH_MODE_NONE. */
static inline enum auth_mode auth_mode(const struct auth_creds *creds)
{
	return creds ? creds->mode : AUTH_MODE_NONE;
}

/* The keys; of NULL: NULL. */
static inline struct secrets *auth_secrets(const struct auth_creds *creds)
{
	return creds ? creds->secrets : NULL;
}

/* ---- the key that a client proves, for as long as a path lives by it ----
 *
 * A copy, because the key of the credentials may be replaced meanwhile.  In memory of
 * secret_alloc().  The thread that owns the credentials. */

/* A copy of the own key of @creds, or of @key; NULL: no memory.  Give it to auth_key_free(). */
struct auth_key *auth_key_own(const struct auth_creds *creds);
struct auth_key *auth_key_copy(const struct auth_key *key);
/* Wipe and free @key. */
void auth_key_free(struct auth_key *key);
/* True if @key is the own key of @creds, the same bytes under the same name. */
bool auth_key_is_own(const struct auth_key *key, const struct auth_creds *creds);
const char *auth_key_name(const struct auth_key *key);
/* Begin the proof of @key at @where, by chances of its own, with @hello: auth_chap_client().  @key
 * lives as long as @chap. */
void auth_key_prove(const struct auth_key *key, const struct auth_where *where,
		    struct auth_chap *chap, struct auth_reply *hello);

/* ---- CONN_REQ and CONN_RSP ----
 *
 * What the handshake has to know of these messages, and the tags of the connections that follow.
 * Pure, any thread. */

/* Fill @channel: what protects @conn, as this end sees it. */
void auth_conn_channel(struct auth_channel *channel, const struct fab_conn *conn);
/* The version of authentication on @conn, as auth_chap_version(). */
uint8_t auth_conn_version(const struct fab_conn *conn);
/* Fill @where: the messages as they were sent, and what protects @conn. */
void auth_conn_where(struct auth_where *where, const struct rtrs_msg_conn_req *req,
		     const struct rtrs_msg_conn_rsp *rsp, const struct fab_conn *conn);

/* Each message has the @channel of its own connection.
 *
 * Put into @req, which says PROVES, its tag under @conn_key. */
void auth_conn_req_seal(struct rtrs_msg_conn_req *req, const struct auth_channel *channel,
			const uint8_t conn_key[AUTH_HASH_LEN]);
/* True if @req has the tag under @conn_key. */
bool auth_conn_req_ok(const struct rtrs_msg_conn_req *req, const struct auth_channel *channel,
		      const uint8_t conn_key[AUTH_HASH_LEN]);
/* Put into @rsp, which says PROVES, the proof for the CONN_REQ with @tag. */
void auth_conn_rsp_seal(struct rtrs_msg_conn_rsp *rsp, const struct auth_channel *channel,
			const uint8_t tag[AUTH_TAG_LEN], const uint8_t conn_key[AUTH_HASH_LEN]);
/* True if @rsp has the proof for the CONN_REQ with @tag. */
bool auth_conn_rsp_ok(const struct rtrs_msg_conn_rsp *rsp, const struct auth_channel *channel,
		      const uint8_t tag[AUTH_TAG_LEN], const uint8_t conn_key[AUTH_HASH_LEN]);

#endif
