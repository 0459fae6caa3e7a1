/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the choice between stderr and the system log, which is constant before threads begin. */
#include <config.h>

#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <syslog.h>
#include <unistd.h>

#include "log.h"
#include "plugin-tell.h"

static bool to_syslog;

void plugin_tell_forked(void)
{
	struct stat st;

	to_syslog = fstat(STDERR_FILENO, &st) ||
		(S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3));
}

void plugin_tell(const char *line)
{
	if (to_syslog)
		syslog(LOG_DAEMON | LOG_NOTICE, "rtrs: %s", line);	/* nbdkit has called
									 * openlog() */
	else
		log_to_stderr("nbdkit: rtrs: %s\n", line);
}
