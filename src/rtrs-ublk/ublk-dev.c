/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the command ring, the character device and the queues of a disk, and the handle of the
 * client's device, which all queues share.
 *
 * The happy path of a new disk: ADD_DEV, SET_PARAMS, all queues give their tags to the kernel,
 * START_DEV.  Of one that is taken over: START_USER_RECOVERY, the same of the queues,
 * END_USER_RECOVERY.  The end: the queues give their tags up, by themselves when a process removes
 * the disk (STOP_DEV), and DEL_DEV_ASYNC has its number free when all have let go.
 *
 * Possible failures: each step can fail, and those before are undone.  Only a device that never was
 * a disk is deleted: a disk stays in the kernel for the next process, whatever fails here. */
#include <config.h>

#include <errno.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "log.h"
#include "number.h"
#include "process.h"
#include "ublk-kernel.h"
#include "ublk-dev.h"
#include "ublk-queue.h"

/* Until the kernel is done with a process that died. */
#define UBLK_TAKE_MS 5000u
#define UBLK_TAKE_STEP_MS 2

struct ublk_dev {
	struct ublk_dev_conf conf;
	struct ublk_ctl *ctl;
	uint64_t features;
	struct ublk_abi_dev info;
	bool is_new;			/* the kernel has a device of ours, which is no disk yet */
	uint64_t sectors;		/* of the disk that was taken */
	int fd;				/* the character device, or -1 */
	struct dev_handle h;
	struct ublk_serve {
		struct ublk_queue queue;
		struct ublk_dev *d;
	} *serves;			/* [info.queues] */
	unsigned nserves;		/* that have begun */
	sem_t overs;			/* counts queues that are over */
	atomic_bool live;		/* the end of a queue is news for conf.lost() */
};

/* ---- queues ---- */

static void serve_over(struct ublk_queue *q, int status)
{
	struct ublk_dev *d = container_of(q, struct ublk_serve, queue)->d;
	void (*lost)(void *arg, int status) = d->conf.lost;
	void *arg = d->conf.arg;

	/* ORDER: first, because from the count on @d may be freed. */
	if (atomic_exchange(&d->live, false))
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
		r = ublk_disk_can(conf->dev, why);
	if (r < 0) {
		dev_free(d);
		return r;
	}
	*out = d;
	return 0;
}

static int step_failed(const char *step, int r, char why[UBLK_WHY])
{
	return fmt_error(r, why, UBLK_WHY, "the kernel's ublk_drv: %s: %s", step, strerror(-r));
}

/* Open the character device, give all tags to the kernel, and have the disk begin by @start, named
 * @step. */
static int dev_serve(struct ublk_dev *d, int (*start)(struct ublk_ctl *ctl, uint32_t id),
		     const char *step, char why[UBLK_WHY])
{
	int r;

	d->fd = ublk_ctl_open_char(d->info.id);
	if (d->fd < 0)
		return fmt_error(d->fd, why, UBLK_WHY, UBLK_CHAR "%u: %s", d->info.id,
				 fds_strerror(d->fd));
	d->serves = calloc(d->info.queues, sizeof(*d->serves));
	if (!d->serves)
		return fmt_error(-ENOMEM, why, UBLK_WHY, "no memory for %u queues", d->info.queues);
	r = queues_begin(d, why);
	if (r < 0)
		return r;
	/* ORDER: a queue may end as soon as the disk has begun. */
	atomic_store(&d->live, true);
	r = start(d->ctl, d->info.id);
	return r < 0 ? step_failed(step, r, why) : 0;
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
}

/* The start of @d has come to @r: hand @d to the caller, or undo what was begun.  Returns @r. */
static int dev_started(struct ublk_dev *d, int r, struct ublk_dev **out)
{
	if (r < 0) {
		ublk_dev_leave(d);
		return r;
	}
	d->is_new = false;
	*out = d;
	return 0;
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
	d->is_new = true;
	ublk_disk_describe(d->conf.dev, d->info.io_bytes, &params);
	r = ublk_ctl_set_params(d->ctl, d->info.id, &params);
	return r < 0 ? step_failed("SET_PARAMS", r, why) : 0;
}

int ublk_dev_make(struct ublk_dev **out, const struct ublk_dev_conf *conf, char why[UBLK_WHY])
{
	struct ublk_dev *d;
	int r = dev_alloc(&d, conf, why);

	if (r < 0)
		return r;
	r = dev_add(d, why);
	if (r == 0)
		r = dev_serve(d, ublk_ctl_start, "START_DEV", why);
	return dev_started(d, r, out);
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
	r = ublk_ctl_get(d->ctl, id, &d->info);
	if (r < 0)
		return step_failed("GET_DEV_INFO", r, why);
	r = ublk_ctl_get_params(d->ctl, id, &params);
	if (r < 0)
		return step_failed("GET_PARAMS", r, why);
	d->sectors = params.basic.sectors;
	return ublk_disk_is(d->conf.dev, d->info.io_bytes, &params, why);
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
		r = dev_serve(d, ublk_ctl_recovered, "END_USER_RECOVERY", why);
	if (r == 0)
		dev_grow(d);
	return dev_started(d, r, out);
}

/* ---- use and end ---- */

int ublk_dev_id(const struct ublk_dev *d)
{
	return (int)d->info.id;
}

int ublk_dev_resize(struct ublk_dev *d, char why[UBLK_WHY])
{
	int r;

	if (!(d->features & UBLK_ABI_RESIZE))
		return fmt_error(-EOPNOTSUPP, why, UBLK_WHY, "this kernel's ublk_drv cannot "
				 "resize a disk in use: Linux 6.16 can");
	r = ublk_ctl_resize(d->ctl, d->info.id, dev_size(d->conf.dev) / RNBD_SECTOR_SIZE);
	return r < 0 ? step_failed("UPDATE_SIZE", r, why) : 0;
}

void ublk_dev_leave_begin(struct ublk_dev *d)
{
	atomic_store(&d->live, false);
	for (unsigned i = 0; i < d->nserves; i++)
		loop_call(d->serves[i].queue.loop, leave_call, &d->serves[i].queue);
}

void ublk_dev_leave(struct ublk_dev *d)
{
	ublk_dev_leave_begin(d);
	for (; d->nserves; d->nserves--) {
		while (sem_wait(&d->overs))
			;		/* a signal */
	}
	if (d->is_new)
		dev_delete(d);
	dev_free(d);
}
