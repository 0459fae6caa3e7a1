/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the model and the operations in progress.  One thread.  Memory of an operation ends with its
 * _end function. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "history.h"
#include "wire-int.h"
#include "list.h"
#include "sim-test.h"
#include "util.h"

#define SECTOR 512u
#define SET_MAX 64
#define STAMP 0x5349u

/* A write's number; those of zeroes are told apart so that a sector of zeroes can be matched. */
#define ZERO 0x80000000u
#define INITIAL ZERO			/* what a new disk is full of */

struct set {
	unsigned n;
	bool any;			/* more than fit: everything is legal */
	uint32_t v[SET_MAX];
};

struct sector {
	struct set possible;		/* one of these is there */
	struct set since_safe;		/* answered or begun after @safe, in order */
	struct set undead;		/* failed, and nothing was answered since */
	uint32_t safe;			/* survives a loss of power, if nothing later does */
	uint32_t acked;			/* last answered write; 0: none since the power was cut */
	uint32_t maybe_safe;		/* answered before the end of what may have been a FLUSH */
	uint32_t lost;			/* answered before that and safe by nothing known; or 0 */
	unsigned untold;		/* users (bits) that have to be told of @lost */
	uint32_t doubted;		/* answered after a loss of power that may have parts of it;
					 * or 0 */
	unsigned late;			/* users (bits) that came after the end of @doubted */
	uint32_t writing;		/* in progress, or 0 */
};

struct history {
	unsigned nsectors;
	uint32_t last;
	struct sector *sectors;
	struct list reads;
	struct list unflushed;		/* writes, of history_needs_flush() */
	unsigned cuts;			/* of power */
	bool may_lose;			/* some sector may have .lost */
	unsigned told[HISTORY_USERS];	/* FLUSHes that failed */
	bool may_tell[HISTORY_USERS];	/* a FLUSH may fail for a loss of power */
	unsigned alarms;		/* all_may_tell(), ever */
	unsigned tellings;		/* of all users */
};

struct history_op {
	struct list link;
	struct history *h;
	unsigned sector, n;
	uint32_t version;
	unsigned user;
	unsigned cuts, alarms, told, tellings;	/* when it began */
	struct set *legal;		/* READ: per sector, of any moment of it */
	uint32_t *acked;		/* with a FLUSH: per sector of the disk, when it began */
	bool lossy;			/* FLUSH: it began after a loss that was not told */
	bool queued;			/* FLUSH: history_queued() */
};

struct stamp {
	le32 magic, version, sector;
	uint8_t fill[SECTOR - 12];
};

/* ---- sets ---- */

static bool set_has(const struct set *s, uint32_t v)
{
	for (unsigned i = 0; i < s->n; i++) {
		if (s->v[i] == v)
			return true;
	}
	return false;
}

static void set_add(struct set *s, uint32_t v)
{
	if (set_has(s, v))
		return;
	if (s->n < SET_MAX)
		s->v[s->n++] = v;
	else
		s->any = true;
}

static void set_add_all(struct set *s, const struct set *from)
{
	for (unsigned i = 0; i < from->n; i++)
		set_add(s, from->v[i]);
}

/* Drop all up to and including @v. */
static void set_drop_through(struct set *s, uint32_t v)
{
	unsigned i = 0;

	while (i < s->n && s->v[i] != v)
		i++;
	if (i == s->n)
		return;
	s->n -= i + 1;
	memmove(s->v, s->v + i + 1, s->n * sizeof(s->v[0]));
}

/* Keep @v, what is newer, and what may still come. */
static void set_settle(struct set *s, uint32_t v, const struct set *undead)
{
	struct set all = *s;

	*s = *undead;
	for (unsigned i = 0; i < all.n; i++) {
		if ((all.v[i] & ~ZERO) >= (v & ~ZERO))
			set_add(s, all.v[i]);
	}
}

/* ---- content ---- */

static void fill_sector(uint8_t *buf, uint32_t version, unsigned sector)
{
	struct stamp st = {
		.magic = le32_put(STAMP), .version = le32_put(version), .sector = le32_put(sector),
	};

	memset(st.fill, (int)(version * 37 + sector), sizeof(st.fill));
	memcpy(buf, &st, SECTOR);
}

static bool is_zero(const uint8_t *buf)
{
	return !buf[0] && !memcmp(buf, buf + 1, SECTOR - 1);
}

