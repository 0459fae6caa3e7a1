/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks that say what they are: where, by whom and as which of his writes; the rest of a block
 * follows from that, so that any other byte is found.  Pure. */
#ifndef VERIFY_H
#define VERIFY_H

#include <stddef.h>
#include <stdint.h>

#define VERIFY_MIN 512			/* bytes of a block */

/* Who wrote a block, and his how manieth write it was. */
struct verify_id {
	uint64_t writer;
	uint64_t seq;
};

void verify_fill(void *buf, size_t len, uint64_t off, const struct verify_id *id);
/* Is @buf what was written at @off, by whom ever (@id NULL), or as @id?  0, or -EBADMSG with
 * @why. */
int verify_check(const void *buf, size_t len, uint64_t off, const struct verify_id *id, char *why,
		 size_t whylen);

#endif
