/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the copy of a key. */
#include <config.h>

#include <string.h>

#include "auth-creds.h"
#include "auth-key.h"
#include "clock.h"
#include "secret.h"

struct auth_key {
	struct psk psk;
};

static struct auth_key *copy_of(const struct psk *psk)
{
	struct auth_key *key = secret_alloc(sizeof(*key));

	if (key)
		key->psk = *psk;
	return key;
}

struct auth_key *auth_key_own(const struct auth_creds *creds)
{
	return copy_of(secrets_own(creds->secrets));
}

struct auth_key *auth_key_copy(const struct auth_key *key)
{
	return copy_of(&key->psk);
}

void auth_key_free(struct auth_key *key)
{
	secret_free(key, sizeof(*key));
}

bool auth_key_is_own(const struct auth_key *key, const struct auth_creds *creds)
{
	return psk_same(&key->psk, secrets_own(creds->secrets));
}

const char *auth_key_name(const struct auth_key *key)
{
	return key->psk.name;
}

void auth_key_prove(const struct auth_key *key, const struct auth_where *where,
		    struct auth_chap *chap, struct auth_reply *hello)
{
	struct auth_chance chance;

	random_bytes(&chance, sizeof(chance));
	auth_chap_client(chap, where, &key->psk, &chance, hello);
	explicit_bzero(&chance, sizeof(chance));
}