/* NULL if @buf is what one of @legal wrote, else what is wrong. */
static const char *match(const struct set *legal, const uint8_t *buf, unsigned sector)
{
	static char why[200];
	uint8_t whole[SECTOR];
	struct stamp st;
	int n;

	if (legal->any)
		return NULL;
	memcpy(&st, buf, SECTOR);
	for (unsigned i = 0; i < legal->n; i++) {
		if ((legal->v[i] & ZERO) ? is_zero(buf) : le32_get(st.version) == legal->v[i]) {
			if (legal->v[i] & ZERO)
				return NULL;
			fill_sector(whole, legal->v[i], sector);
			return memcmp(whole, buf, SECTOR) ? "a sector that is torn or misplaced" :
				NULL;
		}
	}
	n = snprintf(why, sizeof(why), "sector %u holds write %u of sector %u; legal:", sector,
		     le32_get(st.version), le32_get(st.sector));
	for (unsigned i = 0; i < legal->n && n < 180; i++)
		n += snprintf(why + n, sizeof(why) - (size_t)n, " %s%u",
			      (legal->v[i] & ZERO) ? "0:" : "", legal->v[i] & ~ZERO);
	return why;
}

/* ---- life ---- */

struct history *history_create(unsigned nsectors)
{
	struct history *h = calloc(1, sizeof(*h));

	assert(h);
	h->nsectors = nsectors;
	h->sectors = calloc(nsectors, sizeof(*h->sectors));
	assert(h->sectors);
	list_init(&h->reads);
	list_init(&h->unflushed);
	for (unsigned i = 0; i < nsectors; i++) {
		h->sectors[i].safe = INITIAL;
		set_add(&h->sectors[i].possible, INITIAL);
	}
	return h;
}

void history_destroy(struct history *h)
{
	assert(list_empty(&h->reads) && list_empty(&h->unflushed));
	free(h->sectors);
	free(h);
}

static struct history_op *op_new(struct history *h, unsigned sector, unsigned n)
{
	struct history_op *op = calloc(1, sizeof(*op));

	assert(op && sector + n <= h->nsectors);
	list_init(&op->link);
	op->h = h;
	op->cuts = h->cuts;
	op->alarms = h->alarms;
	op->told = h->told[0];
	op->tellings = h->tellings;
	op->sector = sector;
	op->n = n;
	return op;
}

static void op_free(struct history_op *op)
{
	sim_test_judged();
	list_del(&op->link);
	free(op->legal);
	free(op->acked);
	free(op);
}

static void all_may_tell(struct history *h)
{
	h->alarms++;
	for (unsigned i = 0; i < HISTORY_USERS; i++)
		h->may_tell[i] = true;
}

/* ---- writes ---- */

bool history_may_write(const struct history *h, unsigned sector, unsigned n)
{
	for (unsigned i = sector; i < sector + n; i++) {
		if (h->sectors[i].writing || h->sectors[i].since_safe.n > SET_MAX / 3 ||
		    h->sectors[i].undead.n > SET_MAX / 4)
			return false;
	}
	return true;
}

/* Reads in progress may see @v in these sectors, too. */
static void tell_reads(struct history *h, unsigned sector, unsigned n, uint32_t v)
{
	struct history_op *r;

	list_for_each(r, &h->reads, link) {
		unsigned end = MIN(sector + n, r->sector + r->n);

		for (unsigned i = MAX(sector, r->sector); i < end; i++)
			set_add(&r->legal[i - r->sector], v);
	}
}

struct history_op *history_write(struct history *h, unsigned sector, unsigned n, bool zero,
				 uint8_t *buf)
{
	struct history_op *op = op_new(h, sector, n);

	op->version = ++h->last | (zero ? ZERO : 0);
	tell_reads(h, sector, n, op->version);
	for (unsigned i = 0; i < n; i++) {
		struct sector *s = &h->sectors[sector + i];

		assert(!s->writing);
		s->writing = op->version;
		set_add(&s->possible, op->version);
		set_add(&s->since_safe, op->version);
		if (!zero)
			fill_sector(buf + i * SECTOR, op->version, sector + i);
	}
	return op;
}

void history_needs_flush(struct history_op *op)
{
	list_add_tail(&op->h->unflushed, &op->link);
}

/* Parts of @op, a write, may have been answered before a loss of power, and be lost. */
static bool lost_in_part(const struct history_op *op)
{
	return !list_empty(&op->link) && op->cuts != op->h->cuts;
}

/* Such a write is under way: its client may find the loss at any time. */
static bool some_lost_in_part(const struct history *h)
{
	const struct history_op *op;

	list_for_each(op, &h->unflushed, link) {
		if (lost_in_part(op))
			return true;
	}
	return false;
}

/* What was answered last there, if it is certain to be there: a FLUSH that fails tells that the
 * rest may be lost. */
static uint32_t doubt_told(const struct sector *s)
{
	for (unsigned i = 0; i < s->possible.n; i++) {
		if ((s->possible.v[i] & ~ZERO) < (s->acked & ~ZERO) &&
		    !set_has(&s->undead, s->possible.v[i]))
			return 0;
	}
	return s->acked;
}

