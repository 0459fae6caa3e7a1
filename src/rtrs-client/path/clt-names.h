/* SPDX-License-Identifier: BSD-3-Clause */
/* The addresses of a path whose ends are names.  A round tries each address that the resolver gave:
 * the one that was last up comes first, and those that led to another machine come last
 * (doc/decisions.md D15). */
#ifndef CLT_NAMES_H
#define CLT_NAMES_H

#include "clt-cause.h"
#include "fabric.h"
#include "loop.h"

struct clt_lookup;

#define CLT_NAME_MAX 263		/* bytes of a host and a port as a name */

/* The ends of a path as a user gave them.  An end is an address; or it is a name, with the provider
 * alone in the address.  A name is resolved at each attempt, and so is an address with a scope,
 * whose interface may come and go. */
struct clt_sess_addr {
	struct fab_addr src, dst;	/* src.len 0, without a name: any */
	char src_name[CLT_NAME_MAX + 1], dst_name[CLT_NAME_MAX + 1];	/* "": none */
};

/* Write to @buf "[SRC@]DST" without a transport, as users write @addr, with a port of SRC only if
 * it has one.  Returns @buf. */
const char *clt_sess_addr_text(const struct clt_sess_addr *addr, char *buf, size_t len);

/* The answer of a resolver. */
struct clt_found {
	unsigned nsrc, ndst;
	struct fab_addr src[FAB_ADDRS_MAX], dst[FAB_ADDRS_MAX];
};

struct clt_names {
	struct clt_found found;		/* .dst in the order of this round */
	unsigned next;			/* of found.dst */
	struct fab_addr good;		/* that was up last; .len 0: none */
	unsigned nothers;
	struct fab_addr others[FAB_ADDRS_MAX];	/* that led to another machine */
};

/* Is an end of @addr a name? */
static inline bool clt_sess_addr_is_named(const struct clt_sess_addr *addr)
{
	return *addr->src_name || *addr->dst_name;
}

/* Begin a round with what was @found; NULL: with what was found last. */
void clt_names_begin(struct clt_names *names, const struct clt_found *found);
/* Is an address left in this round? */
static inline bool clt_names_left(const struct clt_names *names)
{
	return names->next < names->found.ndst;
}

/* Take the next address of the round, which is not over: @dst, and @src if sources were found. */
void clt_names_next(struct clt_names *names, struct fab_addr *src, struct fab_addr *dst);
/* End the round: @dst is up, or stands by. */
void clt_names_good(struct clt_names *names, const struct fab_addr *dst);
/* End the round: the next one asks the resolver again. */
static inline void clt_names_end(struct clt_names *names)
{
	names->next = names->found.ndst;
}

/* Note that @dst leads to another machine. */
void clt_names_other(struct clt_names *names, const struct fab_addr *dst);

/* ---- questions to the resolver ----
 * On a thread of its own: a name server may be silent for long, and nobody waits for it.  Thread of
 * the loop. */

/* The most threads of forgotten questions. */
#define LOOKUP_LEFT_MAX 16u

/* The answer: 0 with @found, or -errno with @why.  The question is over. */
typedef void clt_lookup_fn(void *arg, int r, const struct clt_found *found, const char *why);

/* Begin to look up the names of @addr; @done(@arg) follows on @loop.  0 with the question in @ret,
 * or -errno: there is no thread, or no memory; -EBUSY: too many threads of forgotten questions wait
 * for the resolver. */
int clt_names_look_up(struct clt_lookup **ret, struct loop *loop, const struct clt_sess_addr *addr,
		      clt_lookup_fn *done, void *arg);
/* Forget the question @lookup, whose done() does not run any more.  Does not wait. */
void clt_names_forget(struct clt_lookup *lookup);

#endif
