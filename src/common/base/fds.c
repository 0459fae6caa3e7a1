/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts descriptors, and takes those of clients.  Owns nothing; any thread. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "fds.h"
#include "log.h"
#include "util.h"

#define RESERVE_PART 16			/* of the limit */
#define RESERVE_MIN 2			/* clients */
#define RESERVE_MAX 64

static struct log_limit short_limit = LOG_LIMIT_INIT(4, 10000);

/* The current RLIMIT_NOFILE; 0: unknown. */
static unsigned long long fds_limit(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) ? 0 : limit.rlim_cur;
}

int fds_name_limit(int r, char *err, size_t len)
{
	size_t at = strlen(err);

	if (r == -EMFILE)
		snprintf(err + at, len - at, " (RLIMIT_NOFILE is %llu: raise it)", fds_limit());
	return r;
}

unsigned fds_reserve(unsigned client)
{
	unsigned long long part = fds_limit() / RESERVE_PART,
		least = (unsigned long long)RESERVE_MIN * client,
			   most = (unsigned long long)RESERVE_MAX * client;

	return (unsigned)MAX(MIN(part, most), least);
}

/* Count from above: the lowest descriptors are taken first. */
bool fds_free(unsigned n)
{
	int fd = (int)MIN(fds_limit(), (unsigned long long)INT_MAX);

	while (n && --fd >= 0) {
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			n--;
	}
	return n == 0;
}

int fds_tell_short(int r)
{
	char err[160];

	snprintf(err, sizeof(err), "%s", strerror(-r));
	fds_name_limit(r, err, sizeof(err));
	log_event_limited(&short_limit, LOG_LEVEL_WARN, LOG_FIELDS(CLIENT_REFUSED), NULL,
			  "cannot accept a client now: %s", err);
	return r;
}

/* Other errors are of a client, or of its network (accept(2)): one time each. */
static bool is_short(int err)
{
	return err == EMFILE || err == ENFILE || err == ENOBUFS || err == ENOMEM;
}

int fds_accept(int listener, struct sockaddr_storage *addr, socklen_t *len)
{
	for (unsigned i = 0; i < FDS_ACCEPT_ROUND; i++) {
		int fd;

		*len = sizeof(*addr);
		fd = accept4(listener, (struct sockaddr *)addr, len, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0)
			return fd;
		if (errno == EAGAIN)
			return -EAGAIN;
		if (is_short(errno))
			break;
	}
	return fds_tell_short(-errno);
}
