/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the device, and the requests of its users, which are on the stacks of their threads. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cleanup.h"
#include "list.h"
#include "mock-ublk.h"
#include "ublk-kernel.h"
#include "util.h"

#define QUEUES 8u
#define FAILS 4u
#define SECTOR 512u

enum tag_state { TAG_NONE, TAG_KERNEL, TAG_HANDED, TAG_ABORTED };

/* A request of a user of the disk. */
struct request {
	struct list link;		/* queue.waiting, while no tag has it */
	uint32_t op_flags, sectors;
	uint64_t start;
	void *buf;
	int result;
	bool again, done;
};

struct tag {
	enum tag_state state;
	struct request *request;	/* HANDED */
	void *buf;			/* of the process */
};

struct completion {
	uint16_t tag;
	int result;
};

/* Of a process: dead when the process is killed. */
struct ublk_ring {
	struct queue *q;		/* NULL: dead */
	uint16_t queue, depth;
	int eventfd;
	pthread_t owner;
	bool owned;
	struct ublk_abi_desc *descs;	/* [depth] */
	/* commands that were not sent yet: [depth] */
	struct command {
		uint32_t op;
		uint16_t tag;
		int32_t result;
	} *commands;
	unsigned ncommands;
	uint8_t *mem;			/* [depth][io_bytes] */
	uint32_t io_bytes;
	struct ublk_ring *left;		/* the next one that was left to the end of the process */
	/* completions that the owner has not looked for, and those that it has, in order */
	struct completion *come, *seen;
	unsigned ncome, nseen, taken;
};

struct queue {
	struct ublk_ring *ring;		/* NULL: none, or dead */
	struct tag *tags;		/* [depth] */
	struct list waiting;		/* struct request.link */
	unsigned nfetched;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static struct {
	struct mock_ublk_conf conf;
	bool there, claimed, aborts, deleted;
	struct ublk_abi_dev info;
	struct ublk_abi_params params;
	struct queue queues[QUEUES];
	struct { uint32_t op; int rc; } fails[FAILS];
	unsigned busy, again, ncontrols;
	struct ublk_ring *left;
	/* A device is a pipe's end; the other one tells when the process has closed all of it. */
	int chars[2];
	unsigned long calls, commands;
} k;

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "mock-ublk: %s\n", what);
	abort();
}

static void must(bool holds, const char *what)
{
	if (!holds)
		die(what);
}

/* The error that the test wants of @op; 0: none. */
static int fails(uint32_t op)
{
	for (unsigned i = 0; i < FAILS; i++) {
		int rc = k.fails[i].rc;

		if (rc && k.fails[i].op == op) {
			k.fails[i].rc = 0;
			return rc;
		}
	}
	return 0;
}

/* ---- requests ---- */

static uint64_t bytes_of(const struct request *r)
{
	return (uint64_t)r->sectors * SECTOR;
}

static unsigned op_of(const struct request *r)
{
	return r->op_flags & UBLK_OP_MASK;
}

static void complete(struct ublk_ring *ring, uint16_t tag, int result)
{
	const uint64_t one = 1;

	must(ring->ncome < ring->depth, "more completions than tags");
	ring->come[ring->ncome++] = (struct completion){ tag, result };
	must(write(ring->eventfd, &one, sizeof(one)) == sizeof(one), "eventfd");
}

static void request_end(struct request *r, int result)
{
	r->result = result;
	r->done = true;
	pthread_cond_broadcast(&changed);
}

/* Hand requests out for which there are tags. */
static void queue_run(struct queue *q)
{
	struct ublk_ring *ring = q->ring;

	for (unsigned i = 0; ring && k.info.state == UBLK_ABI_LIVE && i < ring->depth; i++) {
		struct tag *tag = &q->tags[i];
		struct request *r;

		if (tag->state != TAG_KERNEL)
			continue;
		r = list_pop_entry(&q->waiting, struct request, link);
		if (!r)
			return;
		tag->state = TAG_HANDED;
		tag->request = r;
		k.again += r->again;
		ring->descs[i] = (struct ublk_abi_desc){ .op_flags = r->op_flags,
							 .sectors = r->sectors, .start = r->start };
		if (op_of(r) == UBLK_OP_WRITE)
			memcpy(tag->buf, r->buf, bytes_of(r));
		complete(ring, (uint16_t)i, 0);
	}
}

