/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the configuration that a change leads to, until it holds, and the worker that reads files.
 *
 * A reload goes: read the files (worker), carry out the plan, ask for sizes.  Other changes begin
 * at the plan, or at the sizes. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "change.h"
#include "conf-save.h"
#include "fab-certs.h"
#include "log.h"
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
				   .argv = argv };
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

static void tell_reload(const struct change *change, int rc, const char *text)
{
	const char *file = file_of_reload(change->conf);

	if (rc && change->state == CHANGE_SIZING) {
		log_event(LOG_LEVEL_ERROR, LOG_FIELDS(RELOADED), NULL, "%s was read again, but no "
			  "store was asked for its size: %s", file, text);
		return;
	}
	if (rc) {
		log_event(LOG_LEVEL_ERROR, LOG_FIELDS(RELOAD_REFUSED), NULL,
			  "%s is not used, and all stays as it was:", file);
		tell_mistakes(text);
		return;
	}
	for (const char *line = text; *line;) {
		int len = (int)strcspn(line, "\n");

		log_info(NULL, "reload: %.*s", len, line);
		line += len + (line[len] == '\n');
	}
	log_event(LOG_LEVEL_INFO, LOG_FIELDS(RELOADED), NULL, "%s was read again%s",
		  file, *text ? "" : ": nothing has changed");
}

static void change_ended(struct change *change, int rc, const char *text)
{
	change_done_fn *done = change->done;

	if (change->reload && (change->conf->config || srv_keys_any(change->srv)))
		tell_reload(change, rc, text);
	plan_fini(&change->plan);
	fab_psk_free(&change->keys);
	fab_psk_free(&change->auth_keys);
	fab_certs_put(change->certs);
	change->certs = NULL;
	conf_fini(&change->wanted);
	change->state = CHANGE_IDLE;
	done(change->arg, rc, text);
	free(change->text);
	change->text = NULL;
	if (change->stopped)
		change->stopped(change->stopped_arg);
	else if (change->hup && change->state == CHANGE_IDLE)
		change_hup(change);
}

/* Refuse a change because of the one that is under way. */
static void tell_busy(const struct change *change, change_done_fn *done, void *arg)
{
	const struct export *now = change->apply->life->now;
	char text[CHANGE_ERR] = "another change is being carried out: try again";

	if (now)
		snprintf(text, sizeof(text), "another change is being carried out: export '%s' "
			 "(%s) %s: try again", now->name, now->path,
			 now->life.goal == EXPORT_PARSED ? "goes" : "comes");
	done(arg, -EBUSY, text);
}

/* Begin a change.  False: @done was called. */
static bool change_begin(struct change *change, change_done_fn *done, void *arg)
{
	if (change->stopping) {
		done(arg, -ECANCELED, "the server stops");
		return false;
	}
	if (change->state != CHANGE_IDLE) {
		tell_busy(change, done, arg);
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

void change_export_resize(struct change *change, const char *name, change_done_fn *done, void *arg)
{
	if (!change_begin(change, done, arg))
		return;
	change->state = CHANGE_SIZING;
	srv_resize(change->srv, name, sizes_known, change);
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

/* Take the keys and certificates of a reload.  Returns @text and a line for each key that has
 * changed, and for the certificates; NULL: no memory. */
static char *take_keys(struct change *change, const char *text)
{
	char *all = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&all, &len);

	if (!out)
		return NULL;
	fputs(text, out);
	if (change->keys.n)
		srv_keys_take(change->srv, &change->keys, out);
	if (change->auth_keys.n)
		srv_keys_take_auth(change->srv, &change->auth_keys, out);
	if (change->certs)
		srv_keys_take_certs(change->srv, change->certs, out);
	change->certs = NULL;
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
	change->text = take_keys(change, text);
	change->state = CHANGE_SIZING;
	srv_resize(change->srv, NULL, sizes_known, change);
}

/* change->wanted is complete. */
static void change_run(struct change *change)
{
	int rc = plan_make(&change->plan, change->conf, &change->wanted);

	change->state = CHANGE_APPLYING;
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

void change_export_add(struct change *change, const char *spec, change_done_fn *done, void *arg)
{
	if (change_begin(change, done, arg))
		change_edit(change, conf_add_export, spec);
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

/* False: a mistake, which is told in @errors. */
static bool keys_read(const char *option, const char *file, struct fab_psks *keys, FILE *errors)
{
	char why[256];

	if (!fab_psk_read(file, keys, why, sizeof(why)))
		return true;
	fprintf(errors, "--%s=%s: %s\n", option, file, why);
	return false;
}

/* The same, of certificates. */
static bool certs_read(struct change *change, FILE *errors)
{
	char why[2048];

	if (!fab_certs_read(change->conf->tls.certificates, true, &change->certs, why, sizeof(why)))
		return true;
	fprintf(errors, "--%s\n", why);
	return false;
}

/* Read keys and certificates again: the files that the server was started with. */
static bool all_keys_read(struct change *change, FILE *errors)
{
	const struct srv_conf *conf = change->conf;
	bool good = true;

	if (srv_keys_of_tls(change->srv))
		good = keys_read("tls-psk", conf->tls.psk, &change->keys, errors);
	if (srv_keys_of_auth(change->srv))
		good = keys_read("auth-psk", conf->auth.psk, &change->auth_keys, errors) && good;
	if (srv_keys_of_certs(change->srv))
		good = certs_read(change, errors) && good;
	return good;
}

/* Thread of the worker: names of hosts and users may take a while. */
static void files_read(struct worker_job *job)
{
	struct change *change = container_of(job, struct change, job);
	size_t len = 0;
	FILE *errors = open_memstream(&change->text, &len);

	change->read = OPT_FAILED;
	if (!errors)
		return;
	change->read = change->conf->config ?
		conf_parse_again(&change->wanted, change->argc, change->argv, errors) :
		conf_copy(&change->wanted, change->conf) ? OPT_FAILED : OPT_RUN;
	if (change->reload && !all_keys_read(change, errors))
		change->read = OPT_FAILED;
	fclose(errors);
}

static void files_are_read(struct worker_job *job)
{
	struct change *change = container_of(job, struct change, job);

	if (change->stopping) {
		change_ended(change, -ECANCELED, "the server stops");
	} else if (change->read != OPT_RUN) {
		change_ended(change, -EINVAL, change->text ? change->text : "out of memory");
	} else {
		free(change->text);
		change->text = NULL;
		change_run(change);
	}
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

void change_reload(struct change *change, bool force, change_done_fn *done, void *arg)
{
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
	if (!change->hup)
		change_reload(change, false, hup_ended, change);
}

/* ---- stop ---- */

void change_stop(struct change *change, void (*stopped)(void *arg), void *arg)
{
	change->stopping = true;
	change->hup = false;
	if (change->state == CHANGE_BREAKING)
		srv_break_stop(&change->breaking);
	if (change->state == CHANGE_READING || change->state == CHANGE_SIZING) {
		change->stopped = stopped;
		change->stopped_arg = arg;
	} else {
		stopped(arg);
	}
}
