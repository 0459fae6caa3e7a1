/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the name of a listening socket.  The name outlives a killed process.  No process listens
 * there then, and the next process takes the name. */
#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "cleanup.h"
#include "lock-file.h"
#include "names.h"
#include "number.h"
#include "process.h"
#include "unix-sock.h"

#define LOCK_TRIES 200u			/* of 10 ms */
#define LOCK_SUFFIX ".lock"
#define PATH_SIZE sizeof(((struct sockaddr_un *)NULL)->sun_path)

/* Lock the file @name.  While locked, no other process finds a socket that is bound and does not
 * listen yet, or takes a name that was taken just now.  Returns a descriptor with the lock, or
 * -errno. */
static int name_lock(const char *name)
{
	const struct timespec pause = { .tv_nsec = 10000000 };
	int fd;

	for (unsigned i = 0; ; i++) {
		fd = lock_file_take(AT_FDCWD, name, LOCK_EX);
		if (fd != -EWOULDBLOCK || i == LOCK_TRIES)
			return fd;
		nanosleep(&pause, NULL);
	}
}

static void tell_name_locked(const char *path, const char *name, char *err, size_t errlen)
{
	char who[128];
	struct stat st;
	pid_t pid = 0;

	if (!lstat(name, &st))
		lock_holders(&st, &pid, 1);
	lock_holder_name(pid, who, sizeof(who));
	snprintf(err, errlen, "%s: %s has locked '%s' for %u s: a process is taking the name, or "
		 "was stopped meanwhile", path, who, name, LOCK_TRIES / 100);
}

/* Returns the pid of the process that listens at @addr, 0 when the pid is unknown, or -errno.  The
 * kernel tells the process that called listen(), which may have left the socket to its child. */
static int sock_holder(const struct sockaddr_un *addr)
{
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (fd < 0)
		return -errno;
	/* EAGAIN: the backlog of the listener is full. */
	if (connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) && errno != EAGAIN)
		return -errno;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) || cred.pid <= 0 ||
	    (kill(cred.pid, 0) && errno == ESRCH))
		return 0;
	return cred.pid;
}

/* A file has the name.  Returns 0 if the name is free now: the file has gone, or was the socket of
 * a dead process and is removed. */
static int sock_take(const struct sockaddr_un *addr, char *err, size_t errlen)
{
	char who[32] = "another process";
	struct stat st;
	int pid;

	if (lstat(addr->sun_path, &st)) {
		if (errno == ENOENT)	/* removed meanwhile by its owner */
			return 0;
		pid = -errno;
		snprintf(err, errlen, "%s: %s", addr->sun_path, fds_strerror(pid));
		return pid;
	}
	if (!S_ISSOCK(st.st_mode))
		return fmt_error(-EEXIST, err, errlen, "%s: exists and is no socket",
				 addr->sun_path);
	pid = sock_holder(addr);
	if (pid >= 0) {
		if (pid)
			snprintf(who, sizeof(who), "process %d", pid);
		return fmt_error(-EADDRINUSE, err, errlen, "%s: %s listens there", addr->sun_path,
				 who);
	}
	if (pid == -ENOENT ||
	    (pid == -ECONNREFUSED && (!unlink(addr->sun_path) || errno == ENOENT)))
		return 0;
	if (pid == -ECONNREFUSED)
		pid = -errno;
	snprintf(err, errlen, "%s: %s", addr->sun_path, fds_strerror(pid));
	return pid;
}

static int sock_bind(int fd, const struct sockaddr_un *addr, mode_t mode, char *err, size_t errlen)
{
	int rc;

	/* ORDER: before the bind, which gives the file the mode of the socket less the umask. */
	if (!fchmod(fd, mode)) {
		for (int i = 0; i < 2; i++) {
			if (!bind(fd, (const struct sockaddr *)addr, sizeof(*addr)))
				return 0;
			if (errno != EADDRINUSE)
				break;
			rc = sock_take(addr, err, errlen);
			if (rc)
				return rc;
			errno = EADDRINUSE;
		}
	}
	rc = -errno;
	return fmt_error(rc, err, errlen, "%s: %s", addr->sun_path, fds_strerror(rc));
}

static int sock_listen(struct unix_sock *sock, const char *path, mode_t mode, int backlog,
		       char *err, size_t errlen)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct stat st;
	int rc;

	memcpy(addr.sun_path, path, strlen(path));
	sock->path = strdup(path);
	sock->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (!sock->path || sock->fd < 0) {
		rc = sock->path ? -errno : -ENOMEM;
		snprintf(err, errlen, "%s: %s", path, fds_strerror(rc));
		goto err_close;
	}
	rc = sock_bind(sock->fd, &addr, mode, err, errlen);
	if (rc)
		goto err_close;
	if (listen(sock->fd, backlog) || lstat(path, &st)) {
		rc = -errno;
		snprintf(err, errlen, "%s: %s", path, fds_strerror(rc));
		unlink(path);
		goto err_close;
	}
	sock->dev = st.st_dev;
	sock->ino = st.st_ino;
	return 0;

err_close:
	if (sock->fd >= 0)
		close(sock->fd);
	free(sock->path);
	sock->path = NULL;
	return rc;
}

int unix_sock_check(void *conf, const char *path, char *why, size_t len)
{
	if (*path && strlen(path) < PATH_SIZE)
		return 0;
	return fmt_error(-EINVAL, why, len, "expected a path of 1 to %zu bytes", PATH_SIZE - 1);
}

