/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the disk and the rings of its processes, dead ones too.  Requests are on the stacks of their
 * fibers. */
#include <assert.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "list.h"
#include "sim-core.h"
#include "sim-fiber.h"
#include "sim-test.h"
#include "sim-ublk.h"
#include "ublk-kernel.h"
#include "util.h"

#define SECTOR 512u

/* A request of a user. */
struct user_io {
	struct list link;		/* sim_ublk.waiting, while no process has it */
	struct ublk_abi_desc desc;
	void *buf;
	int status;
	bool again, done;
};

enum tag_state { TAG_FREE, TAG_KERNEL, TAG_HANDED };

struct tag {
	enum tag_state state;
	struct user_io *io;		/* HANDED */
	void *buf;			/* of the process */
	struct ublk_abi_desc desc;
	bool comes;			/* HANDED, and the process has not looked yet */
};

struct sim_ublk {
	struct list link;		/* disks */
	int number;
	uint16_t depth;
	struct ublk_ring *ring;		/* of the process that serves; NULL: none */
	bool live;
	struct list waiting;
	unsigned again;
};

struct ublk_ring {
	struct sim_ublk *u;		/* NULL: its process was killed */
	bool left;			/* to the end of the process */
	uint16_t depth;
	int fd;
	struct tag *tags;		/* [depth] */
	uint8_t *mem;			/* [depth][io_bytes] */
	uint32_t io_bytes;
	/* commands that were not sent yet, and completions that were not taken: [depth] */
	struct command {
		uint16_t tag;
		bool commit;
		int32_t result;
	} *commands;
	uint16_t *seen;
	unsigned ncommands, nseen, taken;
};

static struct list disks = LIST_INIT(disks);
static int numbers;

/* ---- the disk ---- */

static uint64_t bytes_of(const struct ublk_abi_desc *d)
{
	return (uint64_t)d->sectors * SECTOR;
}

static unsigned op_of(const struct ublk_abi_desc *d)
{
	return d->op_flags & UBLK_OP_MASK;
}

static void hand_out(struct sim_ublk *u)
{
	struct ublk_ring *r = u->ring;

	for (unsigned i = 0; u->live && r && i < r->depth; i++) {
		struct tag *tag = &r->tags[i];
		struct user_io *io;

		if (tag->state != TAG_KERNEL)
			continue;
		io = list_pop_entry(&u->waiting, struct user_io, link);
		if (!io)
			return;
		u->again += io->again;
		*tag = (struct tag){ .state = TAG_HANDED, .io = io, .buf = tag->buf,
				     .desc = io->desc, .comes = true };
		if (op_of(&io->desc) == UBLK_OP_WRITE)
			memcpy(tag->buf, io->buf, bytes_of(&io->desc));
	}
}

static bool io_done(void *io)
{
	return ((const struct user_io *)io)->done;
}

int sim_ublk_io(struct sim_ublk *u, uint32_t op_flags, uint64_t start, uint32_t sectors, void *buf)
{
	struct user_io io = {
		.desc = { .op_flags = op_flags, .start = start, .sectors = sectors }, .buf = buf,
	};

	list_add_tail(&u->waiting, &io.link);
	hand_out(u);
	sim_fiber_wait(io_done, &io);
	return io.status;
}

static void answer(struct tag *tag, int32_t result)
{
	struct user_io *io = tag->io;
	bool data = op_of(&tag->desc) == UBLK_OP_READ || op_of(&tag->desc) == UBLK_OP_WRITE;

	CHECK(result < 0 || result == (data ? (int32_t)bytes_of(&tag->desc) : 0));
	if (op_of(&tag->desc) == UBLK_OP_READ && result >= 0)
		memcpy(io->buf, tag->buf, bytes_of(&tag->desc));
	io->status = MIN(result, 0);
	io->done = true;
	tag->io = NULL;
}

struct sim_ublk *sim_ublk_create(uint16_t depth, int *fd)
{
	struct sim_ublk *u = calloc(1, sizeof(*u));

	assert(u);
	u->depth = depth;
	u->number = *fd = ++numbers;
	list_init(&u->waiting);
	list_add_tail(&disks, &u->link);
	return u;
}

void sim_ublk_destroy(struct sim_ublk *u)
{
	CHECK(!u->ring && list_empty(&u->waiting));
	list_del(&u->link);
	free(u);
}

void sim_ublk_go(struct sim_ublk *u)
{
	for (unsigned i = 0; i < u->depth; i++)
		CHECK(u->ring && u->ring->tags[i].state == TAG_KERNEL);
	u->live = true;
	hand_out(u);
}

