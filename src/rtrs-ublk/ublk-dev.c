/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the command ring, the character device and the queues of a disk, and the handle of the
 * client's device, which all queues share.
 *
 * The happy path of a new disk: ADD_DEV, SET_PARAMS, all queues give their tags to the kernel,
 * START_DEV.  Of one that is taken over: START_USER_RECOVERY, the same of the queues,
 * END_USER_RECOVERY.  The end: the queues give their tags up, by themselves when a process removes
 * the disk (STOP_DEV), and DEL_DEV_ASYNC has its number free when all have let go.
 *
 * Possible failures: each step can fail, and those before are undone.  A disk that was taken over,
 * and one that is live, stay in the kernel for the next process, whatever fails here. */
#define FSM_PREFIX UBLK_DEV_
#include <config.h>

#include <errno.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "clt-export.h"
#include "log.h"
#include "number.h"
#include "ublk-kernel.h"
#include "ublk-dev.h"
#include "ublk-queue.h"
#include "util.h"

/* Until the kernel is done with a process that died. */
#define UBLK_TAKE_MS 5000u
#define UBLK_TAKE_STEP_MS 2

enum ublk_dev_state {
	UBLK_DEV_NONE,			/* nothing in the kernel is ours */
	UBLK_DEV_ADDED,			/* there is no disk yet */
	UBLK_DEV_CLAIMED,		/* the disk was another process's, and waits */
	UBLK_DEV_LIVE,
	UBLK_DEV_LOST,			/* queues have ended without us */
	UBLK_DEV_NSTATES
};

enum ublk_dev_event {
	UBLK_DEV_EV_ADD, UBLK_DEV_EV_CLAIM, UBLK_DEV_EV_START, UBLK_DEV_EV_LOSE, UBLK_DEV_EV_DELETE,
	UBLK_DEV_EV_LEAVE, UBLK_DEV_NEVENTS
};

struct ublk_dev {
	struct ublk_dev_conf conf;
	struct ublk_ctl *ctl;
	uint64_t features;
	struct ublk_abi_dev info;
	uint64_t sectors;		/* that the kernel knows of */
	int fd;				/* the character device, or -1 */
	struct dev_handle h;
	struct ublk_serve {
		struct ublk_queue queue;
		struct ublk_dev *d;
	} *serves;			/* [info.queues] */
	unsigned nserves;		/* that have begun */
	sem_t overs;			/* counts queues that are over */
	atomic_uint state;		/* enum ublk_dev_state */
};

/* ---- states ---- */

static const struct fsm_row dev_rows[] = {
	ROW(IN(NONE), ADD, ADDED, NULL),
	ROW(IN(NONE), CLAIM, CLAIMED, NULL),
	ROW(IN(ADDED) | IN(CLAIMED), START, LIVE, NULL),
	ROW(IN(LIVE), LOSE, LOST, NULL),
	ROW(IN(ADDED), DELETE, NONE, NULL),
	ROW(IN(CLAIMED) | IN(LIVE) | IN(LOST), LEAVE, NONE, NULL),

	/* the queue ends as it is to, or another one was first */
	STAY(ALL & ~IN(LIVE), LOSE),
};

static const char *const dev_states[UBLK_DEV_NSTATES] = {
	"none", "added", "claimed", "live", "lost",
};

static const char *const dev_events[UBLK_DEV_NEVENTS] = {
	"add", "claim", "start", "lose", "delete", "leave",
};

const struct fsm ublk_dev_fsm = FSM("disk", dev_rows, dev_states, dev_events);

/* Returns the state before. */
static unsigned dev_event(struct ublk_dev *d, unsigned event)
{
	unsigned old;

	fsm_step(&ublk_dev_fsm, dev_name(d->conf.dev), &d->state, event, &old);
	return old;
}

/* ---- queues ---- */

static void serve_over(struct ublk_queue *q, int status)
{
	struct ublk_dev *d = container_of(q, struct ublk_serve, queue)->d;
	void (*lost)(void *arg, int status) = d->conf.lost;
	void *arg = d->conf.arg;
	bool was_live = dev_event(d, UBLK_DEV_EV_LOSE) == UBLK_DEV_LIVE;

	/* ORDER: first, because from the count on @d may be freed. */
	if (was_live)
		lost(arg, status);
	sem_post(&d->overs);
}

static void begin_call(struct loop_call *call)
{
	call->rc = ublk_queue_begin(call->arg);
	loop_call_end(call);
}

static void leave_call(struct loop_call *call)
{
	ublk_queue_leave(call->arg);
	loop_call_end(call);
}

