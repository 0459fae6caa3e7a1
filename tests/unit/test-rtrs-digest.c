/* SPDX-License-Identifier: BSD-3-Clause */
/* Digests of requests and answers: the number is CRC-32C's, over all that belongs to them. */
#include "unit.h"

#include <endian.h>
#include <string.h>

#include "rtrs-req.h"

static __be32 imm_of(const char *four)
{
	__be32 imm;

	memcpy(&imm, four, sizeof(imm));
	return imm;
}

static void needs_digests(void)
{
	if (!rtrs_digest_works())
		cr_skip_test("this build has no ISA-L");
}

/* The check value of CRC-32C, of "123456789" (RFC 3720 B.4 has others). */
Test(rtrs_digest, check_value)
{
	uint8_t msg[2 + RTRS_DIGEST_LEN] = "56";

	needs_digests();
	cr_assert_eq(rtrs_digest_seal(msg, 2, imm_of("1234"), "789", 3), sizeof(msg));
	cr_assert_arr_eq(msg, "56\x83\x92\x06\xe3", sizeof(msg));
}

/* Each bit counts, of each part; no data is no part. */
Test(rtrs_digest, each_bit)
{
	struct rtrs_digest_pair pair;
	uint8_t msg[32 + RTRS_DIGEST_LEN], data[100];
	__be32 imm = htobe32(0x10000005);

	needs_digests();
	memset(msg, 0x5a, sizeof(msg));
	memset(data, 0xa5, sizeof(data));
	rtrs_digest_seal(msg, 32, imm, data, sizeof(data));
	cr_assert(rtrs_digest_fits(msg, 32, imm, data, sizeof(data), &pair));
	cr_assert_eq(pair.found, pair.expected);
	for (unsigned bit = 0; bit < 32; bit++)
		cr_assert(!rtrs_digest_fits(msg, 32, imm ^ htobe32(1u << bit), data, sizeof(data),
					    &pair));
	for (unsigned bit = 0; bit < 8 * sizeof(msg); bit++) {
		msg[bit / 8] ^= 1u << bit % 8;
		cr_assert(!rtrs_digest_fits(msg, 32, imm, data, sizeof(data), &pair));
		cr_assert_neq(pair.found, pair.expected);
		msg[bit / 8] ^= 1u << bit % 8;
	}
	for (unsigned bit = 0; bit < 8 * sizeof(data); bit++) {
		data[bit / 8] ^= 1u << bit % 8;
		cr_assert(!rtrs_digest_fits(msg, 32, imm, data, sizeof(data), &pair));
		data[bit / 8] ^= 1u << bit % 8;
	}
	cr_assert(!rtrs_digest_fits(msg, 32, imm, data, sizeof(data) - 1, &pair));
	rtrs_digest_seal(msg, 32, imm, NULL, 0);
	cr_assert(rtrs_digest_fits(msg, 32, imm, NULL, 0, &pair));
}
