/* SPDX-License-Identifier: BSD-3-Clause */
/* The exit statuses of all programs.  The manual of each program says which of these it has; the
 * status of nbdkit is nbdkit's own.  C's EXIT_FAILURE is EXIT_FAILED. */
#ifndef BASE_EXIT_STATUS_H
#define BASE_EXIT_STATUS_H

#include <errno.h>

enum exit_status {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,		/* not here, or not now: the same call may work later */
	EXIT_USAGE = 2,			/* somebody has to mend the command line or a file: a unit
					 * does not try again */
	EXIT_UNWELL = 3,		/* rtrsctl: the answer is there, and not all is well */
};

/* The status of a program whose start ended with -errno.  -EINVAL is a mistake of the user, in an
 * option or a file (opt.h). */
static inline enum exit_status exit_status_of(int rc)
{
	return rc == 0 ? EXIT_DONE : rc == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
}

/* The error @rc of a file that an option names: -EINVAL if it lasts until somebody mends the file,
 * its name or its rights; else @rc, of a machine or a file system that may recover. */
static inline int exit_file_error(int rc)
{
	switch (-rc) {
	case ENOENT: case ENOTDIR: case EISDIR: case ELOOP: case ENAMETOOLONG:
	case EACCES: case EPERM: case EFBIG:
		return -EINVAL;
	default:
		return rc;
	}
}

#endif