static void answer(struct tag *tag, int32_t result)
{
	struct request *r = tag->request;
	bool data = op_of(r) == UBLK_OP_READ || op_of(r) == UBLK_OP_WRITE;

	must(result < 0 || result == (data ? (int32_t)bytes_of(r) : 0), "an odd result");
	if (op_of(r) == UBLK_OP_READ && result >= 0)
		memcpy(r->buf, tag->buf, bytes_of(r));
	tag->request = NULL;
	request_end(r, MIN(result, 0));
}

int mock_ublk_io(unsigned queue, uint32_t op_flags, uint64_t start, uint32_t sectors, void *buf)
{
	struct request r = { .op_flags = op_flags, .start = start, .sectors = sectors, .buf = buf };

	LOCK_SCOPE(&lock);
	if (k.aborts || k.info.state == UBLK_ABI_DEAD)
		return -EIO;
	must(bytes_of(&r) <= k.info.io_bytes || !buf, "larger than the largest request");
	list_add_tail(&k.queues[queue].waiting, &r.link);
	queue_run(&k.queues[queue]);
	while (!r.done)
		pthread_cond_wait(&changed, &lock);
	return r.result;
}

/* ---- commands of a ring ---- */

static void execute(struct ublk_ring *ring, const struct command *c)
{
	struct queue *q = ring->q;
	struct tag *tag;
	int rc = fails(c->op);

	must(c->tag < ring->depth, "no such tag");
	if (!q)
		return;			/* killed: whoever sends is gone */
	tag = &q->tags[c->tag];
	if (rc) {
		complete(ring, c->tag, rc);
		return;
	}
	if (c->op == UBLK_IO_FETCH) {
		must(tag->state == TAG_NONE, "a tag is given twice");
		q->nfetched++;
	} else {
		must(tag->state == TAG_HANDED, "an answer without a request");
		answer(tag, c->result);
	}
	tag->buf = ublk_ring_buf(ring, c->tag);
	tag->state = TAG_KERNEL;
	if (k.aborts) {
		tag->state = TAG_ABORTED;
		complete(ring, c->tag, UBLK_IO_ABORTED);
	}
	queue_run(q);
	pthread_cond_broadcast(&changed);
}

int ublk_ring_submit(struct ublk_ring *r)
{
	uint64_t count;

	LOCK_SCOPE(&lock);
	if (!r->owned) {
		r->owner = pthread_self();
		r->owned = true;
	}
	must(pthread_equal(r->owner, pthread_self()), "a queue has two threads");
	k.calls += r->ncommands > 0;
	k.commands += r->ncommands;
	for (unsigned i = 0; i < r->ncommands; i++)
		execute(r, &r->commands[i]);
	r->ncommands = 0;
	r->nseen -= r->taken;
	memmove(r->seen, r->seen + r->taken, r->nseen * sizeof(*r->seen));
	r->taken = 0;
	must(r->nseen + r->ncome <= r->depth, "more completions than tags");
	memcpy(r->seen + r->nseen, r->come, r->ncome * sizeof(*r->come));
	r->nseen += r->ncome;
	r->ncome = 0;
	(void)!read(r->eventfd, &count, sizeof(count));
	return 0;
}

static void give(struct ublk_ring *r, const struct command *c)
{
	must(r->ncommands < r->depth, "more commands than tags");
	r->commands[r->ncommands++] = *c;
}

void ublk_ring_fetch(struct ublk_ring *r, uint16_t tag)
{
	give(r, &(struct command){ .op = UBLK_IO_FETCH, .tag = tag });
}

void ublk_ring_commit(struct ublk_ring *r, uint16_t tag, int32_t result)
{
	give(r, &(struct command){ .op = UBLK_IO_COMMIT_AND_FETCH, .tag = tag, .result = result });
}

bool ublk_ring_ready(const struct ublk_ring *r)
{
	return r->taken < r->nseen;
}

bool ublk_ring_next(struct ublk_ring *r, uint16_t *tag, int *result)
{
	if (r->taken == r->nseen)
		return false;
	*tag = r->seen[r->taken].tag;
	*result = r->seen[r->taken++].result;
	return true;
}

const struct ublk_abi_desc *ublk_ring_desc(const struct ublk_ring *r, uint16_t tag)
{
	return &r->descs[tag];
}

int ublk_ring_fd(const struct ublk_ring *r)
{
	return r->eventfd;
}

void *ublk_ring_buf(const struct ublk_ring *r, uint16_t tag)
{
	return r->mem + (size_t)tag * r->io_bytes;
}

