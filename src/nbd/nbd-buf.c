/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nbd-buf.h"
#include "util.h"

static bool buf_grow(struct nbd_buf *buf, size_t len)
{
	size_t room = MAX(buf->room, (size_t)512);
	uint8_t *mem;

	while (room < len)
		room *= 2;
	mem = len <= NBD_BUF_MAX ? realloc(buf->mem, room) : NULL;
	if (!mem)
		return false;
	buf->mem = mem;
	buf->room = room;
	return true;
}

void nbd_buf_add(struct nbd_buf *buf, const void *bytes, size_t len)
{
	if (!len || buf->error)
		return;
	if (buf->len + len > buf->room && !buf_grow(buf, buf->len + len)) {
		buf->error = -ENOMEM;
		return;
	}
	memcpy(buf->mem + buf->len, bytes, len);
	buf->len += len;
}

void nbd_buf_fini(struct nbd_buf *buf)
{
	free(buf->mem);
	*buf = (struct nbd_buf){ 0 };
}
