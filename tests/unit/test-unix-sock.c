/* SPDX-License-Identifier: BSD-3-Clause */
/* Who gets the name of a listening socket, when several want it at once. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"
#include "unix-sock.h"

enum { ROUNDS = 400, RIVALS = 2 };

static char dir[] = "/tmp/rtrs-unix-sock.XXXXXX";
static char path[64];

static void setup(void)
{
	cr_assert(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/s", dir);
}

static void teardown(void)
{
	unlink(path);
	rmdir(dir);
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
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), rc = connect(fd, (struct sockaddr *)&addr, sizeof(addr));

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

/* Somebody who locks the directory, and does not let it go, stops nobody for ever. */
Test(unix_sock, locked_directory_is_told)
{
	struct unix_sock sock;
	char err[200] = "";
	int fd = open(dir, O_RDONLY | O_DIRECTORY);

	cr_assert_eq(flock(fd, LOCK_EX), 0);
	cr_assert_eq(unix_sock_listen(&sock, path, 0600, 1, err, sizeof(err)), -EBUSY);
	cr_assert(strstr(err, "another process has locked the directory"), "%s", err);
	close(fd);
	cr_assert_eq(unix_sock_listen(&sock, path, 0600, 1, err, sizeof(err)), 0);
	close(sock.fd);
	unix_sock_remove(&sock);
}
