/* SPDX-License-Identifier: BSD-3-Clause */
/* Where programs of this package keep what lives as long as the boot of the host. */
#ifndef BASE_RUNDIR_H
#define BASE_RUNDIR_H

#include <stdbool.h>
#include <stddef.h>

/* The directory, which may not exist yet, or NULL when this user has none: systemd's
 * $RUNTIME_DIRECTORY; /run/nbdkit-rtrs for root; nbdkit-rtrs in $XDG_RUNTIME_DIR.  In static
 * memory.  Main thread. */
const char *rundir_default(void);

/* The directory in which systemd makes one for each service that has RuntimeDirectory=, for this
 * user's programs to look for each other: /run for root, $XDG_RUNTIME_DIR.  NULL when there is
 * none, or $RUNTIME_DIRECTORY says which is meant.  Main thread. */
const char *rundir_parent(void);

/* The kinds of programs that make a control socket by default, in the directory above.  Those that
 * are no server are clients. */
#define RUNDIR_SERVER "server"
#define RUNDIR_NBDKIT "nbdkit"
#define RUNDIR_GATEWAY "rtrs-nbd"
/* Write into @buf the file name of the control socket of process @pid, which is of @kind. */
void rundir_socket_name(const char *kind, int pid, char *buf, size_t len);
/* Is @name such a name, of @kind?  NULL: of any; RUNDIR_NBDKIT: of any client. */
bool rundir_is_socket(const char *name, const char *kind);
/* Remove from @dir sockets with such names that are this user's and that nobody listens at: those
 * of processes that were killed. */
void rundir_sweep(const char *dir);

#endif
