/* SPDX-License-Identifier: BSD-3-Clause */
/* Disks of the kernel's ublk_drv: libublk serves them on the session's loops, one queue on each.
 *
 * The happy path: ublk_start() finds the disk of this NAME and export that a dead process has left,
 * and takes it over, or makes a new one; ublk_stop() leaves it to the next process, or frees what
 * served a disk that was removed.  A mark, which the kernel keeps with the disk, says whose it is:
 * no other program's disk is taken, and a lost /run loses none.
 *
 * Possible failures: the process ends at any moment, and the kernel keeps all requests.  A disk
 * that loses a queue, and one that another program removes, end the process (ublk_news()). */
#include <config.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach.h"
#include "log.h"
#include "number.h"
#include "ublk-dev.h"
#include "util.h"

/* The largest request, in bytes, is that of the server, but not outside of these: a request has its
 * memory all the time. */
#define IO_LEAST (64u << 10)
#define IO_MOST (512u << 10)
#define SERVED 1			/* via_ublk.lost: no status */

struct via_ublk {
	struct ublk_dev *disk;
	atomic_int lost;		/* SERVED, or the status of the end: ublk_lost() */
	struct attach *a;
};

static uint32_t io_bytes(const struct attach *a)
{
	uint32_t server = atomic_load(&a->start->run.clt.sess.io.max_io_size);

	return (uint32_t)align_down(MIN(MAX(server, IO_LEAST), IO_MOST), 4096);
}

static void ublk_lost(void *arg, int status)
{
	struct via_ublk *v = arg;

	atomic_store(&v->lost, status);
	attach_wake(v->a);
}

static struct ublk_dev_conf conf_of(struct via_ublk *v)
{
	const struct attach *a = v->a;
	const struct clt_run *run = &a->start->run;

	return (struct ublk_dev_conf){
		.loops = run->loops, .nloops = run->nloops, .dev = a->dev,
		.lost = ublk_lost, .arg = v,
		.mark = attach_state_mark(&a->state),
		.queues = run->nloops, .depth = a->options->depth, .io_bytes = io_bytes(a),
	};
}

/* Not by its number: the kernel knows that of a removed disk while our process has it. */
static int find(struct attach_state *s, char why[UBLK_WHY])
{
	uint64_t mark = attach_state_mark(s), old = attach_state_mark_0(s), has = mark;
	int id = ublk_disk_find(&has, ATTACH_MARK_NAME, why);
	bool is_other = false;

	if (id == -ENODEV)
		id = ublk_disk_find(&old, UINT64_MAX, why);
	else if (id >= 0 && *s->export_name && has != mark)
		is_other = true;
	if (id < 0)
		return id == -ENOENT ? -ENODEV : id;	/* no driver */
	snprintf(s->disk, sizeof(s->disk), "ublkb%d", id);
	return is_other ? driver_other(s, why, UBLK_WHY) : id;
}

static int ublk_find(struct attach_state *s)
{
	char why[UBLK_WHY];

	return find(s, why);
}

static int ublk_remove(const struct attach_state *s, char *err, size_t len)
{
	struct attach_state now = *s;
	char why[UBLK_WHY];
	int id = find(&now, why), r;

	r = id < 0 ? id : ublk_disk_remove(id, why);
	return r < 0 && r != -ENODEV ? fmt_error(r, err, len, "%s", why) : 0;
}

/* Returns the number of the disk; -ENODEV: there is none; or -errno with @why. */
static int take(struct via_ublk *v, char why[UBLK_WHY])
{
	struct ublk_dev_conf conf = conf_of(v);
	int id = find(&v->a->state, why), r;

	if (id < 0)
		return id;
	v->a->found = true;
	r = ublk_dev_take(&v->disk, &conf, id, why);
	if (r == 0)
		log_info(NULL, "takes over /dev/ublkb%d", id);
	return r < 0 ? r : id;
}

static int make(struct via_ublk *v, char why[UBLK_WHY])
{
	struct ublk_dev_conf conf = conf_of(v);
	int r = ublk_dev_make(&v->disk, &conf, why);

	return r < 0 ? r : ublk_dev_id(v->disk);
}

static int ublk_start(struct attach *a, char *err, size_t len)
{
	struct via_ublk *v = calloc(1, sizeof(*v));
	char why[UBLK_WHY];
	int id;

	if (!v)
		return fmt_error(-ENOMEM, err, len, "no memory");
	v->a = a;
	atomic_store(&v->lost, SERVED);
	id = take(v, why);
	if (id == -ENODEV)
		id = make(v, why);
	if (id < 0) {
		free(v);
		return fmt_error(id, err, len, "%s", why);
	}
	a->own = v;
	a->size.told = dev_size(a->dev);
	a->state.index = id;
	snprintf(a->state.disk, sizeof(a->state.disk), "ublkb%d", id);
	return 0;
}

static int ublk_news(struct attach *a)
{
	struct via_ublk *v = a->own;
	int lost = atomic_load(&v->lost);

	if (lost == SERVED)
		return 0;
	return lost == 0 ? -ENODEV : lost;
}

static int ublk_resize(struct attach *a, char *err, size_t len)
{
	struct via_ublk *v = a->own;
	char why[UBLK_WHY];
	int r = ublk_dev_resize(v->disk, why);

	return r < 0 ? fmt_error(r, err, len, "%s", why) : 0;
}

static void ublk_leave(struct attach *a)
{
	struct via_ublk *v = a->own;

	ublk_dev_leave_begin(v->disk);
}

static void ublk_stop(struct attach *a)
{
	struct via_ublk *v = a->own;

	ublk_dev_leave(v->disk);
	free(v);
	a->own = NULL;
}

static int ublk_probe(char *why, size_t len)
{
	char reason[UBLK_WHY];
	int r;

	attach_helper_module("ublk_drv");
	r = ublk_disk_probe(reason);
	return r < 0 ? fmt_error(r, why, len, "%s", reason) : 0;
}

const struct attach_driver attach_via_ublk = {
	.name = "ublk",
	.has_queues = true,
	.find = ublk_find,
	.remove = ublk_remove,
	.probe = ublk_probe,
	.start = ublk_start,
	.news = ublk_news,
	.resize = ublk_resize,
	.leave = ublk_leave,
	.stop = ublk_stop,
};
