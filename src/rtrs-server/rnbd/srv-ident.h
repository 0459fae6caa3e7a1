/* SPDX-License-Identifier: BSD-3-Clause */
/* The identity of this server, for RNBD's extension: the host, the boot of the host, the process
 * (man/rtrs-protocol.pod; doc/decisions.md D13).  A file apart from srv.c, so that the simulation
 * can have several hosts and reboot each.  Main thread, at start; reads files, cannot fail: each
 * function says what happens instead. */
#ifndef SRV_IDENT_H
#define SRV_IDENT_H

#include <stdbool.h>
#include <stdint.h>

#define SRV_IDENT_BOOT_LEN 8

/* An id that stays the same until the host's memory is lost, and differs from the id of any other
 * host.  If the kernel tells no boot id, the id is random: then a restart of the server counts as
 * a reboot. */
void srv_ident_boot(uint8_t id[SRV_IDENT_BOOT_LEN]);

/* An id of this host that stays the same over reboots (/etc/machine-id).  Without such a file, an
 * id of the host's boot, and *@lasts is false. */
uint64_t srv_ident_host(bool *lasts);

/* An id of this process: random, never 0. */
uint32_t srv_ident_instance(void);

#endif
