/* SPDX-License-Identifier: BSD-3-Clause */
/* Carries out plans; main thread.  The first, at the start: open all exports, lock and claim them,
 * set their limits.  A later one: make its new exports ready, on the worker of exports; listen at
 * its new addresses; then add, remove and set what it says in one go, and stop listening.
 *
 * Possible failures: until all are ready nothing has changed, and exports that are ready go again.
 * With @lenient an export without its storage comes later (export-retry.h). */
#include <config.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apply.h"
#include "export-retry.h"
#include "export-state.h"
#include "log.h"
#include "number.h"
#include "process.h"
#include "srv-allow.h"
#include "srv-export.h"
#include "srv-limit.h"
#include "srv-listen.h"
#include "srv-open.h"
#include "srv-state.h"
#include "tell.h"

void apply_init(struct apply *a, struct exports *exports)
{
	*a = (struct apply){ .exports = exports };
	index_init(&a->lacking);
}

/* ---- the start: the first plan ---- */

int apply_prepare(struct apply *a, const struct plan *plan, char *err, size_t len)
{
	int rc = 0;

	for (unsigned i = 0; i < plan->n && !rc; i++) {
		const struct plan_step *step = &plan->steps[i];

		if (step->what != PLAN_ADD)
			continue;
		rc = exports_add(a->exports, step->spec, err, len);
		if (rc && a->lenient)
			rc = export_retry_add(a->exports, step->spec, err);
	}
	return rc;
}

/* The state directory was used with result @rc.  Returns it if that is an error. */
static int state_result(const struct srv_conf *conf, int rc, char *err, size_t len)
{
	if (rc && conf->state_dir.asked)
		return fmt_error(rc, err, len, "--state-dir '%s' cannot be used: %s",
				 conf->state_dir.path, fds_strerror(rc));
	if (rc)
		log_warn(NULL, "state directory '%s' cannot be used: %s: failed syncs are not "
			 "recorded for the next server, so clients treat each restart as a reboot "
			 "of the host (--state-dir)", conf->state_dir.path, fds_strerror(rc));
	return 0;
}

static int take_exports(struct exports *exports, const struct srv_conf *conf, char *err, size_t len)
{
	int rc = state_result(conf, export_state_dir(exports, conf->state_dir.path), err, len);

	if (rc)
		return rc;
	if (!conf->state_dir.path)
		log_warn(NULL, "no state directory: clients treat each restart as a reboot of the "
			 "host (--state-dir)");
	exports->lock_timeout_ms = conf->lock_timeout_ms;
	exports->aside = conf->strict ? NULL : export_retry_aside;
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

int apply_commit(struct apply *a, const struct srv_conf *wanted, char *err, size_t len)
{
	int rc = take_exports(a->exports, wanted, err, len);

	a->runs = !rc;
	return rc;
}

/* ---- listeners ---- */

/* Stop listening at each address of the first @n steps that are @what.  Returns how many. */
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
	char err[512];

	for (unsigned i = 0; i < plan->n; i++) {
		if (plan->steps[i].what == PLAN_UNLISTEN &&
		    srv_listen_add(srv, plan->steps[i].listener, err, sizeof(err)))
			log_err(NULL, "%s", err);
	}
}

/* Listen at the addresses that @plan adds, and note in @wanted which are missing.  An address that
 * is taken by a listener of a PLAN_UNLISTEN is set free first.  0, or -errno with one line in @err,
 * and the listeners are as before. */
static int apply_listen(struct srv *srv, const struct plan *plan, struct srv_conf *wanted,
			char *err, size_t len)
{
	int rc = listen_each(srv, plan, wanted, err, len);

	if (rc != -EADDRINUSE || !stop_each(srv, plan, PLAN_UNLISTEN, plan->n))
		return rc;
	rc = listen_each(srv, plan, wanted, err, len);
	if (rc)
		listen_as_before(srv, plan);
	return rc;
}

/* ---- a server that runs ---- */

/* Give the export @wanted->name its limits, rules and priority, if it has its storage; otherwise
 * apply_opened() does. */
static void apply_settings(struct apply *a, const struct conf_export *wanted)
{
	struct export *ex = exports_find(a->exports, wanted->spec.name);

	if (!ex || !ex->user)		/* those who serve it have the settings */
		return;
	srv_limit_set(a->srv, ex, &wanted->limits);
	srv_export_of(ex)->allow = wanted->allow;
	srv_export_of(ex)->read_only = wanted->read_only;
	if (a->openers)
		srv_close_kick_refused(a->srv, ex);
	srv_export_set_prio(a->srv, ex, wanted->priority);
}

/* An export that had no storage has got it. */
static void apply_opened(void *arg, struct export *ex)
{
	const struct conf_export *wanted;
	struct apply *a = arg;

	wanted = conf_export_find(a->srv->conf, ex->name);
	if (wanted)
		apply_settings(a, wanted);
	tell_export(ex);
	srv_open_retry(a->srv);
}

/* True if the export @name of the plan has no storage. */
static bool lacks_storage(const struct apply *a, const char *name)
{
	struct index_node *node;

	index_for_each(node, &a->lacking, index_text(name)) {
		if (!strcmp(container_of(node, struct apply_add, lacks)->step->name, name))
			return true;
	}
	return false;
}

/* The export of the PLAN_ADD @step has no storage because of @why: try again.  A predecessor of the
 * same name goes on. */
static void carry_on(struct apply *a, const struct plan_step *step, const char *why)
{
	fprintf(a->out, "%s %s: %s\n", step->name,
		exports_find(a->exports, step->name) ? "stale" : "failed", why);
	if (export_retry_add(a->exports, step->spec, why))
		log_err(step->name, "out of memory: '%s' is not tried again", step->spec->path);
}

