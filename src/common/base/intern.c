/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the texts, under a lock that is innermost.  They end with the program. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "intern.h"

struct text {
	struct text *next;
	char bytes[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct text *texts;

const char *intern(const char *text)
{
	size_t len = strlen(text) + 1;
	struct text *t;

	LOCK_SCOPE(&lock);
	for (t = texts; t; t = t->next) {
		if (!strcmp(t->bytes, text))
			return t->bytes;
	}
	t = malloc(sizeof(*t) + len);
	if (!t)
		return NULL;
	memcpy(t->bytes, text, len);
	t->next = texts;
	texts = t;
	return t->bytes;
}
