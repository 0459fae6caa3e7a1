/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a device in the kernel, by the process that serves it or by any other one.  Main
 * thread; blocks. */
#ifndef ATTACH_REMOVE_H
#define ATTACH_REMOVE_H

#include "attach-state.h"

/* Have the kernel end the device of @s.  What waits for the device fails; the caller has flushed
 * it, or does not care.  0, also if the device has gone already; or -errno with @err. */
int attach_remove(const struct attach_state *s, char *err, size_t len);
/* Remove what is left of a device that has gone: its link in /dev/rtrs, its session, and its
 * state. */
void attach_forget(const struct attach_state *s);

#endif
