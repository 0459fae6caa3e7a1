/* SPDX-License-Identifier: BSD-3-Clause */
/* The priority that an IO asks for, as the storage may be told (doc/protocol.md 8.4;
 * <linux/ioprio.h>).  Pure but for srv_prio_may_realtime().  Any thread; cannot fail. */
#ifndef SRV_PRIO_H
#define SRV_PRIO_H

#include <stdbool.h>
#include <stdint.h>

/* May this process do IO in the class real-time?  Others are refused such IO as a whole. */
bool srv_prio_may_realtime(void);

/* For an IO that carries @wire: a priority that this kernel takes from this process.  Without the
 * right to it real-time becomes the best of best-effort; what is no priority becomes 0, which is
 * the thread's own. */
uint16_t srv_prio(uint16_t wire, bool may_realtime);

#endif
