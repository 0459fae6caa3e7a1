/* SPDX-License-Identifier: BSD-3-Clause */
/* The cause of a failed attempt, and the text last told to people.  Any thread keeps a cause; the
 * service thread gets the cause, and tells an unchanged cause again only after a minute. */
#ifndef CLT_CAUSE_H
#define CLT_CAUSE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define CLT_WHY 256

struct clt_cause {
	pthread_mutex_t lock;
	int err;			/* lock: -errno */
	char text[CLT_WHY];		/* lock */
	/* service thread */
	char told[CLT_WHY];		/* the text told last, or "" */
	uint64_t told_ms;
};

/* Initialize @cause: nothing was kept or told. */
void clt_cause_init(struct clt_cause *cause);
/* Free the lock of @cause, which no thread uses any more. */
void clt_cause_fini(struct clt_cause *cause);
/* Keep @err and @text, the cause of a failure; a @text longer than CLT_WHY is cut.  Any thread; the
 * state of the path lets a single cause of each attempt come here. */
void clt_cause_keep(struct clt_cause *cause, int err, const char *text);
/* Get the kept error, and the @text.  Any thread. */
int clt_cause_get(struct clt_cause *cause, char text[CLT_WHY]);
/* Is @text to be told? Yes, if @text is @big news, differs from the text told last, or was told a
 * minute ago.  Then @text becomes the text told last.  Service thread. */
bool clt_cause_tell(struct clt_cause *cause, const char *text, bool big);
/* Forget the text told last.  Service thread. */
void clt_cause_forget(struct clt_cause *cause);

#endif
