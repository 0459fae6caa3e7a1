/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing; works on the struct of the caller. */
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "clt-cause.h"

#define TELL_AGAIN_MS 60000

void clt_cause_init(struct clt_cause *cause)
{
	memset(cause, 0, sizeof(*cause));
	pthread_mutex_init(&cause->lock, NULL);
}

void clt_cause_fini(struct clt_cause *cause)
{
	pthread_mutex_destroy(&cause->lock);
}

void clt_cause_keep(struct clt_cause *cause, int err, const char *text)
{
	pthread_mutex_lock(&cause->lock);
	cause->err = err;
	snprintf(cause->text, sizeof(cause->text), "%s", text);
	pthread_mutex_unlock(&cause->lock);
}

int clt_cause_get(struct clt_cause *cause, char text[CLT_WHY])
{
	int err;

	pthread_mutex_lock(&cause->lock);
	err = cause->err;
	memcpy(text, cause->text, sizeof(cause->text));
	pthread_mutex_unlock(&cause->lock);
	return err;
}

bool clt_cause_tell(struct clt_cause *cause, const char *text, bool big)
{
	uint64_t now = clock_now_ms();

	if (!big && !strcmp(text, cause->told) && now - cause->told_ms < TELL_AGAIN_MS)
		return false;
	cause->told_ms = now;
	snprintf(cause->told, sizeof(cause->told), "%s", text);
	return true;
}

void clt_cause_forget(struct clt_cause *cause)
{
	cause->told[0] = '\0';
	cause->told_ms = 0;
}
