/* SPDX-License-Identifier: BSD-3-Clause */
/* Four threads that each own two slots, one that polls, connections that break at any time.  Posts
 * are combined: a thread leaves its entry on a list, and whoever has the send lock posts what is
 * there and tells, so an answer may be polled before its entry was told.  Made to be run under
 * TSan. */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>

#include "../thread/thread.h"
#include "clock.h"
#include "rig.h"

/* Threads that wait for each other yield, and where others work, too, each yield takes as long as
 * the turn of these: minutes for all rounds and duels.  After ENOUGH_MS of either kind the rest is
 * left out, but for the least. */
#define ENOUGH_MS 20000
#define ROUNDS 40
#define PER_ROUND 400
#define LEAST_DUELS 3000u
/* TSan makes each of them take long, and sees a race without meeting it. */
#ifdef __SANITIZE_THREAD__
#define LEAST_ROUNDS ROUNDS
#define DUELS LEAST_DUELS
#else
#define LEAST_ROUNDS 8
#define DUELS 60000u
#endif
#define SLOTS_EACH (RIG_SLOTS / NTHREADS)

enum stage { IDLE, ASKED, ANSWERED };

struct slot {
	struct frwr *w;
	struct frwr_entry entry;
	struct ibv_send_wr req;
	struct fab_cqe cqe;
	struct frwr_handle h;
	struct slot *next;			/* on the list of its connection */
	_Atomic unsigned stage;
	_Atomic unsigned told;			/* entries of it that posted() has run for */
	_Atomic unsigned released;		/* done() calls, one for each unmap */
	unsigned posts, unmaps, c, number;
	bool ask;
	_Atomic bool invalidated;
};

static struct rig r;
static struct slot slots[RIG_SLOTS];
static struct {
	pthread_mutex_t lock;
	_Atomic(struct slot *) list;
} conns[2];
static atomic_bool over;
static atomic_uint working, total;

static void quiet(struct fab_conn *conn, struct fab_cqe *cqe, const struct ibv_wc *wc)
{
}

static void released(void *arg, int rc)
{
	struct slot *s = arg;

	check(rc == 0 || rc == -ENOTCONN);
	atomic_fetch_add(&s->released, 1);
}

/* Each entry is a post of its own here; what matters is who tells it. */
static void flush(unsigned c)
{
	while (atomic_load(&conns[c].list) && !pthread_mutex_trylock(&conns[c].lock)) {
		struct slot *s = atomic_exchange(&conns[c].list, NULL), *next;

		for (; s; s = next) {
			int rc = fab_post_send(&r.c[c]->fab, s->entry.first);

			next = s->next;
			check(rc == 0 || rc == -ENOTCONN);
			s->entry.posted(&s->entry, rc);
			/* From here on it is its owner's. */
			atomic_fetch_add(&s->told, 1);
		}
		pthread_mutex_unlock(&conns[c].lock);
	}
}

static void queue(struct slot *s)
{
	struct slot *old = atomic_load(&conns[s->c].list);

	s->posts++;
	do {
		s->next = old;
	} while (!atomic_compare_exchange_weak(&conns[s->c].list, &old, s));
	flush(s->c);
}

/* Wait for @counter to come to @n, unless the path is over. */
static bool reached(struct slot *s, _Atomic unsigned *counter, unsigned n)
{
	while (atomic_load(counter) != n) {
		if (atomic_load(&over))
			return false;
		flush(s->c);
		sched_yield();
	}
	return true;
}

/* One request of @s.  False: the path is over. */
static bool request(struct slot *s, unsigned k)
{
	unsigned i = s->w->index;
	int rc;

	s->c = (k + i) % 2;
	s->ask = k % 3;
	rc = frwr_map(s->w, r.mr[i], rig_addr(&r, i), RIG_SLOT, FRWR_PEER_WRITES, &s->h);
	if (rc == -ENOTCONN)
		return false;
	check(rc == 0);
	if (s->ask)
		check(frwr_expect_reminv(s->w) == 0);
	s->req = (struct ibv_send_wr){ .wr_id = (uintptr_t)&s->cqe, .send_flags = IBV_SEND_SIGNALED,
				       .opcode = IBV_WR_RDMA_WRITE_WITH_IMM };
	check(frwr_fill_send(&s->entry, &r.c[s->c]->fab, s->w, &s->req, &s->req) == 0);
	atomic_store(&s->stage, ASKED);
	queue(s);
	if (!reached(s, &s->stage, ANSWERED) || !reached(s, &s->told, s->posts))
		return false;
	rc = frwr_answered(s->w, atomic_load(&s->invalidated));
	if (rc == -ENOTCONN)
		return false;
	check(rc == 0);
	rc = frwr_fill_unmap(&s->entry, &r.c[s->c]->fab, s->w, released, s);
	if (rc == -ENOTCONN)
		return false;
	check(rc == (s->ask ? -EALREADY : 0));
	if (rc == 0) {
		s->unmaps++;
		queue(s);
		if (!reached(s, &s->released, s->unmaps) || !reached(s, &s->told, s->posts))
			return false;
	}
	atomic_store(&s->stage, IDLE);
	atomic_fetch_add(&total, 1);
	return true;
}

