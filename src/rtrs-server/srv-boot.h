/* SPDX-License-Identifier: BSD-3-Clause */
/* Which boot of this host is running, for RNBD's extension (doc/decisions.md D13).  Apart from
 * srv.c so that the simulation can reboot its hosts. */
#ifndef SRV_BOOT_H
#define SRV_BOOT_H

#include <stdint.h>

#define SRV_BOOT_ID_LEN 8

/* An id that stays the same until the host's memory is lost, and that no other host has.  Where the
 * kernel does not tell one, the id is random: then a restart of the server counts as a reboot.
 * Main thread, at start. */
void srv_boot_id(uint8_t id[SRV_BOOT_ID_LEN]);

#endif
