/* SPDX-License-Identifier: BSD-3-Clause */
/* The addresses of a path with a name: the text, the order of a round, questions to the
 * resolver. */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "clt-names.h"
#include "rtrs-proto.h"
#include "signals.h"

const char *clt_sess_addr_text(const struct clt_sess_addr *addr, char *buf, size_t len)
{
	char s[FAB_ADDR_STRLEN] = "", d[FAB_ADDR_STRLEN];
	const char *src = *addr->src_name ? addr->src_name : s;

	if (addr->src.len && fab_addr_port(&addr->src))
		fab_addr_format(&addr->src, s, sizeof(s));
	else if (addr->src.len)
		fab_addr_format_host(&addr->src, s, sizeof(s));
	snprintf(buf, len, "%s%s%s", src, *src ? "@" : "",
		 *addr->dst_name ? addr->dst_name : fab_addr_format(&addr->dst, d, sizeof(d)));
	return buf;
}

/* In the order in which addresses are tried. */
enum rank { RANK_GOOD, RANK_PLAIN, RANK_OTHER };

static enum rank rank_of(const struct clt_names *names, const struct fab_addr *addr)
{
	for (unsigned i = 0; i < names->nothers; i++) {
		if (fab_addr_same(&names->others[i], addr))
			return RANK_OTHER;
	}
	return names->good.len && fab_addr_same(&names->good, addr) ? RANK_GOOD : RANK_PLAIN;
}

void clt_names_begin(struct clt_names *names, const struct clt_found *found)
{
	struct fab_addr *dst = names->found.dst;

	if (found)
		names->found = *found;
	names->next = 0;
	for (unsigned i = 1; i < names->found.ndst; i++) {
		struct fab_addr addr = dst[i];
		enum rank rank = rank_of(names, &addr);
		unsigned at = i;

		for (; at && rank_of(names, &dst[at - 1]) > rank; at--)
			dst[at] = dst[at - 1];
		dst[at] = addr;
	}
}

void clt_names_next(struct clt_names *names, struct fab_addr *src, struct fab_addr *dst)
{
	const struct clt_found *found = &names->found;

	*dst = found->dst[names->next++];
	/* The first of the family of @dst, or the first. */
	if (found->nsrc)
		*src = found->src[0];
	for (unsigned i = found->nsrc; i--;) {
		if (found->src[i].ss.ss_family == dst->ss.ss_family)
			*src = found->src[i];
	}
}

void clt_names_good(struct clt_names *names, const struct fab_addr *dst)
{
	names->next = names->found.ndst;
	names->good = *dst;
	for (unsigned i = 0; i < names->nothers; i++) {
		if (fab_addr_same(&names->others[i], dst))
			names->others[i--] = names->others[--names->nothers];
	}
}

void clt_names_other(struct clt_names *names, const struct fab_addr *dst)
{
	if (names->nothers < FAB_ADDRS_MAX && rank_of(names, dst) != RANK_OTHER)
		names->others[names->nothers++] = *dst;
}

/* ---- questions to the resolver ----
 * Each has a thread, which nobody joins: memory is freed by the last of thread and owner. */

enum lookup_state {
	LOOKUP_ASKS,			/* the thread waits for the resolver */
	LOOKUP_ANSWERED,		/* the thread is done, and the message is posted */
	LOOKUP_FORGOTTEN,		/* the thread frees the question */
};

struct clt_lookup {
	pthread_mutex_t lock;		/* state; innermost */
	enum lookup_state state;
	struct loop *loop;
	struct loop_msg msg;
	struct clt_sess_addr addr;
	clt_lookup_fn *done;
	void *arg;
	/* the thread's until ANSWERED */
	int r;
	struct clt_found found;
	char why[CLT_WHY];
};

/* Threads of forgotten questions. */
static _Atomic(unsigned) left;

static void lookup_free(struct clt_lookup *l)
{
	pthread_mutex_destroy(&l->lock);
	free(l);
}

/* The addresses of the end @addr, perhaps with @name.  Their number, or -errno; a host without an
 * address is -EADDRNOTAVAIL, as a server that is away. */
static int look_up_end(struct clt_lookup *l, const char *name, const struct fab_addr *addr,
		       uint16_t port, struct fab_addr all[FAB_ADDRS_MAX])
{
	int n = addr->len ? 1 : 0;

	all[0] = *addr;
	if (*name)
		n = fab_addr_parse_all(name, addr->provider, port, all, FAB_ADDRS_MAX, l->why,
				       sizeof(l->why));
	return n == -ENOENT ? -EADDRNOTAVAIL : n;
}

static void look_up(struct clt_lookup *l)
{
	int n = look_up_end(l, l->addr.src_name, &l->addr.src, 0, l->found.src);

	l->r = n < 0 ? n : 0;
	l->found.nsrc = n < 0 ? 0 : (unsigned)n;
	if (l->r)
		return;
	n = look_up_end(l, l->addr.dst_name, &l->addr.dst, RTRS_PORT, l->found.dst);
	l->r = n < 0 ? n : 0;
	l->found.ndst = n < 0 ? 0 : (unsigned)n;
}

static void *lookup_main(void *arg)
{
	struct clt_lookup *l = arg;
	bool forgotten;

	look_up(l);
	pthread_mutex_lock(&l->lock);
	forgotten = l->state == LOOKUP_FORGOTTEN;
	if (!forgotten) {
		l->state = LOOKUP_ANSWERED;
		loop_post(l->loop, &l->msg);
	}
	pthread_mutex_unlock(&l->lock);
	if (forgotten) {
		lookup_free(l);
		atomic_fetch_sub(&left, 1);
	}
	return NULL;
}

static void lookup_msg(struct loop_msg *msg)
{
	struct clt_lookup *l = container_of(msg, struct clt_lookup, msg);

	/* RACE: the thread may still hold the lock in which it has posted. */
	pthread_mutex_lock(&l->lock);
	pthread_mutex_unlock(&l->lock);
	l->done(l->arg, l->r, &l->found, l->why);
	lookup_free(l);
}

int clt_names_look_up(struct clt_lookup **ret, struct loop *loop, const struct clt_sess_addr *addr,
		      clt_lookup_fn *done, void *arg)
{
	struct clt_lookup *l;
	pthread_t thread;
	int r;

	if (atomic_load(&left) >= LOOKUP_LEFT_MAX)
		return -EBUSY;
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	pthread_mutex_init(&l->lock, NULL);
	loop_msg_init(&l->msg, lookup_msg);
	l->loop = loop;
	l->addr = *addr;
	l->done = done;
	l->arg = arg;
	r = signals_thread(&thread, lookup_main, l);
	if (r < 0) {
		lookup_free(l);
		return r;
	}
	pthread_setname_np(thread, "rtrs-names");
	pthread_detach(thread);
	*ret = l;
	return 0;
}

void clt_names_forget(struct clt_lookup *l)
{
	bool answered;

	pthread_mutex_lock(&l->lock);
	answered = l->state == LOOKUP_ANSWERED;
	if (!answered) {
		l->state = LOOKUP_FORGOTTEN;
		atomic_fetch_add(&left, 1);
	}
	pthread_mutex_unlock(&l->lock);
	if (!answered)
		return;
	loop_unpost(l->loop, &l->msg);
	lookup_free(l);
}
