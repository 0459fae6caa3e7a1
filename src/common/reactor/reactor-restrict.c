/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing: the list of what the server does with its rings.  An operation that is missing here
 * completes with -EACCES. */
#include <config.h>

#include <liburing.h>

#include "reactor-restrict.h"
#include "util.h"

static const __u8 operations[] = {
	IORING_OP_ASYNC_CANCEL,		/* reactor-watch.c */
	IORING_OP_POLL_ADD,
	IORING_OP_FALLOCATE,		/* storage */
	IORING_OP_FSYNC,
	IORING_OP_READ,
	IORING_OP_READ_FIXED,
	IORING_OP_STATX,
	IORING_OP_URING_CMD,
	IORING_OP_WRITE,
	IORING_OP_WRITE_FIXED,
};

static const __u8 registrations[] = {
	IORING_REGISTER_BUFFERS2,	/* store-uring.c, store-file-sync.c */
	IORING_REGISTER_BUFFERS_UPDATE,
	IORING_REGISTER_FILES2,
	IORING_REGISTER_FILES_UPDATE,
	IORING_REGISTER_IOWQ_MAX_WORKERS,
	IORING_UNREGISTER_FILES,
};

int reactor_restrict(struct io_uring *ring)
{
	struct io_uring_restriction rows[ARRAY_SIZE(operations) + ARRAY_SIZE(registrations) + 1] = {
		{ .opcode = IORING_RESTRICTION_SQE_FLAGS_ALLOWED,
		  .sqe_flags = IOSQE_FIXED_FILE | IOSQE_ASYNC },
	};
	unsigned n = 1;

	for (unsigned i = 0; i < ARRAY_SIZE(operations); i++, n++) {
		rows[n].opcode = IORING_RESTRICTION_SQE_OP;
		rows[n].sqe_op = operations[i];
	}
	for (unsigned i = 0; i < ARRAY_SIZE(registrations); i++, n++) {
		rows[n].opcode = IORING_RESTRICTION_REGISTER_OP;
		rows[n].register_op = registrations[i];
	}
	/* liburing 2.3 declares io_uring_register_restrictions() without exporting the function. */
	return io_uring_register((unsigned)ring->ring_fd, IORING_REGISTER_RESTRICTIONS, rows, n);
}