static int queues_begin(struct ublk_dev *d, char why[UBLK_WHY])
{
	int r = 0;

	for (; d->nserves < d->info.queues; d->nserves++) {
		struct ublk_serve *s = &d->serves[d->nserves];

		s->d = d;
		s->queue.loop = d->conf.loops[d->nserves % d->conf.nloops];
		s->queue.h = &d->h;
		s->queue.fd = d->fd;
		s->queue.id = (uint16_t)d->nserves;
		s->queue.depth = d->info.depth;
		s->queue.io_bytes = d->info.io_bytes;
		s->queue.over = serve_over;
		r = loop_call(s->queue.loop, begin_call, &s->queue);
		if (r < 0) {
			snprintf(why, UBLK_WHY, "queue %u of %u requests of %u bytes: %s",
				 d->nserves, d->info.depth, d->info.io_bytes, strerror(-r));
			break;
		}
	}
	return r;
}

static void queues_wait(struct ublk_dev *d)
{
	for (; d->nserves; d->nserves--) {
		while (sem_wait(&d->overs))
			;		/* a signal */
	}
}

static void queues_leave(struct ublk_dev *d)
{
	for (unsigned i = 0; i < d->nserves; i++)
		loop_call(d->serves[i].queue.loop, leave_call, &d->serves[i].queue);
}

/* ---- what the disk is ---- */

static uint8_t shift_of(uint64_t bytes)
{
	return (uint8_t)ceil_log2(bytes);
}

static void params_of(const struct ublk_dev *d, struct ublk_abi_params *p)
{
	const struct rnbd_dev_info *info = dev_info(d->conf.dev);
	uint32_t physical = MAX(info->logical_block_size, info->physical_block_size);

	if (!is_pow2(physical))
		physical = info->logical_block_size;
	*p = (struct ublk_abi_params){
		.types = UBLK_PARAM_BASIC,
		.basic = {
			.logical_shift = shift_of(info->logical_block_size),
			.physical_shift = shift_of(physical),
			.io_min_shift = shift_of(physical),
			.io_opt_shift = shift_of(clt_export_block(d->conf.dev)),
			.max_sectors = d->info.io_bytes / RNBD_SECTOR_SIZE,
			.sectors = dev_size(d->conf.dev) / RNBD_SECTOR_SIZE,
		},
	};
	if (dev_mode(d->conf.dev) == RNBD_ACCESS_RO)
		p->basic.attrs |= UBLK_ABI_ATTR_READ_ONLY;
	if (info->rotational)
		p->basic.attrs |= UBLK_ABI_ATTR_ROTATIONAL;
	if (info->writeback)
		p->basic.attrs |= UBLK_ABI_ATTR_WRITE_CACHE;
	if (info->writeback && info->fua)
		p->basic.attrs |= UBLK_ABI_ATTR_FUA;
	if (!dev_can_discard(d->conf.dev) && !dev_can_zero(d->conf.dev))
		return;
	p->types |= UBLK_PARAM_DISCARD;
	p->discard = (struct ublk_abi_discard){
		.alignment = info->discard_alignment,
		/* not 0, without discards, too */
		.granularity = MAX(info->discard_granularity, (uint32_t)info->logical_block_size),
		.max_sectors = info->max_discard_sectors,
		.max_zeroes_sectors = dev_can_zero(d->conf.dev) ? info->max_write_zeroes_sectors :
								  0,
		.max_segments = 1,
	};
}

static int check_export(const struct ublk_dev_conf *conf, char why[UBLK_WHY])
{
	uint32_t block = dev_info(conf->dev)->logical_block_size;

	if (block <= UBLK_BLOCK_MAX)
		return 0;
	return fmt_error(-EINVAL, why, UBLK_WHY, "export '%.64s' has blocks of %u bytes: a disk of "
			 "this kernel has %u at most", dev_name(conf->dev), block, UBLK_BLOCK_MAX);
}

