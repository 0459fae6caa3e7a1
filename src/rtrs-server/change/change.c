/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the configuration that a change leads to, until it holds, and the worker that reads files.
 *
 * A reload goes: read the files (worker), take trust away, carry out the plan and give trust, ask
 * for sizes.  Other changes begin at the plan, or at the sizes. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "change.h"
#include "conf-save.h"
#include "log.h"
#include "plain-file.h"
#include "srv-keys.h"
#include "srv-resize.h"
#include "srv-state.h"
#include "tell.h"
#include "util.h"

#define CHANGE_ERR 512

void change_init(struct change *change, struct srv_conf *conf, struct apply *apply,
		 struct srv *srv, int argc, char **argv)
{
	*change = (struct change){ .conf = conf, .apply = apply, .srv = srv, .argc = argc,
				   .argv = argv, .trust_now.srv = srv };
	worker_init(&change->worker, srv_loop(srv));
}

void change_fini(struct change *change)
{
	worker_fini(&change->worker);
}

/* ---- the end of a change ---- */

/* The file that a reload is about: that of the configuration, or else of keys or certificates. */
static const char *file_of_reload(const struct srv_conf *conf)
{
	const char *files[] = { conf->config, conf->tls.psk, conf->tls.certificates,
				conf->auth.psk };
	unsigned i = 0;

	while (!files[i] && i + 1 < ARRAY_SIZE(files))
		i++;
	return files[i];
}

/* The lines of trust that a reload has taken away; "": none. */
static const char *withdrawn(const struct change *change)
{
	return change->trust.withdrawn ? change->trust.withdrawn : "";
}

/* A reload has failed because of @text, one line or more. */
static void tell_refused(const struct change *change, const char *file, const char *text)
{
	log_event(LOG_LEVEL_ERROR, LOG_FIELDS(RELOAD_REFUSED), NULL, *withdrawn(change) ?
		  "%s has changed keys and certificates alone, and all else stays as it was:" :
		  "%s is not used, and all stays as it was:", file);
	tell_mistakes(text);
}

static void tell_reload(const struct change *change, int rc, const char *text)
{
	const char *file = file_of_reload(change->conf), *before = withdrawn(change);

	if (rc && change->state == CHANGE_SIZING) {
		log_event(LOG_LEVEL_ERROR, LOG_FIELDS(RELOADED), NULL, "%s was read again, but no "
			  "store was asked for its size: %s", file, text);
		return;
	}
	if (rc) {
		tell_refused(change, file, text);
		return;
	}
	/* The log has the lines from before the plan. */
	tell_changes(strncmp(text, before, strlen(before)) ? text : text + strlen(before));
	log_event(LOG_LEVEL_INFO, LOG_FIELDS(RELOADED), NULL, "%s was read again%s",
		  file, *text ? "" : ": nothing has changed");
}

/* Returns @why, the reason of a failure, with @lines behind it, which the failed reload has done;
 * NULL: none.  *@all: NULL, or for the caller to free. */
static const char *and_done(const char *why, const char *lines, char **all)
{
	*all = NULL;
	if (!lines || !*lines)
		return why;
	if (asprintf(all, "%s\nonly this has changed, and all else stays as it was:\n%s", why,
		     lines) < 0)
		*all = NULL;
	return *all ? *all : why;
}

/* Choose the words for a change that ended with @rc and @text.  *@all: as of and_done(). */
static const char *told(const struct change *change, int rc, const char *text, char **all)
{
	const char *lines = change->state == CHANGE_SIZING ? change->text : withdrawn(change);

	return and_done(text, rc ? lines : NULL, all);
}

/* True if a thread works for a change. */
static bool is_read_or_asked(const struct change *change)
{
	return change->state == CHANGE_READING || change->state == CHANGE_SIZING ||
	       change->trust_now.runs;
}

