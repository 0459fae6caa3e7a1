/* SPDX-License-Identifier: BSD-3-Clause */
/* A listening socket with a name in the file system.  Any thread, one at a time per socket. */
#ifndef UNIX_SOCK_H
#define UNIX_SOCK_H

#include <stddef.h>
#include <sys/types.h>

struct unix_sock {
	int fd;				/* listens; non-blocking */
	char *path;
	dev_t dev;			/* of what was made there */
	ino_t ino;
};

/* Listen at @path, with @mode less the umask (connect(2) needs the right to write).  A socket there
 * that nobody listens on any more is replaced.  0: @sock is to be given to unix_sock_remove(), and
 * its descriptor to be closed; or -errno with the reason in @err: -ENAMETOOLONG, -EEXIST no socket,
 * -EADDRINUSE somebody listens there, -EBUSY another process of this user takes the name and does
 * not get on, ...  Waits for such a process, 2 s at most.  If several processes want one name, one
 * process gets the name: the holder of a lock on @path.lock (lock-file.h), a file that exists
 * meanwhile. */
int unix_sock_listen(struct unix_sock *sock, const char *path, mode_t mode, int backlog, char *err,
		     size_t errlen);
/* Remove the name, unless something else has it now, and nothing more: what a signal handler may
 * do. */
void unix_sock_unlink(const struct unix_sock *sock);
/* Remove the name like unix_sock_unlink(), and give up @sock. */
void unix_sock_remove(struct unix_sock *sock);
/* Remove the socket at @path if the socket belongs to this user and no process listens there.  A
 * socket at which a process is about to listen stays, and so does any other file.  Never waits. */
void unix_sock_remove_dead(const char *path);
/* Close the descriptor and give up @sock; remove the name, too, unless somebody listens there all
 * the same: a process that was forked meanwhile has the socket.  Waits for a process that takes the
 * name, 2 s at most, with @sock still listening.  Without the lock on @path.lock the name stays:
 * the next process that wants it removes it. */
void unix_sock_leave(struct unix_sock *sock);

#endif