int ublk_ring_create(struct ublk_ring **out, int fd, uint16_t queue, uint16_t depth,
		     uint32_t io_bytes)
{
	struct ublk_ring *r = calloc(1, sizeof(*r));

	must(r && queue < k.info.queues && depth == k.info.depth, "no such queue");
	r->queue = queue;
	r->depth = depth;
	r->eventfd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	r->io_bytes = io_bytes;
	r->mem = calloc(depth, io_bytes);
	r->descs = calloc(depth, sizeof(*r->descs));
	r->commands = calloc(depth, sizeof(*r->commands));
	r->come = calloc(depth, sizeof(*r->come));
	r->seen = calloc(depth, sizeof(*r->seen));
	must(r->eventfd >= 0 && r->mem && r->descs && r->commands && r->come && r->seen,
	     "no memory");
	LOCK_SCOPE(&lock);
	must(!k.queues[queue].ring, "a queue has two rings");
	r->q = &k.queues[queue];
	r->q->ring = r;
	r->q->nfetched = 0;
	memset(r->q->tags, 0, depth * sizeof(*r->q->tags));
	*out = r;
	return 0;
}

static bool is_served(void)
{
	bool served = false;

	for (unsigned i = 0; i < k.info.queues; i++)
		served |= k.queues[i].ring != NULL;
	return served;
}

/* A device that is to go goes with its last ring. */
static void look_deleted(void)
{
	if (!k.deleted || is_served())
		return;
	for (unsigned i = 0; i < k.info.queues; i++) {
		free(k.queues[i].tags);
		k.queues[i].tags = NULL;
	}
	k.there = false;
}

/* What was handed out is to be done again, in front of what came later. */
static void queue_requeue(struct queue *q)
{
	for (unsigned i = k.info.depth; i--;) {
		struct request *r = q->tags[i].request;

		q->tags[i] = (struct tag){ 0 };
		if (r) {
			r->again = true;
			list_insert_before(q->waiting.next, &r->link);
		}
	}
}

static void ring_die(struct ublk_ring *r)
{
	struct queue *q = r->q;

	if (!q)
		return;
	r->q = NULL;
	q->ring = NULL;
	queue_requeue(q);
	if (!is_served() && k.info.state == UBLK_ABI_LIVE)
		k.info.state = UBLK_ABI_QUIESCED;
	look_deleted();
	pthread_cond_broadcast(&changed);
}

static void ring_free(struct ublk_ring *r)
{
	ring_die(r);
	close(r->eventfd);
	free(r->mem);
	free(r->descs);
	free(r->commands);
	free(r->come);
	free(r->seen);
	free(r);
}

void ublk_ring_destroy(struct ublk_ring *r)
{
	if (!r)
		return;
	LOCK_SCOPE(&lock);
	must(!r->q || k.info.state != UBLK_ABI_LIVE, "the ring of a live disk is closed, and its "
	     "requests are lost");
	ring_free(r);
}

void ublk_ring_leave(struct ublk_ring *r)
{
	LOCK_SCOPE(&lock);
	r->left = k.left;
	k.left = r;
}

/* ---- commands of the control ---- */

struct ublk_ctl {
	int dummy;
};

static int dev_there(uint32_t op, uint32_t id)
{
	int rc = fails(op);

	return rc ? rc : k.there && !k.deleted && id == MOCK_UBLK_ID ? 0 : -ENODEV;
}

int ublk_ctl_open(struct ublk_ctl **out, uint64_t *features, char *why, size_t len)
{
	int rc;

	LOCK_SCOPE(&lock);
	rc = fails(UBLK_CTL_GET_FEATURES);
	if (rc) {
		snprintf(why, len, "no driver");
		return rc;
	}
	*features = k.conf.features;
	*out = calloc(1, sizeof(**out));
	must(*out, "no memory");
	k.ncontrols++;
	return 0;
}

void ublk_ctl_close(struct ublk_ctl *ctl)
{
	LOCK_SCOPE(&lock);
	k.ncontrols -= ctl != NULL;
	free(ctl);
}

int ublk_ctl_add(struct ublk_ctl *ctl, struct ublk_abi_dev *dev)
{
	int rc;

	LOCK_SCOPE(&lock);
	rc = fails(UBLK_CTL_ADD_DEV);
	if (rc)
		return rc;
	if (k.there)
		return -EEXIST;
	must(dev->depth && dev->depth <= UBLK_TAGS && dev->queues && dev->io_bytes % 4096 == 0,
	     "ADD_DEV: bad limits");
	must((dev->flags & (UBLK_ABI_RECOVERY | UBLK_ABI_REISSUE)) ==
	     (UBLK_ABI_RECOVERY | UBLK_ABI_REISSUE), "ADD_DEV: without recovery");
	must(dev->id == UINT32_MAX, "ADD_DEV: a number");
	dev->queues = (uint16_t)MIN(MIN((unsigned)dev->queues, k.conf.cpus), QUEUES);
	dev->id = MOCK_UBLK_ID;
	dev->state = UBLK_ABI_DEAD;
	k.info = *dev;
	k.there = true;
	k.claimed = k.aborts = k.deleted = false;
	for (unsigned i = 0; i < dev->queues; i++) {
		k.queues[i] = (struct queue){ .tags = calloc(dev->depth, sizeof(struct tag)) };
		must(k.queues[i].tags, "no memory");
		list_init(&k.queues[i].waiting);
	}
	return 0;
}

