/* SPDX-License-Identifier: BSD-3-Clause */
/* LIST and LIST_RSP, both directions.  Owns nothing; runs on the caller's thread; decoders fail
 * with a negative errno. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "rnbd-list.h"

void rnbd_list_encode(struct rnbd_msg_list *m, uint32_t first)
{
	memset(m, 0, sizeof(*m));
	m->hdr.type = le16_put(RNBD_MSG_LIST);
	m->first = le32_put(first);
}

int rnbd_list_decode(const void *buf, size_t len, uint32_t *first)
{
	const struct rnbd_msg_list *m = buf;

	if (len < sizeof(*m))
		return -EINVAL;
	*first = le32_get(m->first);
	return 0;
}

void rnbd_list_begin(struct rnbd_list_writer *w, void *buf, size_t room)
{
	assert(room >= RNBD_LIST_ROOM_MIN);
	memset(buf, 0, room);
	*w = (struct rnbd_list_writer){
		.buf = buf,
		.room = room,
		.used = sizeof(struct rnbd_msg_list_rsp),
	};
}

bool rnbd_list_add(struct rnbd_list_writer *w, const char *name)
{
	size_t len = strlen(name);

	assert(len && len < RNBD_NAME_MAX);
	if (w->room - w->used < 1 + len)
		return false;
	w->buf[w->used] = (uint8_t)len;
	memcpy(w->buf + w->used + 1, name, len);
	w->used += 1 + len;
	w->n++;
	return true;
}

void rnbd_list_end(struct rnbd_list_writer *w, uint32_t left)
{
	const struct rnbd_msg_list_rsp m = {
		.hdr.type = le16_put(RNBD_MSG_LIST_RSP),
		.n = le32_put(w->n),
		.left = le32_put(left),
	};

	memcpy(w->buf, &m, sizeof(m));
}

int rnbd_list_rsp_decode(const void *buf, size_t len, struct rnbd_list_reader *r)
{
	const struct rnbd_msg_list_rsp *m = buf;

	if (len < sizeof(*m) || le16_get(m->hdr.type) != RNBD_MSG_LIST_RSP)
		return -EINVAL;
	*r = (struct rnbd_list_reader){
		.at = (const uint8_t *)buf + sizeof(*m),
		.end = (const uint8_t *)buf + len,
		.n = le32_get(m->n),
		.left = le32_get(m->left),
	};
	return r->left && !r->n ? -EINVAL : 0;
}

int rnbd_list_rsp_name(struct rnbd_list_reader *r, char name[RNBD_NAME_MAX])
{
	size_t len = r->at < r->end ? *r->at : 0;

	if (!len || len >= RNBD_NAME_MAX || len > (size_t)(r->end - r->at) - 1)
		return -EINVAL;
	if (memchr(r->at + 1, '\0', len))
		return -EINVAL;
	memcpy(name, r->at + 1, len);
	name[len] = '\0';
	r->at += 1 + len;
	return 0;
}
