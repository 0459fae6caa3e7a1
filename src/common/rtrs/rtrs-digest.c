/* SPDX-License-Identifier: BSD-3-Clause */
/* CRC-32C by ISA-L, which uses the instructions of the CPU.  Owns nothing; runs on the caller's
 * thread; cannot fail. */
#include <config.h>

#include <assert.h>
#include <string.h>
#ifdef HAVE_ISAL
#include <isa-l/crc.h>
#endif

#include "rtrs-digest.h"
#include "wire-int.h"

const char *const rtrs_digest_names[RTRS_DIGESTS] = {
	[RTRS_DIGEST_NONE] = "none", [RTRS_DIGEST_CRC32C] = "crc32c",
};

bool rtrs_digest_works(void)
{
#ifdef HAVE_ISAL
	return true;
#else
	return false;
#endif
}

/* @len is part of a message, so below FAB_MSG_MAX. */
static uint32_t crc_add(uint32_t crc, const void *data, size_t len)
{
#ifdef HAVE_ISAL
	return crc32_iscsi((unsigned char *)data, (int)len, crc);
#else
	assert(!"digests on a path of a build without digests");
	return crc;
#endif
}

static uint32_t crc_of(const void *msg, size_t len, __be32 imm, const void *data, size_t data_len)
{
	uint32_t crc = crc_add(crc_add(UINT32_MAX, &imm, sizeof(imm)), msg, len);

	return ~(data_len ? crc_add(crc, data, data_len) : crc);
}

size_t rtrs_digest_seal(void *msg, size_t len, __be32 imm, const void *data, size_t data_len)
{
	le32 digest = le32_put(crc_of(msg, len, imm, data, data_len));

	_Static_assert(sizeof(digest) == RTRS_DIGEST_LEN, "man/rtrs-protocol.pod");
	memcpy((uint8_t *)msg + len, &digest, sizeof(digest));
	return len + sizeof(digest);
}

bool rtrs_digest_fits(const void *msg, size_t len, __be32 imm, const void *data, size_t data_len,
		      struct rtrs_digest_pair *pair)
{
	le32 digest;

	memcpy(&digest, (const uint8_t *)msg + len, sizeof(digest));
	pair->found = le32_get(digest);
	pair->expected = crc_of(msg, len, imm, data, data_len);
	return pair->found == pair->expected;
}
