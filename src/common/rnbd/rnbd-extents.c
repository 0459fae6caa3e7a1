/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers to RNBD_OP_EXTENTS, both directions.  Owns nothing; runs on the caller's thread. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "rnbd-extents.h"
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
