/* SPDX-License-Identifier: BSD-3-Clause */
/* Sockets with a name in the file system, and the directory in which programs of this package keep
 * the sockets of their control interfaces.
 *
 * The happy path: unix_sock_listen() takes the name; the process serves its clients;
 * unix_sock_leave() gives the name up.  Possible failures: another process listens at the name, or
 * is about to; a killed process has left the name, which the next process takes. */
#ifndef UNIX_SOCK_H
#define UNIX_SOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A listening socket.  Any thread, but a single thread at a time per socket. */
struct unix_sock {
	int fd;				/* listens; non-blocking */
	char *path;
	dev_t dev;			/* of the socket at @path */
	ino_t ino;
};

/* opt.call: does @path, which is not empty, fit in the address of a socket?  0, or -EINVAL with the
 * limit in @why.  Any thread. */
int unix_sock_check(void *conf, const char *path, char *why, size_t len);

/* Listen at @path, with @mode less the umask (connect(2) needs the right to write).  A socket at
 * @path where no process listens any more is replaced.  Returns 0: give @sock to
 * unix_sock_remove() and close its descriptor; or -errno, with the reason in @err:
 *  -ENAMETOOLONG	@path does not fit
 *  -EEXIST		@path is no socket
 *  -EADDRINUSE		another process listens at @path
 *  -EBUSY		another process of this user is taking the name for longer than 2 s
 *
 * Waits for such a process, 2 s at most.  If several processes want a name, the holder of a lock on
 * @path.lock (lock-file.h) gets the name; the lock file exists only meanwhile. */
int unix_sock_listen(struct unix_sock *sock, const char *path, mode_t mode, int backlog, char *err,
		     size_t errlen);
/* Remove the name, unless another file has the name now; nothing more, so a signal handler may
 * call. */
void unix_sock_unlink(const struct unix_sock *sock);
/* Remove the name like unix_sock_unlink(), and give up @sock. */
void unix_sock_remove(struct unix_sock *sock);
/* Remove the socket at @path if the socket belongs to this user and no process listens there.  A
 * socket at which a process is about to listen stays, and so does any other file.  Never waits. */
void unix_sock_remove_dead(const char *path);
/* Close the descriptor and give up @sock.  Remove the name, too, unless a process still listens: a
 * child forked meanwhile has the socket.
 *
 * Waits for a process that is taking the name, 2 s at most, with @sock still listening.  Without
 * the lock on @path.lock the name stays, until the next process that wants the name removes it. */
void unix_sock_leave(struct unix_sock *sock);

/* ---- directories of sockets, which live as long as the boot of the host ---- */

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
#define RUNDIR_ATTACH "rtrs-attach"
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
