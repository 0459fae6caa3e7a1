/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of chunks that no request has used for a minute goes back to the system
 * (doc/decisions.md D6).  The next request for such a chunk finds zeroed pages.
 *
 * Chunks belong to the client, which may use each of them at any time and on any connection.  So
 * the thread that sent the last answer from a chunk gives the pages back, between two polls, if
 *   - the key of the chunk is held (fab_hold_mr()): no peer has written since that answer, and the
 *     thread that reads a write now waits before the first byte is placed;
 *   - the request of the chunk is idle, and this thread owns the request (SRV_REQ_TRIMMED);
 *   - nothing that was posted on the connection waits for its socket: the data of the last answer
 *     has left the chunk.
 * The storage has no request of an idle chunk.  Only chunks with a key of their own that can be
 * held are trimmed (srv_chunk_gives_back()): over TCP and unix sockets, with --invalidate=auto.
 * RDMA devices and fixed buffers of io_uring pin pages, and would go on with the old ones.
 *
 * The chunks of a path are looked at in rounds, on the thread of each connection that has answered.
 * A round is cut into pieces, one for each pass of the thread, so that no request waits long.  Owns
 * nothing: the timer and the place in the round are the connection's, and end with it.  Cannot
 * fail: what is not given back now is looked at in the next round. */
#include "clock.h"
#include "log.h"
#include "srv-req.h"
#include "srv-state.h"
#include "util.h"

#define TRIM_NS (SRV_TRIM_MS * 1000000ull)
#define TRIM_PAUSE_MS 15000u		/* between two rounds, so that many chunks go in one */
#define TRIM_PIECE (2u << 20)		/* bytes of chunks that a pass looks at */
#define TRIM_NEVER UINT64_MAX

/* Give back the memory of @req's chunk, whose key is held, if @con has sent its last answer.
 * Returns when the chunk is due, TRIM_NEVER: not by @con. */
static uint64_t chunk_trim(const struct srv_con *con, struct srv_req *req, uint64_t now_ns)
{
	const struct srv_chunks *c = &con->path->chunks;
	enum srv_req_stage idle = SRV_REQ_IDLE;
	uint64_t due = TRIM_NEVER, used_ns;

	/* ORDER: acquire pairs with the release in req_response() on another thread. */
	if (!atomic_compare_exchange_strong_explicit(&req->stage, &idle, SRV_REQ_TRIMMED,
						     memory_order_acquire, memory_order_relaxed))
		return TRIM_NEVER;
	used_ns = atomic_load_explicit(&req->used_ns, memory_order_relaxed);
	if (req->con == con && used_ns) {
		due = used_ns + TRIM_NS;
		if (due <= now_ns) {
			fab_give_back(srv_chunk(c, req->buf_id), c->geom->chunk_size);
			atomic_store_explicit(&req->used_ns, 0, memory_order_relaxed);
			due = TRIM_NEVER;
		}
	}
	atomic_store_explicit(&req->stage, SRV_REQ_IDLE, memory_order_release);
	return due;
}

/* Look at chunk @buf_id.  Returns as chunk_trim(). */
static uint64_t chunk_look(const struct srv_con *con, uint32_t buf_id, uint64_t now_ns)
{
	struct srv_req *req = srv_req_at(con->path, buf_id);
	struct frwr *key = frwr_at(con->path->chunks.keys, buf_id);
	uint64_t used_ns = atomic_load_explicit(&req->used_ns, memory_order_relaxed), due;

	/* RACE: another thread that answers from the chunk now will look at the chunk itself. */
	if (!used_ns)
		return TRIM_NEVER;
	if (used_ns + TRIM_NS > now_ns)
		return used_ns + TRIM_NS;
	if (frwr_hold(key))
		return now_ns + TRIM_NS;	/* the peer has written, or a request is there */
	due = chunk_trim(con, req, now_ns);
	frwr_release(key);
	return due;
}

void srv_trim_timer(struct loop_timer *timer)
{
	struct srv_con *con = container_of(timer, struct srv_con, trim_timer);
	const struct rtrs_geom *geom = con->path->chunks.geom;
	unsigned piece = MAX(TRIM_PIECE / geom->chunk_size, 1u);
	uint64_t now_ns = clock_now_ns(), now_ms = now_ns / 1000000;

	if (srv_con_dead(con))
		return;
	if (fab_sends_left(con->fab)) {
		loop_timer_set(con->thread->loop, timer, now_ms + TRIM_PAUSE_MS);
		return;
	}
	if (!con->trim_next)
		con->trim_due_ns = TRIM_NEVER;
	for (; piece && con->trim_next < geom->queue_depth; piece--, con->trim_next++)
		con->trim_due_ns = MIN(con->trim_due_ns, chunk_look(con, con->trim_next, now_ns));
	if (con->trim_next < geom->queue_depth) {
		loop_timer_set(con->thread->loop, timer, now_ms);	/* the next pass */
		return;
	}
	con->trim_next = 0;
	if (con->trim_due_ns != TRIM_NEVER)
		loop_timer_set(con->thread->loop, timer,
			       MAX(con->trim_due_ns / 1000000 + 1, now_ms + TRIM_PAUSE_MS));
}