static void ring_free(struct ublk_ring *r)
{
	sim_fd_close(r->fd);
	free(r->tags);
	free(r->mem);
	free(r->commands);
	free(r->seen);
	free(r);
}

void sim_ublk_kill(struct sim_ublk *u)
{
	struct ublk_ring *r = u->ring;

	if (!r)
		return;
	u->ring = NULL;
	r->u = NULL;
	u->live = false;
	for (unsigned i = r->depth; i--;) {
		struct user_io *io = r->tags[i].io;

		r->tags[i].io = NULL;
		if (!io)
			continue;
		io->again = true;
		list_insert_before(u->waiting.next, &io->link);
	}
	if (r->left)
		ring_free(r);
}

unsigned sim_ublk_again(const struct sim_ublk *u)
{
	return u->again;
}

/* ---- ublk-kernel.h ---- */

static short ring_ready(void *arg)
{
	const struct ublk_ring *r = arg;

	for (unsigned i = 0; r->u && i < r->depth; i++) {
		if (r->tags[i].comes)
			return POLLIN;
	}
	return 0;
}

int ublk_ring_create(struct ublk_ring **out, int fd, uint16_t queue, uint16_t depth,
		     uint32_t io_bytes)
{
	struct ublk_ring *r = calloc(1, sizeof(*r));
	struct sim_ublk *u;

	assert(r && queue == 0);
	list_for_each(u, &disks, link) {
		if (u->number == fd)
			r->u = u;
	}
	CHECK(r->u && !r->u->ring && r->u->depth == depth);
	r->u->ring = r;
	r->depth = depth;
	r->fd = sim_fd_open(ring_ready, r);
	r->tags = calloc(depth, sizeof(*r->tags));
	r->mem = calloc(depth, io_bytes);
	r->io_bytes = io_bytes;
	r->commands = calloc(depth, sizeof(*r->commands));
	r->seen = calloc(depth, sizeof(*r->seen));
	assert(r->tags && r->mem && r->commands && r->seen);
	*out = r;
	return 0;
}

/* Of a live disk, by a process that goes on: the kernel would lose requests. */
void ublk_ring_destroy(struct ublk_ring *r)
{
	CHECK(!r || !r->u || !r->u->live);
	if (r)
		ring_free(r);
}

void ublk_ring_leave(struct ublk_ring *r)
{
	r->left = r->u;
	if (!r->left)
		ring_free(r);
}

int ublk_ring_fd(const struct ublk_ring *r)
{
	return r->fd;
}

static void give(struct ublk_ring *r, uint16_t tag, bool commit, int32_t result)
{
	CHECK(r->ncommands < r->depth);
	r->commands[r->ncommands++] = (struct command){ tag, commit, result };
}

void ublk_ring_fetch(struct ublk_ring *r, uint16_t tag)
{
	give(r, tag, false, 0);
}

void ublk_ring_commit(struct ublk_ring *r, uint16_t tag, int32_t result)
{
	give(r, tag, true, result);
}

static void execute(struct ublk_ring *r, const struct command *c)
{
	struct tag *tag = &r->tags[c->tag];

	CHECK(tag->state == (c->commit ? TAG_HANDED : TAG_FREE));
	if (c->commit && r->u)
		answer(tag, c->result);
	tag->buf = ublk_ring_buf(r, c->tag);
	tag->state = TAG_KERNEL;
}

int ublk_ring_submit(struct ublk_ring *r)
{
	for (unsigned i = 0; i < r->ncommands; i++)
		execute(r, &r->commands[i]);
	r->ncommands = 0;
	if (r->u)
		hand_out(r->u);
	r->nseen -= r->taken;
	memmove(r->seen, r->seen + r->taken, r->nseen * sizeof(*r->seen));
	r->taken = 0;
	for (uint16_t i = 0; r->u && i < r->depth; i++) {
		if (r->tags[i].comes)
			r->seen[r->nseen++] = i;
		r->tags[i].comes = false;
	}
	return 0;
}

bool ublk_ring_ready(const struct ublk_ring *r)
{
	return r->taken < r->nseen;
}

bool ublk_ring_next(struct ublk_ring *r, uint16_t *tag, int *result)
{
	if (r->taken == r->nseen)
		return false;
	*tag = r->seen[r->taken++];
	*result = 0;
	return true;
}

const struct ublk_abi_desc *ublk_ring_desc(const struct ublk_ring *r, uint16_t tag)
{
	return &r->tags[tag].desc;
}

void *ublk_ring_buf(const struct ublk_ring *r, uint16_t tag)
{
	return r->mem + (size_t)tag * r->io_bytes;
}
