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

/* Ask for all names, one message after the other, into @list.  The caller frees @list with
 * dev_list_fini() in any case, and does not close the session meanwhile.  Blocks, any thread.  0;
 * -EOPNOTSUPP: the server, a kernel or an older rtrs-server, has no list; -EBADMSG: the answer is
 * invalid; -ENOMEM; or an error as of dev_open_req.status. */
int dev_list(struct client *clt, struct dev_list *list);
/* Free the names. */
void dev_list_fini(struct dev_list *list);

#endif