void history_write_end(struct history_op *op, int status, bool fua)
{
	bool doubtful = lost_in_part(op);

	if (doubtful)
		all_may_tell(op->h);
	for (unsigned i = 0; i < op->n; i++) {
		struct sector *s = &op->h->sectors[op->sector + i];

		s->writing = 0;
		if (status) {
			set_add(&s->undead, op->version);
			continue;
		}
		s->acked = op->version;
		s->doubted = doubtful && !fua ? op->version : 0;
		s->late = 0;
		/* The FLUSH of a FUA would have told. */
		if (fua || !doubtful) {
			s->undead = (struct set){ 0 };
			set_settle(&s->possible, op->version, &s->undead);
		}
		/* The FLUSH that told meanwhile may have been behind the end of @op. */
		if (doubtful && op->tellings != op->h->tellings)
			s->acked = doubt_told(s);
		if (fua) {
			s->safe = op->version;
			set_drop_through(&s->since_safe, op->version);
		}
	}
	op_free(op);
}

static void set_drop(struct set *s, uint32_t v)
{
	unsigned n = 0;

	for (unsigned i = 0; i < s->n; i++) {
		if (s->v[i] != v)
			s->v[n++] = s->v[i];
	}
	s->n = n;
}

void history_write_never(struct history_op *op)
{
	struct history_op *r;

	for (unsigned i = 0; i < op->n; i++) {
		unsigned sector = op->sector + i;
		struct sector *s = &op->h->sectors[sector];

		s->writing = 0;
		set_drop(&s->possible, op->version);
		set_drop(&s->since_safe, op->version);
		list_for_each(r, &op->h->reads, link) {
			if (sector >= r->sector && sector < r->sector + r->n)
				set_drop(&r->legal[sector - r->sector], op->version);
		}
	}
	op_free(op);
}

void history_maybe_flushed(struct history *h)
{
	for (unsigned i = 0; i < h->nsectors; i++)
		h->sectors[i].maybe_safe = h->sectors[i].acked;
}

void history_maybe_flushed_by(struct history_op *op)
{
	struct history *h = op->h;

	history_maybe_flushed(h);
	for (unsigned i = 0; i < h->nsectors && op->cuts != h->cuts; i++)
		h->sectors[i].lost = 0;
}

static void remember_acked(struct history_op *op)
{
	struct history *h = op->h;

	op->acked = calloc(h->nsectors, sizeof(*op->acked));
	assert(op->acked);
	for (unsigned i = 0; i < h->nsectors; i++)
		op->acked[i] = h->sectors[i].acked;
}

/* A FLUSH that came not before the begin of @op succeeded. */
static void flushed(struct history_op *op)
{
	struct history *h = op->h;

	for (unsigned i = 0; i < h->nsectors; i++) {
		struct sector *s = &h->sectors[i];

		if ((op->acked[i] & ~ZERO) >= (s->lost & ~ZERO))
			s->lost = 0;
		/* The end of a write may find a loss.  Who comes later is not told. */
		if (op->acked[i] && op->acked[i] == s->doubted && (s->late & 1u << op->user))
			continue;
		if (op->acked[i] && set_has(&s->since_safe, op->acked[i])) {
			s->safe = op->acked[i];
			set_drop_through(&s->since_safe, op->acked[i]);
			set_settle(&s->possible, op->acked[i], &s->undead);
		}
	}
}

void history_will_flush(struct history_op *op)
{
	remember_acked(op);
}

void history_discard_end(struct history_op *op, int status)
{
	if (!status && op->acked) {
		/* What another FLUSH has told as lost since is not safe by this one. */
		if (op->tellings == op->h->tellings)
			flushed(op);
		/* The FLUSH began some time after @op; what was lost since may have been
		 * covered. */
		for (unsigned i = 0; i < op->h->nsectors && op->cuts != op->h->cuts; i++)
			op->h->sectors[i].lost = 0;
	}
	for (unsigned i = 0; i < op->n; i++) {
		struct sector *s = &op->h->sectors[op->sector + i];

		s->writing = 0;
		if (status)
			set_add(&s->undead, op->version);
	}
	op_free(op);
}

/* ---- reads ---- */

struct history_op *history_read(struct history *h, unsigned sector, unsigned n)
{
	struct history_op *op = op_new(h, sector, n);

	op->legal = calloc(n, sizeof(*op->legal));
	assert(op->legal);
	for (unsigned i = 0; i < n; i++)
		op->legal[i] = h->sectors[sector + i].possible;
	list_add_tail(&h->reads, &op->link);
	return op;
}

const char *history_read_end(struct history_op *op, int status, const uint8_t *buf)
{
	const char *why = NULL;

	for (unsigned i = 0; i < op->n && !status && !why; i++)
		why = match(&op->legal[i], buf + i * SECTOR, op->sector + i);
	op_free(op);
	return why;
}

