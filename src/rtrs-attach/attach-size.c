/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks the server for the size of the export, again and again, and brings a larger one to the
 * kernel.  The question is one more open of the device (doc/decisions.md D17), whose answer comes
 * on the service thread; all else is the main thread's. */
#include <config.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#include "attach.h"
#include "clt-export.h"
#include "log.h"

static void size_answered(struct clt_export_req *req)
{
	struct attach_size *s = container_of(req, struct attach_size, req);

	atomic_store(&s->state, ATTACH_SIZE_ANSWERED);
	attach_wake(container_of(s, struct attach, size));
}

void attach_size_look(struct attach *a)
{
	struct attach_size *s = &a->size;

	if (atomic_load(&s->state) != ATTACH_SIZE_RESTS)
		return;
	s->req = (struct clt_export_req){ .name = a->state.export_name, .done = size_answered };
	atomic_store(&s->state, ATTACH_SIZE_ASKS);
	clt_export_open_start(&s->req, &a->start->run.clt, &a->options->session);
}

/* The answer, which may be another device if another export has the name by now, is only a
 * reference: the size is in the device that is open. */
static void take_answer(struct attach_size *s)
{
	if (atomic_load(&s->state) != ATTACH_SIZE_ANSWERED)
		return;
	if (s->req.status == 0)
		dev_close(s->req.dev);
	atomic_store(&s->state, ATTACH_SIZE_RESTS);
}

void attach_size_take(struct attach *a)
{
	struct attach_size *s = &a->size;
	uint64_t size = dev_size(a->dev);
	char err[256];
	int r;

	take_answer(s);
	if (size <= s->told)
		return;
	r = a->driver->resize(a, err, sizeof(err));
	if (r == -EAGAIN)
		return;
	/* An error is one line, and no line at each look. */
	s->told = size;
	if (r < 0)
		log_warn(NULL, "the export has %llu bytes now: %s", (unsigned long long)size, err);
	else if (r == 0)
		attach_size_helped(a, 0);
}

void attach_size_helped(struct attach *a, int status)
{
	unsigned long long size = a->size.told;

	if (status == 0)
		log_info(NULL, "/dev/%s has %llu bytes now", a->state.disk, size);
	else if (status < 0)
		log_warn(NULL, "the export has %llu bytes now: " ATTACH_RESIZE " was ended by "
			 "signal %d; trying again", size, -status);
	else
		log_warn(NULL, "the export has %llu bytes now: the kernel does not resize /dev/%s: "
			 "%s", size, a->state.disk, strerror(status));
	/* It may have told the kernel before. */
	if (status < 0)
		a->size.told = driver_node_size(a->state.disk);
}

void attach_size_end(struct attach *a)
{
	eventfd_t n;

	while (atomic_load(&a->size.state) == ATTACH_SIZE_ASKS) {
		struct pollfd pfd = { .fd = a->wake_fd, .events = POLLIN };

		if (poll(&pfd, 1, -1) > 0)
			eventfd_read(a->wake_fd, &n);
	}
	take_answer(&a->size);
}