int ublk_ctl_get(struct ublk_ctl *ctl, uint32_t id, struct ublk_abi_dev *dev)
{
	LOCK_SCOPE(&lock);
	*dev = k.info;
	return dev_there(UBLK_CTL_GET_DEV_INFO, id);
}

int ublk_ctl_del(struct ublk_ctl *ctl, uint32_t id)
{
	int rc;

	LOCK_SCOPE(&lock);
	rc = dev_there(UBLK_CTL_DEL_DEV_ASYNC, id);
	if (rc)
		return rc;
	must(k.info.state == UBLK_ABI_DEAD, "DEL_DEV: there is a disk still");
	k.deleted = true;
	look_deleted();
	return 0;
}

int ublk_ctl_set_params(struct ublk_ctl *ctl, uint32_t id, struct ublk_abi_params *params)
{
	const struct ublk_abi_basic *b = &params->basic;
	int rc;

	LOCK_SCOPE(&lock);
	rc = dev_there(UBLK_CTL_SET_PARAMS, id);
	if (rc)
		return rc;
	must(params->types & UBLK_PARAM_BASIC, "SET_PARAMS: no disk");
	must(b->logical_shift >= 9 && b->logical_shift <= 12 &&
	     b->physical_shift >= b->logical_shift, "SET_PARAMS: blocks");
	must(b->max_sectors && b->max_sectors * SECTOR <= k.info.io_bytes,
	     "SET_PARAMS: max_sectors");
	must(!(params->types & UBLK_PARAM_DISCARD) ||
	     (params->discard.granularity && params->discard.max_segments == 1),
	     "SET_PARAMS: discards");
	k.params = *params;
	return 0;
}

int ublk_ctl_get_params(struct ublk_ctl *ctl, uint32_t id, struct ublk_abi_params *params)
{
	LOCK_SCOPE(&lock);
	*params = k.params;
	return dev_there(UBLK_CTL_GET_PARAMS, id);
}

static void all_fetched(const char *what)
{
	for (unsigned i = 0; i < k.info.queues; i++)
		must(k.queues[i].ring && k.queues[i].nfetched == k.info.depth, what);
}

static void go_live(void)
{
	k.info.state = UBLK_ABI_LIVE;
	k.info.pid = getpid();
	for (unsigned i = 0; i < k.info.queues; i++)
		queue_run(&k.queues[i]);
}

int ublk_ctl_start(struct ublk_ctl *ctl, uint32_t id)
{
	int rc;

	LOCK_SCOPE(&lock);
	rc = dev_there(UBLK_CTL_START_DEV, id);
	if (rc)
		return rc;
	all_fetched("START_DEV would wait forever");
	must(k.info.state == UBLK_ABI_DEAD, "START_DEV: there is a disk");
	go_live();
	return 0;
}

static bool nothing_handed(void)
{
	for (unsigned i = 0; i < k.info.queues; i++) {
		for (unsigned t = 0; k.queues[i].ring && t < k.info.depth; t++) {
			if (k.queues[i].tags[t].state == TAG_HANDED)
				return false;
		}
	}
	return true;
}

static void queue_stop(struct queue *q)
{
	struct request *r;

	while ((r = list_pop_entry(&q->waiting, struct request, link)))
		request_end(r, -EIO);
	for (unsigned t = 0; q->ring && t < k.info.depth; t++) {
		if (q->tags[t].state == TAG_KERNEL) {
			q->tags[t].state = TAG_ABORTED;
			complete(q->ring, (uint16_t)t, UBLK_IO_ABORTED);
		}
	}
}

int ublk_ctl_stop(struct ublk_ctl *ctl, uint32_t id)
{
	int rc;

	LOCK_SCOPE(&lock);
	rc = dev_there(UBLK_CTL_STOP_DEV, id);
	if (rc)
		return rc;
	k.aborts = true;
	k.info.state = UBLK_ABI_DEAD;
	while (!nothing_handed())
		pthread_cond_wait(&changed, &lock);
	for (unsigned i = 0; i < k.info.queues; i++)
		queue_stop(&k.queues[i]);
	return 0;
}