static void *submitter(void *arg)
{
	unsigned t = (unsigned)*(int *)arg;
	bool going = true;

	for (unsigned k = 0; k < PER_ROUND && going; k++) {
		for (unsigned i = 0; i < SLOTS_EACH && going; i++)
			going = request(&slots[t * SLOTS_EACH + i], k);
	}
	/* What others have left with us. */
	for (unsigned c = 0; c < 2; c++)
		flush(c);
	atomic_fetch_sub(&working, 1);
	return NULL;
}

/* The peer answers as soon as it can write, which may be before the post has returned. */
static void peer(struct slot *s)
{
	struct mock_conn *c = r.c[s->c];
	struct ibv_wc wc;

	if (atomic_load(&s->stage) != ASKED)
		return;
	c = r.c[s->c];
	if (!mock_peer_write(c, s->h.rkey, s->h.addr, s->h.len))
		return;
	if (s->ask) {
		wc = mock_peer_inv(c, s->h.rkey);
		if (wc.status != IBV_WC_SUCCESS)
			return;
		check(frwr_reminv(r.pool, &c->fab, &wc) == s->w);
	}
	atomic_store(&s->invalidated, s->ask);
	atomic_store(&s->stage, ANSWERED);
}

/* @round: when the path is cut. */
static void poll_until_over(unsigned round)
{
	unsigned limit = round % 4 ? round * 37 : UINT32_MAX, loops = 0;

	while (atomic_load(&working)) {
		for (unsigned c = 0; c < 2; c++)
			fab_dispatch(&r.c[c]->fab, 16);
		for (unsigned i = 0; i < RIG_SLOTS; i++)
			peer(&slots[i]);
		if (loops++ == limit) {
			for (unsigned c = 0; c < 2; c++) {
				mock_conn_break(r.c[c], 1);
				mock_dispatch(r.c[c]);
			}
			atomic_store(&over, true);
		}
		sched_yield();
	}
}

static void one_round(unsigned round)
{
	pthread_t threads[NTHREADS];
	int numbers[NTHREADS];

	rig_open(&r, FRWR_MW2);
	atomic_store(&over, false);
	atomic_store(&working, NTHREADS);
	for (unsigned i = 0; i < RIG_SLOTS; i++)
		slots[i] = (struct slot){ .w = rig_at(&r, i), .cqe.done = quiet };
	for (int i = 0; i < NTHREADS; i++) {
		numbers[i] = i;
		check(!pthread_create(&threads[i], NULL, submitter, &numbers[i]));
	}
	poll_until_over(round);
	for (int i = 0; i < NTHREADS; i++)
		check(!pthread_join(threads[i], NULL));
	check(!atomic_load(&conns[0].list) && !atomic_load(&conns[1].list));
	rig_close(&r);
	for (unsigned i = 0; i < RIG_SLOTS; i++) {
		check(atomic_load(&slots[i].released) == slots[i].unmaps);
		check(atomic_load(&slots[i].told) == slots[i].posts);
	}
}

/* ---- an invalidate that meets the end of its connection ---- */

#define NO_DUEL UINT32_MAX

static _Atomic unsigned duel;

/* Ends the connection of each duel at about the time when its window is to be taken away. */
static void *breaker(void *arg)
{
	for (unsigned n = 1;; n++) {
		unsigned now;

		while ((now = atomic_load(&duel)) != n) {
			if (now == NO_DUEL)
				return NULL;
		}
		mock_conn_break(r.c[0], 0);
		mock_dispatch(r.c[0]);
		atomic_store(&duel, 0);
		while (atomic_load(&duel) == 0)
			sched_yield();
	}
}

/* Never "the peer did it": nobody has taken the window away. */
static void unmaps_of_dying_connections(void)
{
	struct frwr_entry e;
	pthread_t other;
	unsigned late = 0, delay = 0, n;
	uint64_t enough = clock_now_ms() + ENOUGH_MS;

	check(!pthread_create(&other, NULL, breaker, NULL));
	for (n = 1; n <= DUELS && (n <= LEAST_DUELS || clock_now_ms() < enough); n++) {
		int rc;

		rig_open(&r, FRWR_MW2);
		rig_valid(&r, 0, 0);
		atomic_store(&duel, n);
		for (volatile unsigned left = delay; left; left--)
			;
		rc = frwr_fill_unmap(&e, &r.c[0]->fab, rig_at(&r, 0), rig_done, &r);
		check(rc == 0 || rc == -ENOTCONN);
		late += rc != 0;
		/* Each comes first as often as the other, which is where they meet. */
		delay = rc == 0 ? delay + 1 + n % 16 : delay > 16 ? delay - 1 - n % 16 : 0;
		while (atomic_load(&duel) == n)
			sched_yield();
		check(frwr_state(rig_at(&r, 0)) == FRWR_DEAD);
		rig_close(&r);
	}
	atomic_store(&duel, NO_DUEL);
	check(!pthread_join(other, NULL));
	printf("%u of %u came too late\n", late, n - 1);
}

int main(void)
{
	uint64_t enough = clock_now_ms() + ENOUGH_MS;
	unsigned round;

	for (unsigned c = 0; c < 2; c++)
		pthread_mutex_init(&conns[c].lock, NULL);
	for (round = 0; round < ROUNDS && (round < LEAST_ROUNDS || clock_now_ms() < enough);
	     round++)
		one_round(round);
	printf("%u requests in %u rounds\n", atomic_load(&total), round);
	unmaps_of_dying_connections();
	return 0;
}
