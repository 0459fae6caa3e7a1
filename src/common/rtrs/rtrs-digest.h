/* SPDX-License-Identifier: BSD-3-Clause */
/* Digests of requests and answers: ours, on a path whose ends have agreed on them in SESS_INFO
 * (doc/decisions.md D26; man/rtrs-protocol.pod has the bytes).  A digest stands behind the message
 * of a request or of an answer, little-endian, and covers the immediate, the message and the data.
 * Pure. */
#ifndef RTRS_DIGEST_H
#define RTRS_DIGEST_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rtrs_digest { RTRS_DIGEST_NONE, RTRS_DIGEST_CRC32C, RTRS_DIGESTS };
/* The names for users: "none", "crc32c". */
extern const char *const rtrs_digest_names[RTRS_DIGESTS];

#define RTRS_DIGEST_LEN 4u		/* bytes */

struct rtrs_digest_pair {
	uint32_t found, expected;
};

/* True if this build can make digests.  The functions below need that. */
bool rtrs_digest_works(void);
/* Write the digest behind the @len bytes of @msg, which go with @imm and @data_len bytes of @data.
 * Returns the length of message and digest. */
size_t rtrs_digest_seal(void *msg, size_t len, __be32 imm, const void *data, size_t data_len);
/* True if the digest behind the @len bytes of @msg is the digest of what came: @imm, @msg and
 * @data.  Fills @pair. */
bool rtrs_digest_fits(const void *msg, size_t len, __be32 imm, const void *data, size_t data_len,
		      struct rtrs_digest_pair *pair);

#endif
