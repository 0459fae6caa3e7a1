/* SPDX-License-Identifier: BSD-3-Clause */
/* A buffer that grows up to a limit: output of a handshake.  Pure; one thread. */
#ifndef NBD_BUF_H
#define NBD_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NBD_BUF_MAX (4u << 20)		/* a list of 10000 exports is 2.8 MB */

struct nbd_buf {			/* all 0: empty */
	uint8_t *mem;
	size_t len, room;
	int error;			/* -ENOMEM, and for ever: some bytes did not fit */
};

/* Append @len bytes.  A failure stays in @buf->error. */
void nbd_buf_add(struct nbd_buf *buf, const void *bytes, size_t len);
/* Free the memory; @buf is empty. */
void nbd_buf_fini(struct nbd_buf *buf);

#endif