/* Is the export still the disk that @is describes? */
static int check_same(const struct ublk_dev *d, const struct ublk_abi_basic *is,
		      char why[UBLK_WHY])
{
	const char *name = dev_name(d->conf.dev);
	struct ublk_abi_params p;

	params_of(d, &p);
	if (p.basic.sectors < is->sectors)
		snprintf(why, UBLK_WHY, "export '%.64s' has %llu bytes, and the disk %llu: it has "
			 "shrunk, or is another one", name,
			 (unsigned long long)dev_size(d->conf.dev),
			 (unsigned long long)is->sectors * RNBD_SECTOR_SIZE);
	else if (p.basic.logical_shift > is->logical_shift)
		snprintf(why, UBLK_WHY, "export '%.64s' has blocks of %u bytes, and the disk %u",
			 name, 1u << p.basic.logical_shift, 1u << is->logical_shift);
	else if (p.basic.attrs & ~is->attrs & UBLK_ABI_ATTR_WRITE_CACHE)
		snprintf(why, UBLK_WHY, "export '%.64s' has a write cache, and the disk has none",
			 name);
	else if (is->attrs & ~p.basic.attrs & UBLK_ABI_ATTR_FUA)
		snprintf(why, UBLK_WHY, "export '%.64s' has no FUA any more, and the disk has",
			 name);
	else if (p.basic.attrs & ~is->attrs & UBLK_ABI_ATTR_READ_ONLY)
		snprintf(why, UBLK_WHY, "export '%.64s' is read-only, and the disk is not", name);
	else
		return 0;
	return -EMEDIUMTYPE;
}

/* ---- life ---- */

static void dev_free(struct ublk_dev *d)
{
	if (d->fd >= 0)
		close(d->fd);
	dev_handle_fini(&d->h);
	ublk_ctl_close(d->ctl);
	sem_destroy(&d->overs);
	free(d->serves);
	free(d);
}

static int dev_alloc(struct ublk_dev **out, const struct ublk_dev_conf *conf, char why[UBLK_WHY])
{
	struct ublk_dev *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return fmt_error(-ENOMEM, why, UBLK_WHY, "no memory");
	d->conf = *conf;
	d->fd = -1;
	sem_init(&d->overs, 0, 0);
	dev_handle_init(&d->h, conf->dev);
	r = ublk_ctl_open(&d->ctl, &d->features, why, UBLK_WHY);
	if (r == 0)
		r = check_export(conf, why);
	if (r < 0) {
		dev_free(d);
		return r;
	}
	*out = d;
	return 0;
}

/* Open the character device, and give all tags to the kernel. */
static int dev_serve(struct ublk_dev *d, char why[UBLK_WHY])
{
	d->fd = ublk_ctl_open_char(d->info.id);
	if (d->fd < 0)
		return fmt_error(d->fd, why, UBLK_WHY, UBLK_CHAR "%u: %s", d->info.id,
				 strerror(-d->fd));
	d->serves = calloc(d->info.queues, sizeof(*d->serves));
	if (!d->serves)
		return fmt_error(-ENOMEM, why, UBLK_WHY, "no memory for %u queues", d->info.queues);
	return queues_begin(d, why);
}

static int step_failed(const char *step, int r, char why[UBLK_WHY])
{
	return fmt_error(r, why, UBLK_WHY, "the kernel's ublk_drv: %s: %s", step, strerror(-r));
}

/* ---- a new disk ---- */

static int dev_add(struct ublk_dev *d, char why[UBLK_WHY])
{
	struct ublk_abi_params params;
	int r;

	d->info = (struct ublk_abi_dev){
		.queues = (uint16_t)d->conf.queues,
		.depth = (uint16_t)d->conf.depth,
		.io_bytes = d->conf.io_bytes,
		.id = UINT32_MAX,
		.pid = getpid(),
		.ours = d->conf.mark,
		.flags = UBLK_ABI_RECOVERY | UBLK_ABI_REISSUE,
	};
	r = ublk_ctl_add(d->ctl, &d->info);
	if (r < 0)
		return step_failed("ADD_DEV", r, why);
	dev_event(d, UBLK_DEV_EV_ADD);
	params_of(d, &params);
	d->sectors = params.basic.sectors;
	r = ublk_ctl_set_params(d->ctl, d->info.id, &params);
	return r < 0 ? step_failed("SET_PARAMS", r, why) : 0;
}

static void dev_delete(struct ublk_dev *d)
{
	int r;

	if (d->fd >= 0)
		close(d->fd);
	d->fd = -1;
	r = ublk_ctl_del(d->ctl, d->info.id);
	if (r < 0 && r != -ENODEV)
		log_warn(dev_name(d->conf.dev), "disk %u stays: DEL_DEV: %s", d->info.id,
			 strerror(-r));
	dev_event(d, UBLK_DEV_EV_DELETE);
}

int ublk_dev_make(struct ublk_dev **out, const struct ublk_dev_conf *conf, char why[UBLK_WHY])
{
	struct ublk_dev *d;
	int r = dev_alloc(&d, conf, why);

	if (r < 0)
		return r;
	r = dev_add(d, why);
	if (r == 0)
		r = dev_serve(d, why);
	/* ORDER: START_DEV reads the disk. */
	if (r == 0) {
		r = ublk_ctl_start(d->ctl, d->info.id);
		if (r < 0)
			step_failed("START_DEV", r, why);
	}
	if (r == 0) {
		dev_event(d, UBLK_DEV_EV_START);
		*out = d;
		return 0;
	}
	queues_leave(d);
	queues_wait(d);
	if (d->state == UBLK_DEV_ADDED)
		dev_delete(d);
	dev_free(d);
	return r;
}

