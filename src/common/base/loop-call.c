/* SPDX-License-Identifier: BSD-3-Clause */
/* A call is on its caller's stack, and is gone as soon as its semaphore is posted. */
#include <config.h>

#include <assert.h>

#include "loop-call.h"

static void call_msg(struct loop_msg *msg)
{
	struct loop_call *call = container_of(msg, struct loop_call, msg);

	call->fn(call);
}

int loop_call(struct loop *loop, void (*fn)(struct loop_call *call), void *arg)
{
	struct loop_call call = { .arg = arg, .fn = fn };

	assert(!loop_running());
	loop_msg_init(&call.msg, call_msg);
	sem_init(&call.ended, 0, 0);
	loop_post(loop, &call.msg);
	while (sem_wait(&call.ended))
		;		/* a signal */
	sem_destroy(&call.ended);
	return call.rc;
}

void loop_call_end(void *call)
{
	sem_post(&((struct loop_call *)call)->ended);
}
