/* SPDX-License-Identifier: BSD-3-Clause */
/* The names of the server's exports, as far as the server tells them (doc/decisions.md D16). */
#ifndef DEV_LIST_H
#define DEV_LIST_H

#include "client.h"

/* The client takes at most this many names; nbdkit gives no more to its own client. */
#define DEV_LIST_MAX 10000u

struct dev_list {
	unsigned n;
	char (*names)[RNBD_NAME_MAX];	/* [n] */
};

/* The names have come.  @status: 0; -EOPNOTSUPP: the server, a kernel or an older one, has no list;
 * -EBADMSG: what it answers is none; -ENOMEM; or as dev_open_req.status.  @list is freed behind the
 * call, unless its names are taken out.  Service thread. */
typedef void dev_list_fn(void *arg, int status, struct dev_list *list);

/* Ask for all names, one message after the other.  Any thread; the session is not closed meanwhile.
 * 0 and @done will be called, or -ENOMEM and it will not. */
int dev_list_start(struct client *clt, dev_list_fn *done, void *arg);
/* The same for a thread that waits, into @list, which dev_list_fini() frees in any case.  Returns
 * the status.  Blocks. */
int dev_list(struct client *clt, struct dev_list *list);
/* Free the names. */
void dev_list_fini(struct dev_list *list);

#endif
