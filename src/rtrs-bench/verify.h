/* SPDX-License-Identifier: BSD-3-Clause */
/* Small, because it is all of a contract.
 *
 * Blocks that describe themselves: a head with the offset, the writer and the number of the write.
 * The rest of a block follows from the head, so that any wrong byte is found.  Pure. */
#ifndef VERIFY_H
#define VERIFY_H

#include <stddef.h>
#include <stdint.h>

#define VERIFY_MIN 512			/* bytes of a block */

/* The writer of a block, and the number of the write. */
struct verify_id {
	uint64_t writer;
	uint64_t seq;
};

/* Fill @buf, a block of @len bytes for @off, with the data of write @id. */
void verify_fill(void *buf, size_t len, uint64_t off, const struct verify_id *id);
/* Check that @buf is a block of @off, by write @id, or, if @id is NULL, by any write.  0, or
 * -EBADMSG with @why. */
int verify_check(const void *buf, size_t len, uint64_t off, const struct verify_id *id, char *why,
		 size_t whylen);

#endif
