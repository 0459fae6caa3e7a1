/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns whether a plan was committed; what is opened belongs to the exports.  Main thread. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "apply.h"
#include "export-state.h"
#include "log.h"

void apply_init(struct apply *a, struct exports *exports)
{
	a->exports = exports;
	a->runs = false;
}

/* ---- what can fail ---- */

static int refuse_running(const struct plan_step *step, char *err, size_t len)
{
	snprintf(err, len, "export '%s': cannot be %s while the server runs", step->name,
		 step->what == PLAN_ADD ? "added" : "removed");
	return -EOPNOTSUPP;
}

int apply_prepare(struct apply *a, const struct plan *plan, char *err, size_t len)
{
	int rc = 0;

	for (unsigned i = 0; i < plan->n && !rc; i++) {
		const struct plan_step *step = &plan->steps[i];

		if (step->what != PLAN_ADD && step->what != PLAN_REMOVE)
			continue;
		if (a->runs)
			rc = refuse_running(step, err, len);
		else if (step->what == PLAN_ADD)
			rc = exports_add(a->exports, step->spec, err, len);
	}
	return rc;
}

/* ---- the first plan ---- */

/* The state directory was used with result @rc.  Returns it if that is an error. */
static int state_result(const struct srv_conf *conf, int rc, char *err, size_t len)
{
	if (rc && conf->state_dir_asked) {
		snprintf(err, len, "--state-dir '%s' cannot be used: %s", conf->state_dir,
			 strerror(-rc));
		return rc;
	}
	if (rc)
		log_warn(NULL, "state directory '%s' cannot be used: %s: what this server learns "
			 "of failed syncs ends with it, so its clients take each restart for a "
			 "reboot of the host (--state-dir)", conf->state_dir, strerror(-rc));
	return 0;
}

static int take(struct exports *exports, const struct srv_conf *conf, char *err, size_t len)
{
	int rc = state_result(conf, export_state_dir(exports, conf->state_dir), err, len);

	if (rc)
		return rc;
	if (!conf->state_dir)
		log_warn(NULL, "no directory for what must outlive this server: its clients take "
			 "each restart for a reboot of the host (--state-dir)");
	exports->lock_timeout_ms = conf->lock_timeout_ms;
	/* ORDER: the lock first, because the state of a file belongs to the one who has it. */
	rc = conf->no_lock ? 0 : exports_lock(exports, err, len);
	if (!rc)
		rc = exports_claim(exports, err, len);
	if (!rc)
		rc = state_result(conf, export_state_open(exports), err, len);
	if (rc)
		export_state_close(exports);
	return rc;
}

/* ---- a later one ---- */

static void carry_out(const struct plan_step *step, const struct srv_conf *wanted)
{
	if (step->what == PLAN_CHANGE)
		step->option->carry_out(wanted, NULL);
	else if (step->what == PLAN_RESTART)
		log_warn(NULL, "--%s: another value holds from the next start on",
			 step->option->name);
}

int apply_commit(struct apply *a, const struct plan *plan, const struct srv_conf *wanted, char *err,
		 size_t len)
{
	int rc;

	if (!a->runs) {
		rc = take(a->exports, wanted, err, len);
		a->runs = !rc;
		return rc;
	}
	for (unsigned i = 0; i < plan->n; i++)
		carry_out(&plan->steps[i], wanted);
	return 0;
}

void apply_fini(struct apply *a)
{
	if (a->runs)
		export_state_close(a->exports);
	a->runs = false;
}
