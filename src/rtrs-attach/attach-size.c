/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks the server for the size of the export, again and again, and brings a larger one to the
 * kernel.  The question is one more open of the device (doc/decisions.md D17), whose answer comes
 * on the service thread; all else is the main thread's. */
#include <config.h>

#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>

#include "attach.h"
#include "clt-export.h"
#include "log.h"
#include "number.h"

static void size_answered(struct clt_export_req *req)
{
	struct attach_size *s = container_of(req, struct attach_size, req);

	atomic_store(&s->state, ATTACH_SIZE_ANSWERED);
	attach_wake(container_of(s, struct attach, size));
}

void attach_size_begin(struct attach *a)
{
	a->size.told = dev_size(a->dev);
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
	char text[SIZE_TEXT_MAX], err[256];

	take_answer(s);
	if (size <= s->told)
		return;
	if (a->driver->resize(a, err, sizeof(err)) < 0)
		log_warn(NULL, "the export has %s now: %s", size_text(size, text), err);
	else
		log_info(NULL, "/dev/%s has %s now", a->state.disk, size_text(size, text));
	/* An error is one line, and no line at each look. */
	s->told = size;
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
