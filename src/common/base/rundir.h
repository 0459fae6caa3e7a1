/* SPDX-License-Identifier: BSD-3-Clause */
/* Where programs of this package keep what lives as long as the boot of the host. */
#ifndef BASE_RUNDIR_H
#define BASE_RUNDIR_H

/* The directory, which may not exist yet, or NULL when this user has none: systemd's
 * $RUNTIME_DIRECTORY; /run/nbdkit-rtrs for root; nbdkit-rtrs in $XDG_RUNTIME_DIR.  In static
 * memory.  Main thread. */
const char *rundir_default(void);

#endif
