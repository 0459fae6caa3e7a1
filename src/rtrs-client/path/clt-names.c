/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing. */
#include <config.h>

#include "clt-names.h"

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