const char *history_extents_end(struct history_op *op, int status, const bool *hole)
{
	static const uint8_t zeroes[SECTOR];
	const char *why = NULL;

	for (unsigned i = 0; i < op->n && !status && !why; i++) {
		if (hole[i])
			why = match(&op->legal[i], zeroes, op->sector + i);
	}
	op_free(op);
	return why;
}

/* ---- flushes, loss of power ---- */

/* Answered writes may be lost, and no FLUSH has told @user. */
static bool something_lost(const struct history *h, unsigned user)
{
	for (unsigned i = 0; h->may_lose && i < h->nsectors; i++) {
		if (h->sectors[i].lost && (h->sectors[i].untold & 1u << user))
			return true;
	}
	return false;
}

void history_by(struct history_op *op, unsigned user)
{
	assert(user < HISTORY_USERS);
	op->user = user;
	op->told = op->h->told[user];
	op->lossy = something_lost(op->h, user);
}

void history_new_user(struct history *h, unsigned user)
{
	h->may_tell[user] = h->cuts;
	for (unsigned i = 0; i < h->nsectors; i++) {
		h->sectors[i].untold &= ~(1u << user);
		h->sectors[i].late |= 1u << user;
	}
}

void history_queued(struct history_op *op)
{
	op->queued = true;
}

struct history_op *history_flush(struct history *h)
{
	struct history_op *op = op_new(h, 0, 0);

	remember_acked(op);
	op->lossy = something_lost(h, 0);
	return op;
}

static void loss_told(struct history *h, unsigned user)
{
	h->told[user]++;
	h->tellings++;
	for (unsigned i = 0; i < h->nsectors; i++) {
		h->sectors[i].acked = doubt_told(&h->sectors[i]);
		h->sectors[i].untold &= ~(1u << user);
	}
}

/* It may have done what it was to do, and so the next one need not tell of a later loss. */
static void maybe_flushed(struct history_op *op)
{
	for (unsigned i = 0; i < op->h->nsectors; i++)
		op->h->sectors[i].maybe_safe = op->acked[i];
}

void history_flush_failed(struct history_op *op)
{
	loss_told(op->h, op->user);
	maybe_flushed(op);
	op_free(op);
}

void history_flush_in_doubt(struct history_op *op)
{
	op->h->tellings++;
	history_maybe_flushed_by(op);
	op_free(op);
}

bool history_may_tell(const struct history_op *op)
{
	return op->h->may_tell[op->user] || op->told != op->h->told[op->user] ||
		some_lost_in_part(op->h);
}

/* Those that run at the same time as one that tells, tell, too.  One that began before the last
 * alarm may have told of an earlier loss: its answer can be older than the alarm, and its thread
 * late to hear of it. */
bool history_tells(struct history_op *op)
{
	bool may = history_may_tell(op);

	op->h->may_tell[op->user] = op->alarms != op->h->alarms;
	loss_told(op->h, op->user);
	return may;
}

const char *history_flush_end(struct history_op *op, int status)
{
	struct history *h = op->h;
	const char *why = NULL;

	if (status) {
		if (!history_tells(op))
			why = "a FLUSH failed though nothing can have been lost";
		maybe_flushed(op);
		op_free(op);
		return why;
	}
	/* Another one that ran at the same time may have told, or the late answer of an earlier one
	 * may have said that all is well. */
	if (op->lossy && something_lost(h, op->user))
		why = "a FLUSH succeeded after a loss that its user was not told of";
	if (!op->queued || op->tellings == h->tellings)
		flushed(op);
	if (op->queued)
		history_maybe_flushed_by(op);
	op_free(op);
	return why;
}

void history_power_cut(struct history *h)
{
	all_may_tell(h);
	h->cuts++;
	for (unsigned i = 0; i < h->nsectors; i++) {
		struct sector *s = &h->sectors[i];

		if (s->acked && set_has(&s->since_safe, s->acked) && s->acked != s->maybe_safe) {
			s->lost = s->acked;
			h->may_lose = true;
			s->untold = (1u << HISTORY_USERS) - 1;
		}
		if (!s->since_safe.n)
			continue;
		set_add(&s->possible, s->safe);
		set_add_all(&s->possible, &s->since_safe);
		for (unsigned k = 0; k < s->possible.n; k++)
			tell_reads(h, i, 1, s->possible.v[k]);
		s->acked = 0;
	}
}

void history_sync_cut(struct history *h)
{
	all_may_tell(h);
	h->cuts++;
}

const char *history_check(struct history *h, const uint8_t *disk)
{
	for (unsigned i = 0; i < h->nsectors; i++) {
		const char *why = match(&h->sectors[i].possible, disk + i * SECTOR, i);

		if (why)
			return why;
	}
	return NULL;
}
