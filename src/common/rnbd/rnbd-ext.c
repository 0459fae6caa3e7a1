/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers to RNBD_OP_EXTENTS and LIST, both directions.  Owns nothing; runs on the caller's thread;
 * decoders fail by returning -EINVAL. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "rnbd-ext.h"
#include "util.h"

static size_t extent_off(uint32_t i)
{
	return sizeof(struct rnbd_msg_extents) + (size_t)i * sizeof(struct rnbd_msg_extent);
}

void rnbd_extents_begin(struct rnbd_extents_writer *w, void *buf, size_t room)
{
	size_t used = MIN(room, (size_t)RNBD_EXTENTS_ROOM);

	assert(room >= RNBD_EXTENTS_ROOM_MIN);
	memset(buf, 0, room);
	*w = (struct rnbd_extents_writer){
		.buf = buf,
		.max = (uint32_t)((used - sizeof(struct rnbd_msg_extents)) /
				  sizeof(struct rnbd_msg_extent)),
	};
}

static void put_last(struct rnbd_extents_writer *w)
{
	const struct rnbd_msg_extent m = {
		.nsectors = le32_put((uint32_t)(w->last_len >> RNBD_SECTOR_SHIFT)),
		.what = le32_put(w->last_what),
	};

	memcpy(w->buf + extent_off(w->n), &m, sizeof(m));
	w->n++;
	w->last_len = 0;
}

bool rnbd_extents_add(struct rnbd_extents_writer *w, uint64_t len, uint32_t what)
{
	assert(len && len % RNBD_SECTOR_SIZE == 0 &&
	       (w->last_len + len) >> RNBD_SECTOR_SHIFT <= UINT32_MAX);
	if (w->last_len && w->last_what == what) {
		w->last_len += len;
		return true;
	}
	if (w->last_len)
		put_last(w);
	if (w->n == w->max)
		return false;
	w->last_len = len;
	w->last_what = what;
	return true;
}

void rnbd_extents_end(struct rnbd_extents_writer *w)
{
	struct rnbd_msg_extents m = { .hdr.type = le16_put(RNBD_MSG_EXTENTS) };

	if (w->last_len)
		put_last(w);
	m.n = le32_put(w->n);
	memcpy(w->buf, &m, sizeof(m));
}

int rnbd_extents_decode(const void *buf, size_t buf_len, uint64_t len)
{
	const struct rnbd_msg_extents *m = buf;
	uint64_t left = len;
	uint32_t n;

	if (buf_len < RNBD_EXTENTS_ROOM_MIN || le16_get(m->hdr.type) != RNBD_MSG_EXTENTS)
		return -EINVAL;
	n = le32_get(m->n);
	if (!n || n > (buf_len - sizeof(*m)) / sizeof(struct rnbd_msg_extent) || n > INT32_MAX)
		return -EINVAL;
	for (uint32_t i = 0; i < n; i++) {
		struct rnbd_extent e = rnbd_extents_get(buf, i);

		if (!e.len || e.len > left || (e.what & ~(RNBD_EXTENT_HOLE | RNBD_EXTENT_ZERO)))
			return -EINVAL;
		left -= e.len;
	}
	return (int)n;
}

struct rnbd_extent rnbd_extents_get(const void *buf, unsigned i)
{
	struct rnbd_msg_extent m;

	memcpy(&m, (const uint8_t *)buf + extent_off(i), sizeof(m));
	return (struct rnbd_extent){
		.len = (uint64_t)le32_get(m.nsectors) << RNBD_SECTOR_SHIFT,
		.what = le32_get(m.what),
	};
}

/* ---- names ---- */

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
