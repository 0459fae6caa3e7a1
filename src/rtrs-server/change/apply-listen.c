/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing. */
#include <config.h>

#include <errno.h>

#include "apply-listen.h"
#include "log.h"
#include "srv-listen.h"

#define ERR_MAX 512

/* Stop listening at each address of the first @n steps that are @what.  Returns the number of these
 * steps. */
static unsigned stop_each(struct srv *srv, const struct plan *plan, enum plan_what what, unsigned n)
{
	unsigned stopped = 0;

	for (unsigned i = 0; i < n; i++) {
		if (plan->steps[i].what != what)
			continue;
		srv_listen_del(srv, &plan->steps[i].listener->addr);
		stopped++;
	}
	return stopped;
}

/* Listen at all new addresses, or at none. */
static int listen_each(struct srv *srv, const struct plan *plan, struct srv_conf *wanted,
		       char *err, size_t len)
{
	unsigned done = 0;
	bool any = false;
	int rc = 0;

	while (!rc && done < plan->n) {
		if (plan->steps[done].what == PLAN_LISTEN) {
			any = true;
			rc = srv_listen_add(srv, plan->steps[done].listener, err, len);
		}
		done += !rc;
	}
	if (!rc && any)
		rc = srv_listen_check(srv, wanted, err, len);
	if (!rc && any)
		srv_listen_note(srv, wanted);
	if (rc)
		stop_each(srv, plan, PLAN_LISTEN, done);
	return rc;
}

/* Listen at the addresses of each PLAN_UNLISTEN again. */
static void listen_as_before(struct srv *srv, const struct plan *plan)
{
	char err[ERR_MAX];

	for (unsigned i = 0; i < plan->n; i++) {
		const struct plan_step *step = &plan->steps[i];

		if (step->what == PLAN_UNLISTEN &&
		    srv_listen_add(srv, step->listener, err, ERR_MAX))
			log_err(NULL, "%s", err);
	}
}

int apply_listen(struct srv *srv, const struct plan *plan, struct srv_conf *wanted, char *err,
		 size_t len)
{
	int rc = listen_each(srv, plan, wanted, err, len);

	if (rc != -EADDRINUSE || !stop_each(srv, plan, PLAN_UNLISTEN, plan->n))
		return rc;
	rc = listen_each(srv, plan, wanted, err, len);
	if (rc)
		listen_as_before(srv, plan);
	return rc;
}
