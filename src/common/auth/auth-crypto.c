/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing. */
#include <stdlib.h>
#include <string.h>

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <nettle/curve25519.h>

#include "auth-crypto.h"

_Static_assert(AUTH_POINT_LEN == CURVE25519_SIZE, "X25519");

static void need(int rc)
{
	if (rc < 0)
		abort();
}

void auth_crypto_hash(const struct auth_part *parts, unsigned n, uint8_t out[AUTH_HASH_LEN])
{
	gnutls_hash_hd_t hash;

	need(gnutls_hash_init(&hash, GNUTLS_DIG_SHA256));
	for (unsigned i = 0; i < n; i++)
		need(gnutls_hash(hash, parts[i].data, parts[i].len));
	gnutls_hash_deinit(hash, out);
}

void auth_crypto_hmac(const uint8_t *key, size_t key_len, const struct auth_part *parts, unsigned n,
	       uint8_t out[AUTH_HASH_LEN])
{
	gnutls_hmac_hd_t hmac;

	need(gnutls_hmac_init(&hmac, GNUTLS_MAC_SHA256, key, key_len));
	for (unsigned i = 0; i < n; i++)
		need(gnutls_hmac(hmac, parts[i].data, parts[i].len));
	gnutls_hmac_deinit(hmac, out);
}

void auth_crypto_extract(const uint8_t *salt, size_t salt_len, const uint8_t *ikm, size_t ikm_len,
		  uint8_t out[AUTH_HASH_LEN])
{
	const gnutls_datum_t key = { .data = (uint8_t *)ikm, .size = (unsigned)ikm_len };
	const gnutls_datum_t with = { .data = (uint8_t *)salt, .size = (unsigned)salt_len };

	need(gnutls_hkdf_extract(GNUTLS_MAC_SHA256, &key, &with, out));
}

void auth_crypto_public(const uint8_t secret[AUTH_POINT_LEN], uint8_t public[AUTH_POINT_LEN])
{
	curve25519_mul_g(public, secret);
}

bool auth_crypto_shared(const uint8_t secret[AUTH_POINT_LEN], const uint8_t public[AUTH_POINT_LEN],
		 uint8_t shared[AUTH_POINT_LEN])
{
	static const uint8_t none[AUTH_POINT_LEN];

	curve25519_mul(shared, secret, public);
	return !auth_crypto_same(shared, none, sizeof(none));
}

bool auth_crypto_same(const void *a, const void *b, size_t len)
{
	return gnutls_memcmp(a, b, len) == 0;
}
