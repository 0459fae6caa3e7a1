/* SPDX-License-Identifier: BSD-3-Clause */
/* Disks of the kernel's driver ublk_drv, for any process, whether one serves the disk or not.  Any
 * thread that is no loop's; all block.  Errors have their reason, fit to be printed, in
 * @why[UBLK_WHY]. */
#ifndef UBLK_DISK_H
#define UBLK_DISK_H

#include <stdint.h>

#define UBLK_WHY 256			/* bytes of the text of an error */

/* Can this kernel have disks that outlive their process?  0, or -errno. */
int ublk_disk_probe(char why[UBLK_WHY]);
/* The number of the disk that was made with @mark (ublk-dev.h).  -ENODEV: there is none; or
 * -errno. */
int ublk_disk_find(uint64_t mark, char why[UBLK_WHY]);
/* Get the mark that disk @id was made with.  0; -ENODEV: there is none; or -errno. */
int ublk_disk_mark(int id, uint64_t *mark, char why[UBLK_WHY]);
/* End disk @id.  Requests that were not begun, and what the page cache has still to write, fail:
 * flush before.  Returns 0 when the disk has gone, whose number is free when the last user has
 * closed it; -ENODEV: there is none; or -errno. */
int ublk_disk_remove(int id, char why[UBLK_WHY]);

#endif
