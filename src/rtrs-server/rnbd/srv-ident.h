/* SPDX-License-Identifier: BSD-3-Clause */
/* Who this server is, for RNBD's extension: which host, which boot of it, which process
 * (man/rtrs-protocol.pod; doc/decisions.md D13).  Apart from srv.c so that the simulation can have
 * several hosts and reboot them.  Main thread, at start; reads files, cannot fail: each function
 * says what happens instead. */
#ifndef SRV_IDENT_H
#define SRV_IDENT_H

#include <stdbool.h>
#include <stdint.h>

#define SRV_IDENT_BOOT_LEN 8

/* An id that stays the same until the host's memory is lost, and that no other host has.  Where the
 * kernel does not tell one, the id is random: then a restart of the server counts as a reboot. */
void srv_ident_boot(uint8_t id[SRV_IDENT_BOOT_LEN]);

/* Of this host, over reboots (/etc/machine-id).  Without one, of its boot, and @lasts is false. */
uint64_t srv_ident_host(bool *lasts);

/* Random, never 0. */
uint32_t srv_ident_instance(void);

#endif