/* Go on with a stop that waits for the threads. */
static void stop_goes_on(struct change *change)
{
	void (*stopped)(void *arg) = change->stopped;

	if (!stopped || is_read_or_asked(change))
		return;
	change->stopped = NULL;
	stopped(change->stopped_arg);
}

static void change_ended(struct change *change, int rc, const char *text)
{
	change_done_fn *done = change->done;
	const char *said;
	char *all;

	if (change->reload && (change->conf->config || srv_keys_any(change->srv)))
		tell_reload(change, rc, text);
	said = told(change, rc, text, &all);
	plan_fini(&change->plan);
	trust_fini(&change->trust);
	/* The next change may have its files read in front of the end of this. */
	change->trust_now.pending = NULL;
	conf_fini(&change->wanted);
	change->state = CHANGE_IDLE;
	done(change->arg, rc, said);
	free(all);
	free(change->text);
	change->text = NULL;
	if (change->stopping)
		stop_goes_on(change);
	else if (change->hup && change->state == CHANGE_IDLE)
		change_hup(change);
}

/* Why a change is refused: the one that is under way. */
static const char *describe_busy(const struct change *change, char text[CHANGE_ERR])
{
	const struct export *now = change->apply->life->now;

	snprintf(text, CHANGE_ERR, "another change is being carried out: try again");
	if (now)
		snprintf(text, CHANGE_ERR, "another change is being carried out: export '%s' "
			 "(%s) %s: try again", now->name, now->path,
			 now->life.goal == EXPORT_PARSED ? "goes" : "comes");
	return text;
}

/* Begin a change.  False: @done was called. */
static bool change_begin(struct change *change, change_done_fn *done, void *arg)
{
	char text[CHANGE_ERR];

	if (change->stopping) {
		done(arg, -ECANCELED, "the server stops");
		return false;
	}
	if (change->state != CHANGE_IDLE) {
		done(arg, -EBUSY, describe_busy(change, text));
		return false;
	}
	change->done = done;
	change->arg = arg;
	change->reload = false;
	change->force = false;
	change->plan = (struct plan){ 0 };
	change->wanted = (struct srv_conf){ 0 };
	return true;
}

/* ---- sizes ---- */

static void sizes_known(void *arg, int rc, const char *text)
{
	struct change *change = arg;
	char *all = NULL;

	if (rc || !change->text) {
		change_ended(change, rc, text);
		return;
	}
	if (asprintf(&all, "%s%s", change->text, text) < 0)
		all = NULL;
	change_ended(change, 0, all ? all : change->text);
	free(all);
}

void change_export_resize(struct change *change, const char *name, bool force,
			  change_done_fn *done, void *arg)
{
	if (!change_begin(change, done, arg))
		return;
	change->state = CHANGE_SIZING;
	srv_resize(change->srv, name, force, sizes_known, change);
}

/* ---- locks ---- */

static void lock_ended(void *arg, int rc, const char *text)
{
	change_ended(arg, rc, text);
}

void change_export_break(struct change *change, const char *name, bool force,
			 change_done_fn *done, void *arg)
{
	if (!change_begin(change, done, arg))
		return;
	change->state = CHANGE_BREAKING;
	srv_break(change->srv, &change->breaking, name, force, lock_ended, change);
}

/* ---- the plan ---- */

/* Give trust behind the plan of a reload.  Returns all lines of the reload up to here: trust that
 * was taken away, @text of the plan, keys that are new; NULL: no memory. */
static char *give_trust(struct change *change, const char *text)
{
	char *all = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&all, &len);

	if (!out)
		return NULL;
	fprintf(out, "%s%s", withdrawn(change), text);
	secrets_set_give(&change->trust.set, out);
	fclose(out);
	return all;
}

static void plan_ended(void *arg, int rc, const char *text)
{
	struct change *change = arg;

	if (!rc && conf_listeners_ask_otherwise(change->conf, &change->wanted))
		log_info(NULL, "auth= of --listen holds as written, for clients that come");
	if (!rc)
		conf_adopt(change->conf, &change->wanted);
	if (rc || !change->reload) {
		change_ended(change, rc, text);
		return;
	}
	tell_reach(change->conf);
	change->text = give_trust(change, text);
	change->state = CHANGE_SIZING;
	srv_resize(change->srv, NULL, change->force, sizes_known, change);
}