int ublk_ctl_recover(struct ublk_ctl *ctl, uint32_t id)
{
	int rc;

	LOCK_SCOPE(&lock);
	rc = dev_there(UBLK_CTL_START_RECOVERY, id);
	if (rc)
		return rc;
	if (k.busy) {
		k.busy--;
		return -EBUSY;
	}
	if (k.info.state != UBLK_ABI_QUIESCED)
		return -EBUSY;
	k.claimed = true;
	return 0;
}

int ublk_ctl_recovered(struct ublk_ctl *ctl, uint32_t id)
{
	int rc;

	LOCK_SCOPE(&lock);
	rc = dev_there(UBLK_CTL_END_RECOVERY, id);
	if (rc)
		return rc;
	all_fetched("END_USER_RECOVERY would wait forever");
	must(k.claimed && k.info.state == UBLK_ABI_QUIESCED, "END_USER_RECOVERY before its START");
	k.claimed = false;
	go_live();
	return 0;
}

int ublk_ctl_resize(struct ublk_ctl *ctl, uint32_t id, uint64_t sectors)
{
	int rc;

	LOCK_SCOPE(&lock);
	rc = dev_there(UBLK_CTL_UPDATE_SIZE, id);
	if (rc)
		return rc;
	must(k.conf.features & UBLK_ABI_RESIZE, "UPDATE_SIZE is not known here");
	k.params.basic.sectors = sectors;
	return 0;
}

int ublk_ctl_open_char(uint32_t id)
{
	return id == MOCK_UBLK_ID ? fcntl(k.chars[1], F_DUPFD_CLOEXEC, 0) : -ENOENT;
}

int ublk_ctl_next(uint32_t *id)
{
	LOCK_SCOPE(&lock);
	if (!k.there || *id > MOCK_UBLK_ID)
		return -ENODEV;
	*id = MOCK_UBLK_ID;
	return 0;
}

/* ---- of the test ---- */

void mock_ublk_start(const struct mock_ublk_conf *conf)
{
	LOCK_SCOPE(&lock);
	memset(&k, 0, sizeof(k));
	k.conf = *conf;
	must(!pipe2(k.chars, O_CLOEXEC), "pipe");
}

void mock_ublk_stop(void)
{
	struct pollfd p;

	LOCK_SCOPE(&lock);
	must(!k.there, "the device is still there");
	must(!k.ncontrols, "a control is still open");
	must(!k.left, "the process has not ended");
	close(k.chars[1]);
	p = (struct pollfd){ .fd = k.chars[0] };
	must(poll(&p, 1, 0) == 1 && p.revents == POLLHUP, "the device is still open");
	close(k.chars[0]);
	for (unsigned i = 0; i < FAILS; i++)
		must(!k.fails[i].rc, "a failure did not come");
}

void mock_ublk_fail(uint32_t op, int rc)
{
	LOCK_SCOPE(&lock);
	for (unsigned i = 0; i < FAILS; i++) {
		if (!k.fails[i].rc) {
			k.fails[i].op = op;
			k.fails[i].rc = rc;
			return;
		}
	}
	die("too many failures");
}

void mock_ublk_busy(unsigned times)
{
	LOCK_SCOPE(&lock);
	k.busy = times;
}

struct ublk_abi_params mock_ublk_params(void)
{
	LOCK_SCOPE(&lock);
	return k.params;
}

void mock_ublk_describe(const struct ublk_abi_params *params)
{
	LOCK_SCOPE(&lock);
	k.params = *params;
}

enum ublk_abi_state mock_ublk_state(void)
{
	LOCK_SCOPE(&lock);
	return k.info.state;
}

void mock_ublk_end_process(void)
{
	struct ublk_ring *r;

	LOCK_SCOPE(&lock);
	while ((r = k.left)) {
		k.left = r->left;
		ring_free(r);
	}
}

void mock_ublk_kill(void)
{
	LOCK_SCOPE(&lock);
	for (unsigned i = 0; i < k.info.queues; i++) {
		if (k.queues[i].ring)
			ring_die(k.queues[i].ring);
	}
}

unsigned mock_ublk_again(void)
{
	LOCK_SCOPE(&lock);
	return k.again;
}

void mock_ublk_calls(unsigned long *calls, unsigned long *commands)
{
	LOCK_SCOPE(&lock);
	*calls = k.calls;
	*commands = k.commands;
}
