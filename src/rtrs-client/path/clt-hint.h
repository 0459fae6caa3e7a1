/* SPDX-License-Identifier: BSD-3-Clause */
/* Hints for people when a server cannot be reached, or refuses: in words, by the error and by the
 * address given.  Pure: any thread, no memory. */
#ifndef CLT_HINT_H
#define CLT_HINT_H

#include "fabric.h"

/* The hint for no connection to @dst, because of @err: a static string, " (...)", or "" where the
 * error says all. */
const char *clt_hint_unreachable(const struct fab_addr *dst, int err);
/* The hint for no way from @src, which may be none, because of @err.  As above. */
const char *clt_hint_source(const struct fab_addr *src, int err);
/* The words for @refusal, an enum rtrs_refusal in a reject, for a client that has a key (@has_key):
 * what the server refuses, and what to do.  "": no reason was given, or one of a newer server. */
const char *clt_hint_reason(unsigned refusal, bool has_key);
/* The hint for connection @cid, which the server at @dst, a kernel's or an older one, has refused
 * with @err and without a reason.  As clt_hint_unreachable(). */
const char *clt_hint_refused(const struct fab_addr *dst, unsigned cid, int err);
/* Write to @why the reason for which the server has not let a path into session @name: an enum
 * rtrs_refusal, or a number of a newer server. */
void clt_hint_session(unsigned refusal, const char *name, char *why, size_t len);

#endif
