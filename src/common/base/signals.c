/* SPDX-License-Identifier: BSD-3-Clause */
#include <config.h>

#include <string.h>

#include "log.h"
#include "signals.h"

const int signals_of_habit[] = { SIGHUP, SIGUSR1, SIGUSR2, 0 };

void signals_begin(void)
{
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
}

void signals_tell_ignored(int sig, const char *why)
{
	static struct log_limit limit = LOG_LIMIT_INIT(4, 10000);

	log_limited(&limit, LOG_LEVEL_INFO, NULL, "SIG%s: ignored: %s", sigabbrev_np(sig),
		    why ? why : "there is no log file to reopen");
}

void signals_add(sigset_t *set, const int *signals)
{
	while (*signals)
		sigaddset(set, *signals++);
}

void signals_mask(int how, const int *signals)
{
	sigset_t set;

	sigemptyset(&set);
	signals_add(&set, signals);
	pthread_sigmask(how, &set, NULL);
}
