/* SPDX-License-Identifier: BSD-3-Clause */
/* Random lives of slots over two connections, a million steps, from a seed: FRWR_SEED, FRWR_STEPS.
 * The mock ends the program at anything that a device or a peer's machine would not survive. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "rig.h"

#define must(cond)                                                                                 \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%s:%d: failed: %s (seed %" PRIu64 ", step %u)\n",         \
				__FILE__, __LINE__, #cond, seed, step);                            \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static uint64_t seed, random_state;
static unsigned step;

static unsigned dice(unsigned n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (unsigned)(random_state >> 11) % n;
}

enum stage { IDLE, MAPPED, SENT, UNMAPPING };

struct slot {
	struct rig *r;
	struct frwr *w;
	struct frwr_entry entry;
	struct ibv_send_wr req;
	struct frwr_handle h;
	enum stage stage;
	unsigned c;
	bool asked;
	unsigned ndone;
	int rc;
};

static struct rig r;
static struct slot slots[RIG_SLOTS];
static struct frwr_sizes sizes;

static void start(void)
{
	enum frwr_mode mode = (enum frwr_mode)dice(FRWR_NMODES);
	struct frwr_load load = { .mode = mode, .queue_depth = RIG_SLOTS };
	struct frwr_caps caps;

	rig_open(&r, mode);
	must(frwr_query(&r.c[0]->fab, r.pd, &caps) == 0);
	must(frwr_sizing(&caps.dev, &load, &sizes) == 0 && sizes.queue_depth == RIG_SLOTS);
	for (unsigned i = 0; i < ARRAY_SIZE(r.c); i++)
		r.c[i]->depth = sizes.max_send_wr;
	for (unsigned i = 0; i < RIG_SLOTS; i++)
		slots[i] = (struct slot){ .r = &r, .w = rig_at(&r, i) };
}

static void done(void *arg, int rc)
{
	struct slot *s = arg;

	s->ndone++;
	s->rc = rc;
	if (rc == 0)
		s->stage = IDLE;
}

static bool reachable(const struct slot *s)
{
	return mock_peer_write(r.c[0], s->h.rkey, s->h.addr, 1) ||
	       mock_peer_write(r.c[1], s->h.rkey, s->h.addr, 1);
}

/* A connection goes, some of what is posted carried out; with it the path. */
static void end(void)
{
	mock_conn_break(r.c[dice(2)], dice(4));
	rig_close(&r);
	for (unsigned i = 0; i < RIG_SLOTS; i++)
		must(slots[i].stage != UNMAPPING ||
		     (slots[i].ndone == 1 && slots[i].rc == -ENOTCONN));
	start();
}

static void slot_map(struct slot *s)
{
	unsigned i = s->w->index;
	uint32_t off = dice(RIG_SLOT), len = 1 + dice(RIG_SLOT - off);

	/* The same each time. */
	if (r.pool->mode == FRWR_SUSPEND) {
		off = i;
		len = RIG_SLOT - i;
	}
	must(frwr_map(s->w, r.mr[i], rig_addr(&r, i) + off, len, FRWR_PEER_WRITES, &s->h) == 0);
	s->stage = MAPPED;
	s->asked = r.pool->mode == FRWR_MW2 && dice(2);
	if (s->asked)
		must(frwr_expect_reminv(s->w) == 0);
}

static void slot_send(struct slot *s)
{
	int rc;

	if (dice(8) == 0) {
		must(frwr_map_end(s->w) == 0 && frwr_state(s->w) == FRWR_FREE);
		s->stage = IDLE;
		return;
	}
	s->c = dice(2);
	s->req = *rig_req(&r, dice(4) == 0);
	must(frwr_fill_send(&s->entry, &r.c[s->c]->fab, s->w, &s->req, &s->req) == 0);
	rc = rig_post(&r, s->c, &s->entry);
	must(rc == 0 && frwr_state(s->w) == FRWR_VALID);
	s->stage = SENT;
}

/* The answer has been polled, and so had been what was sent before. */
static void slot_answered(struct slot *s)
{
	struct ibv_wc wc;
	bool inv;
	int rc;

	r.c[s->c]->hold = false;
	mock_dispatch(r.c[s->c]);
	must(mock_peer_write(r.c[s->c], s->h.rkey, s->h.addr, s->h.len));
	inv = s->asked && dice(4);
	if (inv) {
		wc = mock_peer_inv(r.c[s->c], s->h.rkey);
		must(frwr_reminv(r.pool, &r.c[s->c]->fab, &wc) == s->w);
	} else if (s->asked) {
		must(frwr_fill_unmap(&s->entry, &r.c[s->c]->fab, s->w, done, s) == -EBUSY);
	}
	must(frwr_answered(s->w, inv) == 0);
	s->ndone = 0;
	rc = frwr_fill_unmap(&s->entry, &r.c[s->c]->fab, s->w, done, s);
	must(inv ? rc == -EALREADY : rc == (r.pool->mode >= FRWR_REREG));
	s->stage = IDLE;
	if (rc == 0) {
		s->stage = UNMAPPING;
		r.c[s->c]->hold = dice(4) == 0;
		must(rig_post(&r, s->c, &s->entry) == 0);
		must(s->ndone == 0 && frwr_state(s->w) == FRWR_INVALIDATING);
		must(frwr_fill_unmap(&s->entry, &r.c[s->c]->fab, s->w, done, s) == -EALREADY);
	} else {
		must(frwr_state(s->w) == FRWR_FREE);
		must(r.pool->mode == FRWR_STATIC || !reachable(s));
	}
}

int main(void)
{
	unsigned steps = getenv("FRWR_STEPS") ? (unsigned)atoi(getenv("FRWR_STEPS")) : 1000000;
	unsigned most = 0, lives = 1;

	seed = getenv("FRWR_SEED") ? strtoull(getenv("FRWR_SEED"), NULL, 0) : 1;
	random_state = seed * 0x9e3779b97f4a7c15ull + 1;
	start();
	for (step = 0; step < steps; step++) {
		struct slot *s = &slots[dice(RIG_SLOTS)];

		switch (s->stage) {
		case IDLE:
			slot_map(s);
			break;
		case MAPPED:
			slot_send(s);
			break;
		case SENT:
			slot_answered(s);
			break;
		case UNMAPPING:
			r.c[s->c]->hold = false;
			mock_dispatch(r.c[s->c]);
			must(s->stage == IDLE && s->ndone == 1 && !reachable(s));
			must(frwr_state(s->w) == FRWR_FREE);
			break;
		}
		most = MAX(most, MAX(r.c[0]->most, r.c[1]->most));
		must(most <= 3 * RIG_SLOTS);
		if (dice(2000) == 0) {
			end();
			lives++;
		}
	}
	rig_close(&r);
	printf("%u steps, %u paths, at most %u of %u requests in a queue\n", steps, lives, most,
	       3 * RIG_SLOTS);
	return most > RIG_SLOTS ? 0 : 1;
}
