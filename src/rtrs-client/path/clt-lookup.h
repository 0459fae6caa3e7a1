/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks the resolver for the addresses of a path, on a thread of its own: a name server may be
 * silent for long, and nobody waits for it.  Thread of the loop. */
#ifndef CLT_LOOKUP_H
#define CLT_LOOKUP_H

#include "clt-cause.h"
#include "clt-names.h"
#include "loop.h"

struct clt_lookup;

/* The most threads of forgotten questions. */
#define LOOKUP_LEFT_MAX 16u

/* The answer: 0 with @found, or -errno with @why.  The question is over. */
typedef void clt_lookup_fn(void *arg, int r, const struct clt_found *found, const char *why);

/* Begin to look up the names of @addr; @done(@arg) follows on @loop.  0 with the question in @ret,
 * or -errno: there is no thread, or no memory; -EBUSY: too many threads of forgotten questions wait
 * for the resolver. */
int clt_lookup_begin(struct clt_lookup **ret, struct loop *loop, const struct clt_sess_addr *addr,
		     clt_lookup_fn *done, void *arg);
/* Forget the question @lookup, whose done() does not run any more.  Does not wait. */
void clt_lookup_forget(struct clt_lookup *lookup);

#endif
