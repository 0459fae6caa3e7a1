/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing. */
#include <config.h>

#include <stdio.h>

#include "clt-names.h"

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
