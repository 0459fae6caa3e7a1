/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns reloads until their end, with the configurations that they lead to.  The worker sees only
 * what is constant of the configuration, and fills what the reload owns.
 *
 * The files of keys and certificates come first, then that of config=.  What the former take away
 * from NBD clients is gone before the latter is read; all else comes together, or not at all. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "auth-creds.h"
#include "changes.h"
#include "clt-change.h"
#include "clt-conf.h"
#include "clt-reload.h"
#include "fab-tls.h"
#include "log.h"
#include "loop.h"
#include "secrets-set.h"
#include "signals.h"

static const char no_files[] = "nothing to reload: this gateway uses no file of config, auth-psk, "
			       "tls-psk or tls-certificates";

struct reload {
	struct secrets_change secrets;
	struct clt_reload *of;
	clt_reload_done_fn *done;	/* NULL: SIGHUP, which the log tells of */
	void *arg;
	bool good;			/* the files */
	struct clt_conf *wanted;	/* of the file of config=; NULL: not read */
	struct clt_change change;
	char *text;			/* mistakes, or changes, a line each; NULL: no memory */
};

/* Have @set, which is all 0, read all files of @conf. */
static void add_all(const struct clt_conf *conf, struct secrets_set *set)
{
	if (conf->auth)
		secrets_set_add(set, conf->auth->secrets, conf->auth_conf.psk);
	secrets_set_add(set, fab_tls_secrets(conf->tls), fab_tls_conf_file(&conf->tls_conf));
	if (conf->front->add_secrets)
		conf->front->add_secrets(set);
}

static bool has_files(const struct clt_reload *r)
{
	struct secrets_set set = { 0 };

	add_all(r->conf, &set);
	return set.n || r->conf->config;
}

/* ---- the end of a reload ---- */

/* @file: that of config=; NULL: none.  @withdrawn: what was taken away before, or NULL. */
static void tell(const char *file, const char *withdrawn, int rc, const char *text)
{
	const char *what = file ? file : "files of keys and certificates";

	if (rc) {
		log_event(LOG_LEVEL_ERROR, LOG_FIELDS(RELOAD_REFUSED), NULL, withdrawn ?
			  "%s rejected, only keys and certificates of NBD clients changed:" :
			  "%s rejected, configuration unchanged:", what);
		log_lines(LOG_LEVEL_ERROR, "", text);
		return;
	}
	files_age_reset();
	log_lines(LOG_LEVEL_INFO, "reload: ", text);
	log_event(LOG_LEVEL_INFO, LOG_FIELDS(RELOADED), NULL, "%s %s read again", what,
		  file ? "was" : "were");
}

void clt_reload_ended(struct clt_reload *r)
{
	struct loop_call *ending = r->ending;

	if (!ending || !list_empty(&r->changes.all))
		return;
	r->ending = NULL;		/* the caller has left when a later change ends */
	loop_call_end(ending);
}

static void forget(struct reload *reload)
{
	secrets_set_free(&reload->secrets.set);
	clt_conf_free(reload->wanted);
	reload->wanted = NULL;
	free(reload->text);
	reload->text = NULL;
}

static void reload_end(struct changes_call *call, int rc, const char *text)
{
	struct reload *reload = container_of(call, struct reload, secrets.queued);
	struct clt_reload *r = reload->of;
	char *all = NULL;

	tell(r->conf->config, reload->secrets.withdrawn, rc, text);
	if (rc)
		text = changes_and_done(text, reload->secrets.withdrawn, &all);
	if (reload->done)
		reload->done(reload->arg, rc, text);
	free(all);
	secrets_change_free(&reload->secrets);
	forget(reload);
	free(reload);
	clt_reload_ended(r);
}

/* ---- files ---- */

static bool read_keys(struct reload *reload, FILE *errors)
{
	forget(reload);
	add_all(reload->of->conf, &reload->secrets.set);
	return secrets_set_read(&reload->secrets.set, errors);
}

static bool read_conf(struct reload *reload, FILE *errors)
{
	char *err = NULL;
	int rc = clt_conf_again(reload->of->conf, NULL, &reload->wanted, &err);

	if (rc)
		fprintf(errors, "%s\n", err ? err : "out of memory");
	free(err);
	return !rc;
}

/* Thread of the worker. */
static void reload_read(struct changes_call *call)
{
	struct reload *reload = container_of(call, struct reload, secrets.queued);
	char *text = NULL;
	size_t len = 0;
	FILE *errors = open_memstream(&text, &len);

	reload->good = false;
	if (!errors)
		return;
	reload->good = call->part ? read_conf(reload, errors) : read_keys(reload, errors);
	fclose(errors);
	free(reload->text);
	reload->text = text;
}

/* ---- what is taken away ---- */

/* Loops end whom they serve: gate.h. */
static unsigned ends_later(void *arg, uint64_t key)
{
	return 0;
}

/* Take away what the files of @reload take from NBD clients.  0, or -ENOMEM. */
static int withdraw(struct reload *reload)
{
	const struct clt_front *front = reload->of->conf->front;
	char *lines;
	int rc = secrets_change_withdraw(&reload->secrets, ends_later, NULL, &lines);

	if (lines && *lines && front->secrets_replaced)
		front->secrets_replaced();
	free(lines);
	return rc;
}

