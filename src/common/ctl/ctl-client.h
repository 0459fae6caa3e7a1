/* SPDX-License-Identifier: BSD-3-Clause */
/* A client of a control socket.  Thread of the loop. */
#ifndef CTL_CLIENT_H
#define CTL_CLIENT_H

#include "ctl.h"
#include "list.h"

enum ctl_client_state {
	CTL_CLIENT_READING,		/* for a line */
	CTL_CLIENT_BUSY,		/* the program has the command */
	CTL_CLIENT_WRITING,		/* the answer; then reads the next command */
	CTL_CLIENT_LAST,		/* the answer; then is cut off */
	CTL_CLIENT_CUT,			/* the loop is letting go of its descriptor */
	CTL_CLIENT_CUT_BUSY,		/* cut off, and the program has the command */
};

struct ctl_client {
	struct list link;		/* in ctl->clients */
	enum ctl_client_state state;
	struct loop *loop;
	struct loop_watch watch;
	struct loop_task task;		/* goes on with an answer */
	struct loop_timer timer;
	ctl_serve_fn *serve;
	void *arg;
	void (*gone)(struct ctl_client *client);
	char *out;			/* the answer, [outlen], @sent bytes have left */
	size_t outlen, sent;
	size_t inlen;
	char in[CTL_LINE_MAX];
};

/* Make a client of the descriptor @fd, which the client then owns, on @loop.  At last @gone(client)
 * runs from a pass of the loop: take the client off its list and free it.  Returns 0 or -errno;
 * after an error @fd is the caller's. */
int ctl_client_create(struct loop *loop, int fd, ctl_serve_fn *serve, void *arg,
		      void (*gone)(struct ctl_client *client), struct ctl_client **out);
/* Cut @client off.  Idempotent. */
void ctl_client_cut(struct ctl_client *client);
/* Begin to send the answer to @client's command. */
void ctl_client_answer(struct ctl_client *client, json_t *answer, enum ctl_client_state next);

#endif