/* change->wanted is complete. */
static void change_run(struct change *change)
{
	int rc = plan_make(&change->plan, change->conf, &change->wanted);

	change->state = CHANGE_APPLYING;
	change->apply->lenient = change->reload && !change->wanted.strict;
	if (!rc)
		rc = apply_run(change->apply, &change->plan, &change->wanted, change->force,
			       plan_ended, change);
	if (rc)
		change_ended(change, rc, "out of memory");
}

/* Make another configuration of the one that holds, by @edit, and carry the difference out. */
static void change_edit(struct change *change,
			int (*edit)(struct srv_conf *conf, const char *text, char *err, size_t len),
			const char *text)
{
	char err[CHANGE_ERR] = "out of memory";
	int rc = conf_copy(&change->wanted, change->conf);

	if (!rc)
		rc = edit(&change->wanted, text, err, sizeof(err));
	if (rc)
		change_ended(change, rc, err);
	else
		change_run(change);
}

/* An export that could not be saved would be gone with the next reload, which tells nobody. */
static int edit_add(struct srv_conf *conf, const char *spec, char *err, size_t len)
{
	int rc = conf_add_export(conf, spec, err, len);

	return rc ? rc : conf_save_holds(conf->exports[conf->nexports - 1], err, len);
}

void change_export_add(struct change *change, const char *spec, change_done_fn *done, void *arg)
{
	if (change_begin(change, done, arg))
		change_edit(change, edit_add, spec);
}

static int edit_remove(struct srv_conf *conf, const char *name, char *err, size_t len)
{
	snprintf(err, len, "there is no export '%s'", name);
	return conf_del_export(conf, name);
}

void change_export_remove(struct change *change, const char *name, bool force,
			  change_done_fn *done, void *arg)
{
	if (!change_begin(change, done, arg))
		return;
	change->force = force;
	change_edit(change, edit_remove, name);
}

void change_export_set(struct change *change, const char *text, bool force, change_done_fn *done,
		       void *arg)
{
	if (!change_begin(change, done, arg))
		return;
	change->force = force;
	change_edit(change, conf_export_options_set, text);
}

/* ---- files ---- */

/* Thread of the worker: names of hosts and users may take a while. */
static void files_read(struct worker_job *job)
{
	struct change *change = container_of(job, struct change, job);
	size_t len = 0;
	FILE *errors = open_memstream(&change->text, &len);

	change->read = OPT_FAILED;
	change->trusted = false;
	if (!errors)
		return;
	change->read = change->conf->config ?
		conf_parse_again(&change->wanted, change->argc, change->argv, errors) :
		conf_copy(&change->wanted, change->conf) ? OPT_FAILED : OPT_RUN;
	change->trusted = change->reload &&
		trust_read(&change->trust, change->srv, errors);
	if (change->reload && !change->trusted)
		change->read = OPT_FAILED;
	fclose(errors);
}

static void files_are_read(struct worker_job *job)
{
	struct change *change = container_of(job, struct change, job);
	int rc;

	if (change->stopping) {
		change_ended(change, -ECANCELED, "the server stops");
		return;
	}
	if (change->read != OPT_RUN) {
		/* A file system that does not answer is no mistake, and keeps no key alive. */
		if (change->trusted && plain_file_any_left())
			trust_withdraw(&change->trust, change->srv);
		change_ended(change, -EINVAL, change->text ? change->text : "out of memory");
		return;
	}
	free(change->text);
	change->text = NULL;
	/* ORDER: the plan may wait for an export, and fail. */
	rc = trust_withdraw(&change->trust, change->srv);
	if (rc)
		change_ended(change, rc, "out of memory");
	else
		change_run(change);
}

