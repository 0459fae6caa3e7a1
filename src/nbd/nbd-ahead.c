/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the memory for the data of a WRITE that is expected, conn->ahead, and the positions of bytes
 * that came there.  The table says when there are such bytes; positions are read in its states
 * alone, and end with them.  A position out of its bounds is a bug of ours: aborts. */
#define FSM_PREFIX NBD_AHEAD_

#include <assert.h>
#include <string.h>

#include "nbd-priv.h"

#define AHEAD_MAX (256u << 10)		/* bytes, more than a unix socket holds */

/* ---- actions ---- */

static void forget_positions(void *object)
{
	struct nbd_ahead *a = &((struct nbd_conn *)object)->ahead;

	a->piece = NULL;
	a->len = a->pos = a->end = 0;
}

static void give_back(void *object)
{
	struct nbd_conn *conn = object;
	struct nbd_ahead *a = &conn->ahead;

	if (a->piece)
		nbd_req_piece_put(conn, a->piece, a->len);
	forget_positions(conn);
}

static void keep_head(void *object)
{
	struct nbd_ahead *a = &((struct nbd_conn *)object)->ahead;

	a->piece = NULL;
	a->pos = a->len;
}

static void look_at_bounds(void *object)
{
	const struct nbd_ahead *a = &((struct nbd_conn *)object)->ahead;

	assert(a->piece && !a->pos && a->end && a->end <= a->len + sizeof(a->head));
}

/* ---- the table ---- */

static const char *const states[] = { "none", "expects", "holds", "heads" };
static const char *const events[] = { "expect", "came", "given", "given-data", "moved", "drop" };

static const struct fsm_row rows[] = {
	ROW(IN(NONE), EXPECT, EXPECTS, NULL),
	ROW(IN(EXPECTS), CAME, HOLDS, look_at_bounds),
	/* a request has the memory and all bytes that came */
	ROW(IN(EXPECTS) | IN(HOLDS), GIVEN, NONE, forget_positions),
	/* the same, and bytes of the next header came behind the data */
	ROW(IN(HOLDS), GIVEN_DATA, HEADS, keep_head),
	ROW(IN(HOLDS) | IN(HEADS), MOVED, NONE, give_back),
	ROW(ALL, DROP, NONE, give_back),
};

const struct fsm nbd_ahead_fsm = FSM("memory ahead", rows, states, events);

static void ahead_event(struct nbd_conn *conn, enum nbd_ahead_event event)
{
	fsm_run(&nbd_ahead_fsm, NULL, &conn->ahead.state, event, conn);
}

/* ---- calls ---- */

bool nbd_ahead_expect(struct nbd_conn *conn)
{
	struct nbd_ahead *a = &conn->ahead;

	if (a->state == NBD_AHEAD_EXPECTS)
		return true;
	if (!conn->large || conn->large > AHEAD_MAX)
		return false;
	a->piece = nbd_req_piece(conn, conn->large);
	if (!a->piece)
		return false;
	a->len = conn->large;
	ahead_event(conn, NBD_AHEAD_EV_EXPECT);
	return true;
}

void nbd_ahead_came(struct nbd_conn *conn, size_t n)
{
	struct nbd_ahead *a = &conn->ahead;

	if (!n)
		return;
	assert(a->state == NBD_AHEAD_EXPECTS && n <= a->len + sizeof(a->head));
	a->end = (uint32_t)n;
	ahead_event(conn, NBD_AHEAD_EV_CAME);
}

int64_t nbd_ahead_give(struct nbd_conn *conn, struct nbd_request_io *q, uint32_t len)
{
	struct nbd_ahead *a = &conn->ahead;
	uint32_t have = MIN(a->end, len);

	if (!a->piece || a->len != len || a->pos)
		return -1;
	nbd_req_piece_set(q, a->piece, len);
	ahead_event(conn, a->end > len ? NBD_AHEAD_EV_GIVEN_DATA : NBD_AHEAD_EV_GIVEN);
	return have;
}

size_t nbd_ahead_move(struct nbd_conn *conn, const struct iovec *iov, size_t niov)
{
	struct nbd_ahead *a = &conn->ahead;
	size_t sum = 0;

	assert(nbd_ahead_pending(conn));
	for (size_t i = 0, at = 0; i < niov && a->pos < a->end;) {
		bool data = a->pos < a->len;
		size_t came = (data ? MIN(a->end, a->len) : a->end) - a->pos;
		size_t n = MIN(came, iov[i].iov_len - at);

		assert(!data || a->piece);
		memcpy((uint8_t *)iov[i].iov_base + at,
		       data ? a->piece + a->pos : a->head + (a->pos - a->len), n);
		a->pos += (uint32_t)n;
		sum += n;
		at += n;
		if (at == iov[i].iov_len) {
			i++;
			at = 0;
		}
	}
	if (a->pos == a->end)
		ahead_event(conn, NBD_AHEAD_EV_MOVED);
	return sum;
}

void nbd_ahead_rest(struct nbd_conn *conn)
{
	if (conn->ahead.state == NBD_AHEAD_EXPECTS)
		nbd_ahead_drop(conn);
}

void nbd_ahead_drop(struct nbd_conn *conn)
{
	ahead_event(conn, NBD_AHEAD_EV_DROP);
}
