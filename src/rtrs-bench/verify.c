/* SPDX-License-Identifier: BSD-3-Clause */
/* The layout of verified blocks: a head, and words of a generator, whose first state follows from
 * the head. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "verify.h"
#include "wire-int.h"

#define MAGIC UINT64_C(0x68636e6562737472)	/* "rtsbench" */

struct head {
	le64 magic, off, writer, seq;
};

static uint64_t first_state(uint64_t off, const struct verify_id *id)
{
	uint64_t state = off;

	state = random_next(&state) ^ id->writer;
	return random_next(&state) ^ id->seq;
}

void verify_fill(void *buf, size_t len, uint64_t off, const struct verify_id *id)
{
	struct head head = { le64_put(MAGIC), le64_put(off), le64_put(id->writer),
			     le64_put(id->seq) };
	uint64_t state = first_state(off, id);

	memcpy(buf, &head, sizeof(head));
	for (size_t at = sizeof(head); at < len; at += sizeof(uint64_t)) {
		le64 word = le64_put(random_next(&state));

		memcpy((char *)buf + at, &word, sizeof(word));
	}
}

int verify_check(const void *buf, size_t len, uint64_t off, const struct verify_id *id, char *why,
		 size_t whylen)
{
	struct verify_id is;
	struct head head;
	uint64_t state;

	memcpy(&head, buf, sizeof(head));
	is = (struct verify_id){ le64_get(head.writer), le64_get(head.seq) };
	if (le64_get(head.magic) != MAGIC) {
		snprintf(why, whylen, "no block that was written with --verify");
		return -EBADMSG;
	}
	if (le64_get(head.off) != off) {
		snprintf(why, whylen, "the block of offset %" PRIu64, le64_get(head.off));
		return -EBADMSG;
	}
	if (id && (id->writer != is.writer || id->seq != is.seq)) {
		snprintf(why, whylen, "write %" PRIu64 " of writer %016" PRIx64
			 " instead of write %" PRIu64
			 " of writer %016" PRIx64, is.seq, is.writer, id->seq, id->writer);
		return -EBADMSG;
	}
	state = first_state(off, &is);
	for (size_t at = sizeof(head); at < len; at += sizeof(uint64_t)) {
		le64 word = le64_put(random_next(&state));

		if (memcmp((const char *)buf + at, &word, sizeof(word))) {
			snprintf(why, whylen, "other bytes from byte %zu of the block on", at);
			return -EBADMSG;
		}
	}
	return 0;
}
