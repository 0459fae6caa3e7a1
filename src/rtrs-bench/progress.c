/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the last line of the terminal: the cursor stands behind the shown text. */
#include <config.h>

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "cleanup.h"
#include "progress.h"

#define CLEAR "\r\033[K"		/* go to the beginning of the line, and clear the line */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool shown;

bool progress_possible(void)
{
	return isatty(STDERR_FILENO);
}

void progress_show(const char *text)
{
	LOCK_SCOPE(&lock);
	fprintf(stderr, CLEAR "%s", text);
	shown = true;
}

static void line_clear(void)
{
	if (shown)
		fputs(CLEAR, stderr);
	shown = false;
}

void progress_end(void)
{
	LOCK_SCOPE(&lock);
	line_clear();
}

void progress_say(const char *fmt, ...)
{
	char line[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	LOCK_SCOPE(&lock);
	line_clear();
	fprintf(stderr, "rtrs-bench: %s\n", line);
}
