/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests for an owner that waits.  Owns the request alone, on the caller's stack.  Blocks in
 * clt-wait.h alone. */
#include <stddef.h>

#include "dev-call.h"
#include "dev-req.h"

static void call_wait(struct dev_req *q)
{
	struct clt_op *op = &q->io.clt;

	if (q->stage == DEV_REQ_ENTERS)
		clt_wait_event(&q->waiter);
	else
		clt_wait_more(&op->waiter, op->inflight ? op->con : NULL);
}

static int call_run(struct dev_req *q)
{
	while (!dev_req_step(q))
		call_wait(q);
	return dev_req_status(q);
}

int dev_call_read(struct dev_handle *h, void *buf, uint32_t len, uint64_t off)
{
	struct dev_req q;

	q.fn = NULL;
	dev_req_read(&q, h, buf, len, off);
	return call_run(&q);
}

int dev_call_write(struct dev_handle *h, const void *buf, uint32_t len, uint64_t off, bool fua)
{
	struct dev_req q;

	q.fn = NULL;
	dev_req_write(&q, h, buf, len, off, fua);
	return call_run(&q);
}

int dev_call_flush(struct dev_handle *h)
{
	struct dev_req q;

	q.fn = NULL;
	dev_req_flush(&q, h);
	return call_run(&q);
}

int dev_call_discard(struct dev_handle *h, uint32_t len, uint64_t off, bool fua)
{
	struct dev_req q;

	q.fn = NULL;
	dev_req_discard(&q, h, len, off, fua);
	return call_run(&q);
}

int dev_call_zero(struct dev_handle *h, uint32_t len, uint64_t off, bool may_unmap, bool fua)
{
	struct dev_req q;

	q.fn = NULL;
	dev_req_zero(&q, h, len, off, may_unmap, fua);
	return call_run(&q);
}