/* @ready: the export of a PLAN_ADD. */
static void carry_out(struct apply *a, const struct plan_step *step, struct export *ready)
{
	char text[PLAN_TEXT_MAX];

	if (step->what == PLAN_REMOVE && lacks_storage(a, step->name))
		return;
	if (step->what == PLAN_LISTEN && step->listener->missing)
		return;
	plan_step_text(step, text, sizeof(text));
	if (step->what != PLAN_REMOVE)
		fprintf(a->out, "%s\n", text);
	switch (step->what) {
	case PLAN_REMOVE:
		apply_removed_forget(a, step->name);
		break;
	case PLAN_UNLISTEN:
		srv_listen_del(a->srv, &step->listener->addr);
		break;
	case PLAN_ADD:
		ready = export_life_show(a->life, ready);
		/* Of an export that is still in use it may have settings of before. */
		apply_settings(a, conf_export_find(a->wanted, ready->name));
		tell_export(ready);
		break;
	case PLAN_SET:
		apply_settings(a, step->ex);
		log_event(LOG_LEVEL_INFO, LOG_FIELDS(LIMITS_SET, .export = step->name), step->name,
			  "settings changed: %s", text);
		break;
	case PLAN_LISTEN:
		break;			/* apply_listen() */
	case PLAN_CHANGE:
		step->option->carry_out(a->wanted, NULL);
		break;
	case PLAN_RESTART:
		log_warn(NULL, "--%s changed: takes effect after a restart",
			 step->option->name);
		break;
	}
}

/* The plan is over: forget it, and tell the caller. */
static void run_tell(struct apply *a, int rc, const char *err)
{
	char *report;

	for (unsigned i = 0; i < a->plan->n; i++) {
		if (a->adds[i].failed)
			index_del(&a->lacking, &a->adds[i].lacks);
		free(a->adds[i].failed);
	}
	index_fini(&a->lacking);
	free(a->adds);
	a->adds = NULL;
	a->plan = NULL;
	a->openers = APPLY_SPARE_OPENERS;
	fclose(a->out);
	report = a->report;
	a->report = NULL;
	a->done(a->arg, rc, rc ? err : report);
	free(report);
}

/* All that was to be made ready is, or has failed. */
static void run_ended(struct apply *a)
{
	const struct plan *plan = a->plan;

	if (!a->rc)
		a->rc = apply_listen(a->srv, plan, a->wanted, a->err, sizeof(a->err));
	for (unsigned i = 0; i < plan->n; i++) {
		const struct apply_add *add = &a->adds[i];

		if (!a->rc && add->failed)
			carry_on(a, &plan->steps[i], add->failed);
		else if (!a->rc)
			carry_out(a, &plan->steps[i], add->ready);
		else if (add->ready)
			export_life_remove(a->life, add->ready);
	}
	if (!a->rc && a->openers == APPLY_KICK_ALL)
		apply_removed_kick(a->life, NULL, a->out);
	run_tell(a, a->rc, a->err);
}

static void run_failed(struct apply *a, int rc, const char *err)
{
	if (a->rc)
		return;
	a->rc = rc;
	snprintf(a->err, sizeof(a->err), "%s", err);
}

static void made_ready(struct export *ex, int rc, const char *err, void *arg)
{
	struct apply_add *add = arg;
	struct apply *a = add->apply;

	if (rc) {
		add->ready = NULL;
		add->failed = a->lenient ? strdup(err) : NULL;
		if (add->failed)
			index_add(&a->lacking, &add->lacks, index_text(add->step->name));
		else
			run_failed(a, rc, err);
	}
	if (!--a->pending)
		run_ended(a);
}

static void make_ready(struct apply *a, unsigned i)
{
	struct apply_add *add = &a->adds[i];

	*add = (struct apply_add){ .apply = a, .step = &a->plan->steps[i] };
	add->ready = export_life_add(a->life, add->step->spec, made_ready, add);
	if (add->ready)
		a->pending++;
	else
		run_failed(a, -ENOMEM, "out of memory");
}

void apply_begin(struct apply *a, struct export_life *life, struct srv *srv)
{
	a->life = life;
	a->srv = srv;
	life->opened = apply_opened;
	life->opened_arg = a;
	export_retry_begin(a->exports);
}

void apply_first_settings(struct apply *a, const struct plan *plan)
{
	for (unsigned i = 0; i < plan->n; i++) {
		if (plan->steps[i].what == PLAN_SET)
			apply_settings(a, plan->steps[i].ex);
	}
}

int apply_run(struct apply *a, const struct plan *plan, struct srv_conf *wanted,
	      enum apply_openers openers, apply_done_fn *done, void *arg)
{
	if (a->plan)
		return -EBUSY;
	a->out = open_memstream(&a->report, &a->report_len);
	if (!a->out)
		return -ENOMEM;
	a->adds = calloc(plan->n + 1, sizeof(*a->adds));
	if (!a->adds) {
		fclose(a->out);
		free(a->report);
		return -ENOMEM;
	}
	a->openers = openers;
	a->plan = plan;
	a->wanted = wanted;
	a->done = done;
	a->arg = arg;
	a->rc = 0;
	a->err[0] = '\0';
	for (unsigned i = 0; i < plan->n && !a->rc; i++) {
		if (plan->steps[i].what == PLAN_ADD)
			make_ready(a, i);
	}
	if (!a->pending)
		run_ended(a);
	return 0;
}

/* ---- the end ---- */

void apply_end(struct apply *a)
{
	export_retry_end(a->exports);
	if (a->plan)
		run_tell(a, -ECANCELED, "the server stops");
}

void apply_fini(struct apply *a)
{
	if (a->runs)
		export_state_close(a->exports);
	export_retry_fini(a->exports);
	apply_init(a, a->exports);
}
