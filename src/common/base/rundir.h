/* SPDX-License-Identifier: BSD-3-Clause */
/* Directories where programs of this package keep files that live as long as the boot of the host,
 * and names by which users tell the programs apart. */
#ifndef BASE_RUNDIR_H
#define BASE_RUNDIR_H

#include <stdbool.h>
#include <stddef.h>

/* The directory of this package, which may not exist yet, or NULL when this user has none:
 * systemd's $RUNTIME_DIRECTORY; /run/nbdkit-rtrs for root; nbdkit-rtrs in $XDG_RUNTIME_DIR.  In
 * static memory.  Main thread. */
const char *rundir_default(void);

/* The directory in which this user's programs look for each other's directories: /run for root,
 * $XDG_RUNTIME_DIR.  systemd makes a directory there for each service with RuntimeDirectory=.  NULL
 * when this user has none, or $RUNTIME_DIRECTORY names a single directory.  Main thread. */
const char *rundir_parent(void);

/* The kinds of programs that make a control socket by default, in the directory above.  All kinds
 * but the server are clients. */
#define RUNDIR_SERVER "server"
#define RUNDIR_NBDKIT "nbdkit"
#define RUNDIR_GATEWAY "rtrs-nbd"
/* Write into @buf the default file name of the control socket of process @pid, which is of
 * @kind. */
void rundir_socket_name(const char *kind, int pid, char *buf, size_t len);
/* True if @name is the name of such a socket, of @kind; NULL: of any kind; RUNDIR_NBDKIT: of any
 * client. */
bool rundir_is_socket(const char *name, const char *kind);
/* The longest name of a program in bytes, with the '\0': as long as that of an export. */
#define RUNDIR_NAME_MAX 256
/* True if @name can be the name of a program: 1 to 255 bytes of UTF-8 without control
 * characters. */
bool rundir_name_ok(const char *name);
/* Remove from @dir the sockets of killed processes: sockets with such names, of this user, where no
 * process listens. */
void rundir_sweep(const char *dir);

#endif