static int reload_came(struct changes_call *call, const char **why)
{
	struct reload *reload = container_of(call, struct reload, secrets.queued);

	*why = reload->text && *reload->text ? reload->text : "out of memory";
	if (!reload->good)
		return -EINVAL;
	if (call->part || !reload->of->conf->config)
		return 0;
	return withdraw(reload) ? -ENOMEM : CHANGES_MORE;
}

/* ---- the turn ---- */

/* The change of the configuration, if there is one, is carried out: the keys follow. */
static void reload_finish(struct reload *reload)
{
	const struct clt_front *front = reload->of->conf->front;
	size_t len = 0;
	FILE *report;

	free(reload->text);
	/* ORDER: what may fail comes first. */
	report = open_memstream(&reload->text, &len);
	if (!report) {
		reload->text = NULL;
		changes_end(&reload->secrets.queued, -ENOMEM, "out of memory");
		return;
	}
	if (reload->wanted)
		clt_change_finish(&reload->change, report);
	fprintf(report, "%s", reload->secrets.withdrawn ? reload->secrets.withdrawn : "");
	secrets_set_replace(&reload->secrets.set, report);
	if (front->secrets_replaced)
		front->secrets_replaced();
	fclose(report);
	changes_end(&reload->secrets.queued, 0, reload->text ? reload->text : "");
}

static void change_done(struct clt_change *change, int rc, const char *why)
{
	struct reload *reload = container_of(change, struct reload, change);

	reload->of->now = NULL;
	if (rc)
		changes_end(&reload->secrets.queued, rc, why);
	else
		reload_finish(reload);
}

/* False: some option that the file changes needs a restart, and reload->text says which. */
static bool may_change(struct reload *reload)
{
	size_t len = 0;
	FILE *errors;
	int rc;

	free(reload->text);
	errors = open_memstream(&reload->text, &len);
	if (!errors) {
		reload->text = NULL;
		return false;
	}
	rc = clt_change_check(reload->of->conf, reload->wanted, errors);
	fclose(errors);
	return !rc;
}

static void reload_run(struct changes_call *call)
{
	struct reload *reload = container_of(call, struct reload, secrets.queued);
	struct clt_reload *r = reload->of;

	if (!reload->wanted) {
		reload_finish(reload);
		return;
	}
	if (!may_change(reload)) {
		changes_end(call, -EINVAL, reload->text ? reload->text : "out of memory");
		return;
	}
	r->now = reload;
	clt_change_begin(&reload->change, r->sess, r->conf, reload->wanted, change_done);
}

#define OPS { .read = reload_read, .came = reload_came, .run = reload_run, .end = reload_end }

static const struct changes_ops reload_ops = OPS, hup_ops = OPS;

static void add(struct clt_reload *r, const struct changes_ops *ops, clt_reload_done_fn *done,
		void *arg)
{
	struct reload *reload = calloc(1, sizeof(*reload));

	if (!reload) {
		tell(r->conf->config, NULL, -ENOMEM, "out of memory");
		if (done)
			done(arg, -ENOMEM, "out of memory");
		return;
	}
	reload->of = r;
	reload->done = done;
	reload->arg = arg;
	changes_add(&r->changes, &reload->secrets.queued, ops);
}

void clt_reload_run(struct clt_reload *r, clt_reload_done_fn *done, void *arg)
{
	if (has_files(r))
		add(r, &reload_ops, done, arg);
	else
		done(arg, 0, no_files);	/* the unit's reload is no failure */
}

/* ---- SIGHUP ---- */

static void hup_msg(struct loop_msg *msg)
{
	struct clt_reload *r = container_of(msg, struct clt_reload, hup_msg);

	if (!has_files(r))
		signals_tell_ignored(SIGHUP, no_files);
	else if (!changes_read_again(&r->changes, &hup_ops))
		add(r, &hup_ops, NULL, NULL);
}

void clt_reload_hup(struct clt_reload *r)
{
	loop_post(r->loop, &r->hup_msg);
}

/* ---- begin and end ---- */

static void stop(struct clt_reload *r)
{
	changes_stop(&r->changes, "the program ends");
	if (r->now)
		clt_change_stop(&r->now->change);
}

static void stop_call(struct loop_call *call)
{
	stop(call->arg);
	loop_call_end(call);
}

static void end_call(struct loop_call *call)
{
	struct clt_reload *r = call->arg;

	stop(r);
	if (list_empty(&r->changes.all))
		loop_call_end(call);
	else
		r->ending = call;
}

void clt_reload_begin(struct clt_reload *r, struct clt_conf *conf, struct clt_sess *sess,
		      struct loop *loop)
{
	*r = (struct clt_reload){ .conf = conf, .sess = sess, .loop = loop };
	changes_init(&r->changes, loop);
	loop_msg_init(&r->hup_msg, hup_msg);
}

void clt_reload_stop(struct clt_reload *r)
{
	if (r->loop)
		loop_call(r->loop, stop_call, r);
}

void clt_reload_end(struct clt_reload *r)
{
	if (!r->loop)
		return;
	loop_call(r->loop, end_call, r);
	changes_fini(&r->changes);
	r->loop = NULL;
}
