/* SPDX-License-Identifier: BSD-3-Clause */
/* The key that a client proves, for as long as a path lives by it: a copy (secret.h), because the
 * key of the credentials may be replaced meanwhile.  The thread that owns the credentials. */
#ifndef AUTH_KEY_H
#define AUTH_KEY_H

#include <stdbool.h>

#include "auth-chap.h"

struct auth_creds;
struct auth_key;

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

#endif
