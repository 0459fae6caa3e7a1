/* SPDX-License-Identifier: BSD-3-Clause */
/* Who gets the name of a listening socket, when several want it at once. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lock-file.h"
#include "unit.h"
#include "unix-sock.h"

enum { ROUNDS = 400, RIVALS = 2 };

static char dir[] = "/tmp/rtrs-unix-sock.XXXXXX";
static char path[64], lock[72];

static void (*in_pause)(void);		/* instead of a pause between two looks at a lock */
static unsigned pauses;

int nanosleep(const struct timespec *time, struct timespec *left)
{
	if (!in_pause)
		return clock_nanosleep(CLOCK_MONOTONIC, 0, time, left) ? -1 : 0;
	pauses++;
	in_pause();
	return 0;
}

static void setup(void)
{
	cr_assert(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/s", dir);
	snprintf(lock, sizeof(lock), "%s.lock", path);
}

static void teardown(void)
{
	unlink(path);
	cr_expect_eq(rmdir(dir), 0, "something is left");
}

TestSuite(unix_sock, .init = setup, .fini = teardown);

static struct sockaddr_un name(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	memcpy(addr.sun_path, path, strlen(path));
	return addr;
}

/* As of a process that was killed. */
static void leave_stale(void)
{
	struct sockaddr_un addr = name();
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	cr_assert_eq(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	close(fd);
}

static bool can_connect(void)
{
	struct sockaddr_un addr = name();
	int fd = socket(AF_UNIX, SOCK_STREAM, 0),
	rc = connect(fd, (struct sockaddr *)&addr, sizeof(addr));

	close(fd);
	return rc == 0;
}

/* Begins when @go is closed, tells what came out, and keeps what it got until @end is closed. */
static void rival(int go, int told, int end)
{
	struct unix_sock sock;
	char err[200], byte;
	int rc;

	(void)!read(go, &byte, 1);
	rc = unix_sock_listen(&sock, path, 0600, 1, err, sizeof(err));
	if (write(told, &rc, sizeof(rc)) != sizeof(rc))
		_exit(2);
	(void)!read(end, &byte, 1);
	if (!rc)
		unix_sock_remove(&sock);
	_exit(0);
}

static void one_round(bool stale)
{
	int go[2], told[2], end[2], rc, won = 0, status;

	if (stale)
		leave_stale();
	cr_assert(!pipe2(go, O_CLOEXEC) && !pipe2(told, O_CLOEXEC) && !pipe2(end, O_CLOEXEC));
	for (unsigned i = 0; i < RIVALS; i++) {
		pid_t pid = fork();

		cr_assert_geq(pid, 0);
		if (!pid) {
			close(go[1]);
			close(end[1]);
			rival(go[0], told[1], end[0]);
		}
	}
	close(go[1]);
	for (unsigned i = 0; i < RIVALS; i++) {
		cr_assert_eq(read(told[0], &rc, sizeof(rc)), sizeof(rc));
		cr_assert(rc == 0 || rc == -EADDRINUSE, "rc %d", rc);
		won += rc == 0;
	}
	cr_assert_eq(won, 1, "%d of %d listen at one name", won, RIVALS);
	cr_assert(can_connect());
	close(end[1]);
	for (unsigned i = 0; i < RIVALS; i++) {
		cr_assert_gt(wait(&status), 0);
		cr_assert_eq(status, 0);
	}
	cr_assert_neq(access(path, F_OK), 0, "the name is left");
	close(go[0]);
	close(told[0]);
	close(told[1]);
	close(end[0]);
}

Test(unix_sock, of_several_one_gets_the_name)
{
	for (unsigned i = 0; i < ROUNDS; i++)
		one_round(i % 2);
}

/* Who does not come to accept anybody listens all the same. */
Test(unix_sock, one_with_a_full_backlog_is_not_replaced)
{
	struct sockaddr_un addr = name();
	struct unix_sock sock, second;
	int fds[64], rc = 0, n = 0;
	char err[200], want[200];

	cr_assert_eq(unix_sock_listen(&sock, path, 0600, 1, err, sizeof(err)), 0, "%s", err);
	while (!rc && n < (int)ARRAY_SIZE(fds)) {
		fds[n] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
		rc = connect(fds[n++], (struct sockaddr *)&addr, sizeof(addr));
	}
	cr_assert(rc < 0 && errno == EAGAIN);
	cr_assert_eq(unix_sock_listen(&second, path, 0600, 1, err, sizeof(err)), -EADDRINUSE, "%s",
		     err);
	/* The kernel does not tell whose socket refuses a connection. */
	snprintf(want, sizeof(want), "%s: another process listens there", path);
	cr_assert_str_eq(err, want);
	cr_assert_eq(access(path, F_OK), 0);
	while (n)
		close(fds[--n]);
	close(sock.fd);
	unix_sock_remove(&sock);
}

Test(unix_sock, what_is_no_socket_stays)
{
	struct unix_sock sock;
	char err[200] = "";
	int fd = open(path, O_CREAT | O_WRONLY, 0600);

	cr_assert_geq(fd, 0);
	close(fd);
	cr_assert_eq(unix_sock_listen(&sock, path, 0600, 1, err, sizeof(err)), -EEXIST);
	cr_assert(strstr(err, "exists and is no socket"), "%s", err);
	cr_assert_eq(access(path, F_OK), 0);
}

/* A process that was killed leaves its socket; one that binds has the lock until it listens. */
Test(unix_sock, the_dead_are_removed)
{
	char lock_name[80], err[200];
	struct unix_sock sock;
	int fd, held;

	snprintf(lock_name, sizeof(lock_name), "%s.lock", path);
	leave_stale();
	held = lock_file_take(AT_FDCWD, lock_name, LOCK_EX);
	cr_assert_geq(held, 0);
	unix_sock_remove_dead(path);
	cr_assert_eq(access(path, F_OK), 0, "one that is about to listen is removed");
	lock_file_drop(held, AT_FDCWD, lock_name);
	unix_sock_remove_dead(path);
	cr_assert_neq(access(path, F_OK), 0, "a dead one stays");

	cr_assert_eq(unix_sock_listen(&sock, path, 0600, 1, err, sizeof(err)), 0, "%s", err);
	unix_sock_remove_dead(path);
	cr_assert(can_connect());
	close(sock.fd);
	unix_sock_remove(&sock);

	fd = open(path, O_CREAT | O_WRONLY, 0600);
	close(fd);
	unix_sock_remove_dead(path);
	cr_assert_eq(access(path, F_OK), 0, "what is no socket is removed");
}

/* A daemon listens before it forks: who has called listen() is dead, and is not named. */
Test(unix_sock, a_dead_listener_is_not_named)
{
	struct unix_sock sock;
	int ends[2], status;
	char err[200] = "", byte;
	pid_t pid;

	cr_assert_eq(pipe(ends), 0);
	pid = fork();
	if (!pid) {
		if (unix_sock_listen(&sock, path, 0600, 1, err, sizeof(err)) || fork())
			_exit(*err != '\0');
		close(ends[1]);
		_exit(read(ends[0], &byte, 1) != 0);	/* until the test has ended */
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_eq(status, 0);
	cr_assert_eq(unix_sock_listen(&sock, path, 0600, 1, err, sizeof(err)), -EADDRINUSE);
	cr_assert(strstr(err, ": another process listens there"), "%s", err);
	close(ends[1]);
	close(ends[0]);
}

static int held;			/* the lock, by another process in effect */

static void still_listens(void)
{
	if (pauses == 1)
		cr_assert(can_connect(), "the socket is closed before there is a lock");
}

static void lock_ends(void)
{
	if (pauses == 2)
		lock_file_drop(held, AT_FDCWD, lock);
}

/* Who leaves takes the name along, but not from a process that has the socket, too. */
Test(unix_sock, who_leaves_looks_for_heirs)
{
	struct unix_sock sock;
	char err[200];
	int heir;

	cr_assert_eq(unix_sock_listen(&sock, path, 0600, 1, err, sizeof(err)), 0, "%s", err);
	unix_sock_leave(&sock);
	cr_assert_neq(access(path, F_OK), 0, "the name is left");
	cr_assert_neq(access(lock, F_OK), 0, "the lock is left");

	cr_assert_eq(unix_sock_listen(&sock, path, 0600, 1, err, sizeof(err)), 0, "%s", err);
	heir = dup(sock.fd);
	unix_sock_leave(&sock);
	cr_assert(can_connect(), "the name of who lives is removed");
	cr_assert_neq(access(lock, F_OK), 0, "the lock is left");
	close(heir);
}

/* While another process takes the name it is not given up; then it is, or stays. */
Test(unix_sock, who_leaves_waits_for_the_lock)
{
	struct unix_sock sock;
	char err[200];

	cr_assert_eq(unix_sock_listen(&sock, path, 0600, 1, err, sizeof(err)), 0, "%s", err);
	held = lock_file_take(AT_FDCWD, lock, LOCK_EX);
	cr_assert_geq(held, 0);
	in_pause = still_listens;
	unix_sock_leave(&sock);
	cr_assert_eq(access(path, F_OK), 0,
		     "the name is removed while another process may have it");
	cr_assert(sock.fd == -1 && !sock.path, "it is given up");
	cr_assert_gt(pauses, 2);
	lock_file_drop(held, AT_FDCWD, lock);

	cr_assert_eq(unix_sock_listen(&sock, path, 0600, 1, err, sizeof(err)), 0, "%s", err);
	held = lock_file_take(AT_FDCWD, lock, LOCK_EX);
	cr_assert_geq(held, 0);
	pauses = 0;
	in_pause = lock_ends;
	unix_sock_leave(&sock);
	cr_assert_neq(access(path, F_OK), 0, "the name is left");
	cr_assert_eq(pauses, 2);
}

/* ---- locks ---- */

static int listens(char *err, size_t errlen)
{
	struct unix_sock sock;
	int rc = unix_sock_listen(&sock, path, 0600, 1, err, errlen);

	if (!rc) {
		close(sock.fd);
		unix_sock_remove(&sock);
	}
	return rc;
}

/* A description of @name, which is made with @mode, with a lock. */
static int hold(const char *name, int flags, mode_t mode)
{
	int fd = open(name, flags | O_RDONLY | O_CLOEXEC, mode);

	cr_assert_geq(fd, 0);
	cr_assert_eq(flock(fd, LOCK_EX), 0);
	return fd;
}

/* Another file may have got the name of a lock, which is removed with its own name alone. */
Test(unix_sock, lock_without_its_name)
{
	held = lock_file_take(AT_FDCWD, lock, LOCK_EX);
	cr_assert_eq(unlink(lock), 0);
	close(open(lock, O_CREAT | O_WRONLY, 0600));
	lock_file_drop(held, AT_FDCWD, lock);
	cr_assert_eq(unlink(lock), 0, "it was not ours to remove");
}

/* Whoever may open the directory may lock it. */
Test(unix_sock, locked_directory_is_no_matter)
{
	char err[200] = "";
	int fd = hold(dir, O_DIRECTORY, 0);

	cr_assert_eq(listens(err, sizeof(err)), 0, "%s", err);
	close(fd);
}

/* What stands in the name of the lock: a file that others may open, another user's, no file. */
Test(unix_sock, lock_of_others_is_no_matter)
{
	char err[200] = "";
	int fd = hold(lock, O_CREAT, 0644);

	cr_assert_eq(listens(err, sizeof(err)), 0, "%s", err);
	cr_assert_eq(unlink(lock), 0, "it was not ours to remove");
	close(fd);
	if (!geteuid()) {
		fd = hold(lock, O_CREAT, 0600);
		cr_assert_eq(fchown(fd, 65534, 65534), 0);
		cr_assert_eq(listens(err, sizeof(err)), 0, "%s", err);
		cr_assert_eq(unlink(lock), 0);
		close(fd);
	}
	cr_assert_eq(symlink("/dev/null", lock), 0);
	cr_assert_eq(listens(err, sizeof(err)), 0, "%s", err);
	cr_assert_eq(unlink(lock), 0);
	cr_assert_eq(mkdir(lock, 0700), 0);
	cr_assert_eq(listens(err, sizeof(err)), 0, "%s", err);
	cr_assert_eq(rmdir(lock), 0);
}

/* A process of our own that was stopped while it took the name stops nobody for ever, and is
 * named. */
Test(unix_sock, lock_of_ours_is_told)
{
	char err[300] = "", want[100];
	int fd = hold(lock, O_CREAT, 0600);

	snprintf(want, sizeof(want), "%s: process %d (", path, getpid());
	cr_assert_eq(listens(err, sizeof(err)), -EBUSY);
	cr_assert(strstr(err, want) && strstr(err, lock), "%s", err);
	close(fd);
	/* As of a process that was killed: nobody has that lock. */
	cr_assert_eq(listens(err, sizeof(err)), 0, "%s", err);
	cr_assert_neq(access(lock, F_OK), 0, "the lock is left");
}
