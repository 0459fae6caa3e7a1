/* SPDX-License-Identifier: BSD-3-Clause */
/* Why a path's attempt failed, and what people were told of it: any thread finds the cause, the
 * service thread asks for it, and tells each one once a minute while it stays the same. */
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
	char told[CLT_WHY];		/* what was told last, or "" */
	uint64_t told_ms;
};

void clt_cause_init(struct clt_cause *cause);
void clt_cause_fini(struct clt_cause *cause);
/* The attempt failed with @err because of @text, which may be longer than CLT_WHY.  Any thread; the
 * state of the path lets one come here for each attempt. */
void clt_cause_keep(struct clt_cause *cause, int err, const char *text);
/* The error that was kept, and its text.  Any thread. */
int clt_cause_get(struct clt_cause *cause, char text[CLT_WHY]);
/* Is @text to be told?  It is when it is @big news, not what was told last, or was told a minute
 * ago; and then it is what was told last.  Service thread. */
bool clt_cause_tell(struct clt_cause *cause, const char *text, bool big);
/* Nothing was told yet.  Service thread. */
void clt_cause_forget(struct clt_cause *cause);

#endif
