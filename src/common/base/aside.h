/* SPDX-License-Identifier: BSD-3-Clause */
/* A call on a thread of its own, without signals, whose caller may leave before the end: for calls
 * that nobody can end, as of a library that waits for a cluster, or of a file system whose server
 * is away.  What the call works with belongs to the call alone.  Any thread that may block.  Short:
 * four calls. */
#ifndef BASE_ASIDE_H
#define BASE_ASIDE_H

#include <stdbool.h>
#include <stdint.h>

struct aside;

/* Asked some ten times a second whether the caller, who has waited for @ms, waits on: 0; or the
 * -errno with which the caller leaves. */
typedef int aside_patience_fn(void *arg, uint64_t ms);

/* Begin @fn(@arg), which is *@out then.  0; or -errno without a thread: nothing has run.
 * aside_wait() follows. */
int aside_begin(struct aside **out, void (*fn)(void *arg), void (*left)(void *arg), void *arg);
/* Wait for the end of @call, which is freed.  0; or what @patience(@patience_arg) said: then @fn
 * goes on, @left(@arg) follows on its thread, and @arg is theirs. */
int aside_wait(struct aside *call, aside_patience_fn *patience, void *patience_arg);
/* True while a call that its caller has left goes on.  Any thread. */
bool aside_left(void);
/* Run @fn(@arg) with all signals blocked on this thread, for those who have got no other one. */
void aside_here(void (*fn)(void *arg), void *arg);

#endif
