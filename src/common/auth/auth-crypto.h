/* SPDX-License-Identifier: BSD-3-Clause */
/* The cryptography of authentication: HMAC-SHA256, HKDF and SHA-256 of GnuTLS, X25519 of nettle,
 * on which GnuTLS stands (GnuTLS 3.7 offers no X25519 by itself).  Bytes in, bytes out: pure, any
 * thread.  A failure of GnuTLS (FIPS mode without an algorithm, no memory) ends the program: no
 * caller can go on without a digest.  Short: six calls. */
#ifndef AUTH_CRYPTO_H
#define AUTH_CRYPTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AUTH_HASH_LEN 32u		/* bytes of a SHA-256, and of all secrets here */
#define AUTH_POINT_LEN 32u		/* bytes of a public key of X25519, and of a secret one */

/* A part of what is hashed. */
struct auth_part {
	const void *data;
	size_t len;
};

/* SHA-256 of @n parts, one behind the other. */
void auth_crypto_hash(const struct auth_part *parts, unsigned n, uint8_t out[AUTH_HASH_LEN]);
/* HMAC-SHA256 under @key of @n parts, one behind the other. */
void auth_crypto_hmac(const uint8_t *key, size_t key_len, const struct auth_part *parts, unsigned n,
	       uint8_t out[AUTH_HASH_LEN]);
/* HKDF-Extract (RFC 5869) with SHA-256. */
void auth_crypto_extract(const uint8_t *salt, size_t salt_len, const uint8_t *ikm, size_t ikm_len,
		  uint8_t out[AUTH_HASH_LEN]);
/* The public key of the secret @secret, any 32 bytes. */
void auth_crypto_public(const uint8_t secret[AUTH_POINT_LEN], uint8_t public[AUTH_POINT_LEN]);
/* The secret that the owner of @secret shares with the owner of @public.  False: @public has a
 * small order (RFC 7748, 6.1), and the secret would be known to everybody. */
bool auth_crypto_shared(const uint8_t secret[AUTH_POINT_LEN], const uint8_t public[AUTH_POINT_LEN],
		 uint8_t shared[AUTH_POINT_LEN]);
/* True if @a and @b are alike; takes as long when they differ in the first byte. */
bool auth_crypto_same(const void *a, const void *b, size_t len);

#endif