int unix_sock_listen(struct unix_sock *sock, const char *path, mode_t mode, int backlog, char *err,
		     size_t errlen)
{
	char name[PATH_SIZE + sizeof(LOCK_SUFFIX)], why[64];
	int lock, rc;

	if (unix_sock_check(NULL, path, why, sizeof(why)))
		return fmt_error(-ENAMETOOLONG, err, errlen, "'%s': %s", path, why);
	snprintf(name, sizeof(name), "%s" LOCK_SUFFIX, path);
	lock = name_lock(name);
	if (lock == -EWOULDBLOCK) {
		tell_name_locked(path, name, err, errlen);
		return -EBUSY;
	}
	/* Go on without the lock.  In a directory where other users may make files, the lock file
	 * may be another user's, and the lock proves nothing.  So another user's lock cannot keep
	 * us from the name. */
	rc = sock_listen(sock, path, mode, backlog, err, errlen);
	if (lock >= 0)
		lock_file_drop(lock, AT_FDCWD, name);
	return rc;
}

void unix_sock_remove_dead(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	char name[PATH_SIZE + sizeof(LOCK_SUFFIX)];
	struct stat st;
	int lock;

	if (strlen(path) >= PATH_SIZE)
		return;
	memcpy(addr.sun_path, path, strlen(path));
	snprintf(name, sizeof(name), "%s" LOCK_SUFFIX, path);
	/* ORDER: a process has the lock from its bind to its listen. */
	lock = lock_file_take(AT_FDCWD, name, LOCK_EX);
	if (lock < 0)
		return;
	if (!lstat(path, &st) && S_ISSOCK(st.st_mode) && st.st_uid == geteuid() &&
	    sock_holder(&addr) == -ECONNREFUSED)
		unlink(path);
	lock_file_drop(lock, AT_FDCWD, name);
}

void unix_sock_unlink(const struct unix_sock *sock)
{
	struct stat st;

	if (!lstat(sock->path, &st) && st.st_dev == sock->dev && st.st_ino == sock->ino)
		unlink(sock->path);
}

void unix_sock_remove(struct unix_sock *sock)
{
	unix_sock_unlink(sock);
	free(sock->path);
	sock->path = NULL;
}

void unix_sock_leave(struct unix_sock *sock)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	char name[PATH_SIZE + sizeof(LOCK_SUFFIX)];
	int lock;

	snprintf(name, sizeof(name), "%s" LOCK_SUFFIX, sock->path);
	/* ORDER: before the close.  After the close another process may take the name, and its
	 * socket may get the inode number of ours; that process holds the lock from its bind to its
	 * listen. */
	lock = name_lock(name);
	close(sock->fd);
	sock->fd = -1;
	memcpy(addr.sun_path, sock->path, strlen(sock->path));
	if (lock >= 0) {
		if (sock_holder(&addr) == -ECONNREFUSED)
			unix_sock_unlink(sock);
		lock_file_drop(lock, AT_FDCWD, name);
	}
	free(sock->path);
	sock->path = NULL;
}

/* ---- directories of sockets ---- */

#define SUFFIX ".sock"

const char *rundir_default(void)
{
	static char path[4096];
	const char *dir = getenv("RUNTIME_DIRECTORY");

	if (dir && *dir) {
		/* Several directories are separated by colons: systemd.exec(5). */
		snprintf(path, sizeof(path), "%.*s", (int)strcspn(dir, ":"), dir);
		return path;
	}
	if (!geteuid())
		return "/run/nbdkit-rtrs";
	dir = getenv("XDG_RUNTIME_DIR");
	if (!dir || !*dir)
		return NULL;
	snprintf(path, sizeof(path), "%s/nbdkit-rtrs", dir);
	return path;
}

const char *rundir_parent(void)
{
	const char *dir = getenv("RUNTIME_DIRECTORY");

	if (dir && *dir)
		return NULL;
	if (!geteuid())
		return "/run";
	dir = getenv("XDG_RUNTIME_DIR");
	return dir && *dir ? dir : NULL;
}

void rundir_socket_name(const char *kind, int pid, char *buf, size_t len)
{
	snprintf(buf, len, "%s-%d" SUFFIX, kind, pid);
}

static bool is_of_kind(const char *name, const char *kind)
{
	size_t len = strlen(kind), digits;

	if (strncmp(name, kind, len) || name[len] != '-')
		return false;
	digits = strspn(name + len + 1, "0123456789");
	return digits && !strcmp(name + len + 1 + digits, SUFFIX);
}

bool rundir_is_socket(const char *name, const char *kind)
{
	bool client = is_of_kind(name, RUNDIR_NBDKIT) || is_of_kind(name, RUNDIR_GATEWAY) ||
		      is_of_kind(name, RUNDIR_ATTACH);

	if (!kind)
		return client || is_of_kind(name, RUNDIR_SERVER);
	return strcmp(kind, RUNDIR_NBDKIT) ? is_of_kind(name, kind) : client;
}

bool rundir_name_ok(const char *name)
{
	char masked[RUNDIR_NAME_MAX];
	size_t len = strlen(name);

	if (!len || len >= sizeof(masked))
		return false;
	memcpy(masked, name, len + 1);
	mask_control(masked);
	return !strcmp(masked, name);
}

void rundir_sweep(const char *dir)
{
	const struct dirent *entry;
	DIR *d = opendir(dir);

	while (d && (entry = readdir(d))) {
		_cleanup_free_ char *path = NULL;

		if (!rundir_is_socket(entry->d_name, NULL))
			continue;
		path = fmt_new("%s/%s", dir, entry->d_name);
		if (path)
			unix_sock_remove_dead(path);
	}
	if (d)
		closedir(d);
}
