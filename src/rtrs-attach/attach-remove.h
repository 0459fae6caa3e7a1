/* SPDX-License-Identifier: BSD-3-Clause */
/* A device in the kernel, for the process that serves it and for any other one: which disk it is,
 * and its end.  Main thread; blocks. */
#ifndef ATTACH_REMOVE_H
#define ATTACH_REMOVE_H

#include "attach-state.h"

/* Set s->index and s->disk to the disk that the kernel has for the name and the export of @s, or to
 * none: a state may be older than the disk, and the disk of that name may be another program's by
 * now.  0; -ENODEV: the kernel has none; or -errno, with @s as it was. */
int attach_find_disk(struct attach_state *s);
/* Have the kernel end the device of @s.  What waits for the device fails; the caller has flushed
 * it, or does not care.  0, also if the device has gone already; or -errno with @err. */
int attach_remove(const struct attach_state *s, char *err, size_t len);
/* Remove what is left of a device that has gone: its link in /dev/rtrs, its session, and its
 * state. */
void attach_forget(const struct attach_state *s);

#endif
