/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the texts, a tree of them under a lock that is innermost.  They end with the program. */
#include <pthread.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "intern.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *texts;

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

const char *intern(const char *text)
{
	const char *const *found;
	char *copy;

	LOCK_SCOPE(&lock);
	found = tfind(text, &texts, by_text);
	if (found)
		return *found;
	copy = strdup(text);
	found = copy ? tsearch(copy, &texts, by_text) : NULL;
	if (found)
		return *found;
	free(copy);
	return NULL;
}
