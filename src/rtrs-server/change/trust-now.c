/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns what was read, until the server has it. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "trust-now.h"

/* Thread of the worker. */
static void files_read(struct worker_job *job)
{
	struct trust_now *now = container_of(job, struct trust_now, job);
	size_t len = 0;
	FILE *errors = open_memstream(&now->text, &len);

	if (!errors)
		return;
	now->good = trust_read(&now->trust, now->srv, errors);
	fclose(errors);
}

/* Take trust away.  Returns 0, or -errno with the reason in *@text. */
static int withdraw(struct trust_now *now, const char **text)
{
	int rc = now->good ? 0 : -EINVAL;

	if (!rc && now->pending && now->pending->set.n)
		rc = secrets_set_narrow(&now->pending->set, &now->trust.set);
	*text = now->text && *now->text ? now->text : "out of memory";
	if (!rc)
		rc = trust_withdraw(&now->trust, now->srv);
	if (!rc)
		*text = now->trust.withdrawn ? now->trust.withdrawn : "";
	return rc;
}

static void files_are_read(struct worker_job *job)
{
	struct trust_now *now = container_of(job, struct trust_now, job);
	struct trust_now ended;
	const char *text;
	int rc = withdraw(now, &text);

	/* done() may begin the next one. */
	ended = *now;
	*now = (struct trust_now){ .srv = now->srv };
	ended.done(now, rc, text);
	trust_fini(&ended.trust);
	free(ended.text);
}

int trust_now_begin(struct trust_now *now, struct trust *pending, struct worker *worker,
		    void (*done)(struct trust_now *now, int rc, const char *text))
{
	int rc;

	now->pending = pending;
	now->done = done;
	now->job = (struct worker_job){ .work = files_read, .done = files_are_read };
	rc = worker_run(worker, &now->job);
	now->runs = !rc;
	return rc;
}