/* ---- a disk without a process ---- */

static void nap(void)
{
	const struct timespec ts = { .tv_nsec = UBLK_TAKE_STEP_MS * 1000000 };

	nanosleep(&ts, NULL);
}

/* The kernel may not be done with a process that was killed a moment ago. */
static int dev_recover(struct ublk_dev *d, uint32_t id, char why[UBLK_WHY])
{
	uint64_t until_ms = clock_now_ms() + UBLK_TAKE_MS;
	int r;

	while ((r = ublk_ctl_recover(d->ctl, id)) == -EBUSY && clock_now_ms() < until_ms)
		nap();
	if (r == -EBUSY && ublk_ctl_get(d->ctl, id, &d->info) == 0)
		return fmt_error(r, why, UBLK_WHY, "disk %u is served by process %d", id,
				 d->info.pid);
	if (r == -ENODEV)
		return fmt_error(r, why, UBLK_WHY, "there is no disk %u", id);
	return r < 0 ? step_failed("START_USER_RECOVERY", r, why) : 0;
}

static int dev_claim(struct ublk_dev *d, uint32_t id, char why[UBLK_WHY])
{
	struct ublk_abi_params params;
	int r = dev_recover(d, id, why);

	if (r < 0)
		return r;
	dev_event(d, UBLK_DEV_EV_CLAIM);
	r = ublk_ctl_get(d->ctl, id, &d->info);
	if (r < 0)
		return step_failed("GET_DEV_INFO", r, why);
	r = ublk_ctl_get_params(d->ctl, id, &params);
	if (r < 0)
		return step_failed("GET_PARAMS", r, why);
	d->sectors = params.basic.sectors;
	return check_same(d, &params.basic, why);
}

/* The export may have grown while no process served. */
static void dev_grow(struct ublk_dev *d)
{
	char why[UBLK_WHY];

	if (d->sectors < dev_size(d->conf.dev) / RNBD_SECTOR_SIZE && ublk_dev_resize(d, why) < 0)
		log_warn(dev_name(d->conf.dev), "disk %u stays as large as it was: %s", d->info.id,
			 why);
}

int ublk_dev_take(struct ublk_dev **out, const struct ublk_dev_conf *conf, int id,
		  char why[UBLK_WHY])
{
	struct ublk_dev *d;
	int r = dev_alloc(&d, conf, why);

	if (r < 0)
		return r;
	r = dev_claim(d, (uint32_t)id, why);
	if (r == 0)
		r = dev_serve(d, why);
	if (r == 0) {
		r = ublk_ctl_recovered(d->ctl, d->info.id);
		if (r < 0)
			step_failed("END_USER_RECOVERY", r, why);
	}
	if (r == 0) {
		dev_event(d, UBLK_DEV_EV_START);
		dev_grow(d);
		*out = d;
		return 0;
	}
	queues_leave(d);
	queues_wait(d);
	if (d->state == UBLK_DEV_CLAIMED)
		dev_event(d, UBLK_DEV_EV_LEAVE);
	dev_free(d);
	return r;
}

/* ---- use and end ---- */

int ublk_dev_id(const struct ublk_dev *d)
{
	return (int)d->info.id;
}

int ublk_dev_resize(struct ublk_dev *d, char why[UBLK_WHY])
{
	uint64_t sectors = dev_size(d->conf.dev) / RNBD_SECTOR_SIZE;
	int r;

	if (!(d->features & UBLK_ABI_RESIZE))
		return fmt_error(-EOPNOTSUPP, why, UBLK_WHY, "this kernel's ublk_drv cannot "
				 "resize a disk in use: Linux 6.16 can");
	r = ublk_ctl_resize(d->ctl, d->info.id, sectors);
	if (r < 0)
		return step_failed("UPDATE_SIZE", r, why);
	d->sectors = sectors;
	return 0;
}

void ublk_dev_leave_begin(struct ublk_dev *d)
{
	dev_event(d, UBLK_DEV_EV_LEAVE);
	queues_leave(d);
}

void ublk_dev_leave(struct ublk_dev *d)
{
	if (d->state != UBLK_DEV_NONE)
		ublk_dev_leave_begin(d);
	queues_wait(d);
	dev_free(d);
}