/* Have @work read the files on the worker, and go on in @then. */
static void files_begin(struct change *change, void (*work)(struct worker_job *job),
			void (*then)(struct worker_job *job))
{
	int rc;

	if (!change->conf->config && !(change->reload && srv_keys_any(change->srv))) {
		change_ended(change, -ENOENT, "there is no configuration file: the server was "
			     "started without --config, and with an export on its command line");
		return;
	}
	change->state = CHANGE_READING;
	change->job = (struct worker_job){ .work = work, .done = then };
	rc = worker_run(&change->worker, &change->job);
	if (rc)
		change_ended(change, rc, "no thread to read files");
}

/* A reload that is refused has taken trust away, or @rc. */
static void trust_now_ended(struct trust_now *now, int rc, const char *text)
{
	struct change *change = container_of(now, struct change, trust_now);
	char busy[CHANGE_ERR], *all = NULL;

	if (change->stopping)
		change->refused(change->refused_arg, -ECANCELED, "the server stops");
	else if (rc)
		change->refused(change->refused_arg, rc, text);
	else
		change->refused(change->refused_arg, -EBUSY,
				and_done(describe_busy(change, busy), text, &all));
	free(all);
	stop_goes_on(change);
	if (change->hup_again && !change->stopping)
		change_hup(change);
}

/* Take trust away for a reload that another change keeps from more.  False: there is no trust to
 * take away, or another reload does that, or this fails. */
static bool reload_trust(struct change *change, change_done_fn *done, void *arg)
{
	if (change->stopping || change->state == CHANGE_IDLE || change->trust_now.runs ||
	    !srv_keys_any(change->srv))
		return false;
	change->refused = done;
	change->refused_arg = arg;
	return !trust_now_begin(&change->trust_now, &change->trust, &change->worker,
				trust_now_ended);
}

void change_reload(struct change *change, bool force, change_done_fn *done, void *arg)
{
	if (reload_trust(change, done, arg))
		return;
	if (!change_begin(change, done, arg))
		return;
	change->reload = true;
	change->force = force;
	files_begin(change, files_read, files_are_read);
}

/* Thread of the worker.  The configuration that holds stays as it is during a change. */
static void files_save(struct worker_job *job)
{
	struct change *change = container_of(job, struct change, job);
	char err[CHANGE_ERR];
	char *text = NULL;
	size_t len = 0;
	FILE *report;

	files_read(job);
	change->saved = -EINVAL;
	if (change->read != OPT_RUN)
		return;			/* change->text has the mistakes */
	report = open_memstream(&text, &len);
	if (!report)
		return;
	change->saved = conf_save(change->conf, &change->wanted, report, err, sizeof(err));
	fclose(report);
	free(change->text);
	change->text = text;
	if (!change->saved)
		return;
	free(text);
	change->text = strdup(err);
}

static void files_are_saved(struct worker_job *job)
{
	struct change *change = container_of(job, struct change, job);

	change_ended(change, change->saved, change->text ? change->text : "out of memory");
}

void change_save(struct change *change, change_done_fn *done, void *arg)
{
	if (change_begin(change, done, arg))
		files_begin(change, files_save, files_are_saved);
}

/* ---- SIGHUP ---- */

/* The log has the end of each reload. */
static void hup_ended(void *arg, int rc, const char *text)
{
	(void)arg;
	(void)rc;
	(void)text;
}

void change_hup(struct change *change)
{
	change->hup = change->state != CHANGE_IDLE;
	change->hup_again = change->trust_now.runs;
	change_reload(change, false, hup_ended, change);
}

/* ---- stop ---- */

void change_stop(struct change *change, void (*stopped)(void *arg), void *arg)
{
	change->stopping = true;
	change->hup = false;
	if (change->state == CHANGE_BREAKING)
		srv_break_stop(&change->breaking);
	change->stopped = stopped;
	change->stopped_arg = arg;
	stop_goes_on(change);
}
