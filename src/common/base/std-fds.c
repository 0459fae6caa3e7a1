/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the first error of stdout. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "std-fds.h"

int std_fds_open(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		/* open() returns the lowest free descriptor, @fd. */
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
			return -errno;
	}
	return 0;
}

int std_out_flush(void)
{
	static int first;

	if (!first && fflush(stdout) != 0)
		first = -errno;
	/* An earlier printf() has failed; its errno is lost. */
	if (!first && ferror(stdout))
		first = -EIO;
	return first;
}

enum exit_status std_out_end(const char *program, enum exit_status status)
{
	int rc = std_out_flush();

	if (!rc || status == EXIT_USAGE)
		return status;
	fprintf(stderr, "%s: standard output: %s\n", program, strerror(-rc));
	return EXIT_FAILED;
}
