/* SPDX-License-Identifier: BSD-3-Clause */
/* The only door between threads of the server.  A message is embedded in its sender's object and
 * belongs to the receiving thread from inbox_post() until its function runs.  Lock-free push; the
 * receiver is woken once per batch.  Messages of one sender arrive in order. */
#ifndef INBOX_H
#define INBOX_H

#include <stdatomic.h>

struct inbox_msg {
	struct inbox_msg *next;
	void (*fn)(struct inbox_msg *msg);
};

struct inbox {
	_Atomic(struct inbox_msg *) head;	/* newest first */
	int eventfd;
};

int inbox_init(struct inbox *in);
void inbox_fini(struct inbox *in);
/* Run @msg->fn on the owner's thread.  Any thread, the owner's too; never runs it inside the call. */
void inbox_post(struct inbox *in, struct inbox_msg *msg);
/* Owner: run all that has arrived; returns how many. */
unsigned inbox_run(struct inbox *in);

#endif
