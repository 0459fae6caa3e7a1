/* SPDX-License-Identifier: BSD-3-Clause */
/* The priority of an IO, in the form for the storage (doc/protocol.md 8.4; <linux/ioprio.h>).
 * Pure but for srv_prio_may_realtime().  Any thread; cannot fail. */
#ifndef SRV_PRIO_H
#define SRV_PRIO_H

#include <stdbool.h>
#include <stdint.h>

/* May this process do IO in the class real-time?  The kernel refuses such IO to other processes. */
bool srv_prio_may_realtime(void);

/* Turn @wire, the priority of an IO, into a priority that this kernel takes from this process.
 * Real-time becomes the best of best-effort if @may_realtime is false; an invalid priority becomes
 * 0, the thread's own. */
uint16_t srv_prio(uint16_t wire, bool may_realtime);

/* The priority of an IO: @client, that of its client, but no better than @export, that of the
 * export; both as srv_prio() makes them.  0 and the kernel's default count as none: a kernel's
 * client sends the default with each read, write and discard for which nobody has chosen a
 * priority. */
uint16_t srv_prio_limit(uint16_t client, uint16_t export);

#endif
