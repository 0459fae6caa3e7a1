/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the choice between stderr and the system log, which is constant before threads begin. */
#include <config.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <syslog.h>
#include <unistd.h>

#include "log.h"
#include "plugin-tell.h"

/* Ends a write.  nbdkit and the plugin have no use for it, and it ends no process that does not
 * catch it. */
#define SIG_LET_GO SIGURG

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

void plugin_tell_by_nbdkit(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIG_LET_GO);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

static void end_write(int sig)
{
}

void plugin_tell_let_go(pthread_t thread)
{
	const struct sigaction action = { .sa_handler = end_write };	/* no SA_RESTART */
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	/* ORDER: a write that begins after the signal goes to /dev/null. */
	if (dup2(null, STDERR_FILENO) >= 0 && sigaction(SIG_LET_GO, &action, NULL) == 0)
		pthread_kill(thread, SIG_LET_GO);
	if (null >= 0)
		close(null);
}
