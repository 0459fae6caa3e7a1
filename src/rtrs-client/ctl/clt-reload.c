/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns reloads until their end.  The worker sees only what is constant of the configuration, and
 * fills what the reload owns. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "auth-creds.h"
#include "clt-conf.h"
#include "clt-reload.h"
#include "fab-tls.h"
#include "log.h"
#include "loop-call.h"
#include "secrets-set.h"
#include "signals.h"

static const char no_files[] = "there is no file to read again: neither auth-psk, tls-psk nor "
			       "tls-certificates is in use";

struct reload {
	struct changes_call call;
	struct clt_reload *of;
	clt_reload_done_fn *done;	/* NULL: SIGHUP, which the log tells of */
	void *arg;
	struct secrets_set set;
	bool good;			/* the files */
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
	return set.n;
}

/* ---- the end of a reload ---- */

static void tell(int rc, const char *text)
{
	if (rc) {
		log_event(LOG_LEVEL_ERROR, LOG_FIELDS(RELOAD_REFUSED), NULL,
			  "files of keys and certificates are not used, and all stays as it was:");
		log_lines(LOG_LEVEL_ERROR, "", text);
		return;
	}
	log_lines(LOG_LEVEL_INFO, "reload: ", text);
	log_event(LOG_LEVEL_INFO, LOG_FIELDS(RELOADED), NULL,
		  "files of keys and certificates were read again");
}

static void forget(struct reload *reload)
{
	secrets_set_free(&reload->set);
	free(reload->text);
	reload->text = NULL;
}

static void reload_end(struct changes_call *call, int rc, const char *text)
{
	struct reload *reload = container_of(call, struct reload, call);
	struct clt_reload *r = reload->of;
	struct loop_call *ending = r->ending;

	tell(rc, text);
	if (reload->done)
		reload->done(reload->arg, rc, text);
	forget(reload);
	free(reload);
	if (!ending || !list_empty(&r->changes.all))
		return;
	r->ending = NULL;		/* the caller has left when a later reload ends */
	loop_call_end(ending);
}

/* ---- a reload ---- */

/* Thread of the worker. */
static void reload_read(struct changes_call *call)
{
	struct reload *reload = container_of(call, struct reload, call);
	size_t len = 0;
	FILE *errors;

	forget(reload);
	reload->good = false;
	errors = open_memstream(&reload->text, &len);
	if (!errors)
		return;
	add_all(reload->of->conf, &reload->set);
	reload->good = secrets_set_read(&reload->set, errors);
	fclose(errors);
}

static int reload_came(struct changes_call *call, const char **why)
{
	const struct reload *reload = container_of(call, struct reload, call);

	*why = reload->text ? reload->text : "out of memory";
	return reload->good ? 0 : -EINVAL;
}

static void reload_run(struct changes_call *call)
{
	struct reload *reload = container_of(call, struct reload, call);
	const struct clt_front *front = reload->of->conf->front;
	size_t len = 0;
	FILE *report;

	free(reload->text);
	/* ORDER: what may fail comes first. */
	report = open_memstream(&reload->text, &len);
	if (!report) {
		reload->text = NULL;
		changes_end(call, -ENOMEM, "out of memory");
		return;
	}
	secrets_set_replace(&reload->set, report);
	if (front->secrets_replaced)
		front->secrets_replaced();
	fclose(report);
	changes_end(call, 0, reload->text ? reload->text : "");
}

#define OPS { .read = reload_read, .came = reload_came, .run = reload_run, .end = reload_end }

static const struct changes_ops reload_ops = OPS, hup_ops = OPS;

static void add(struct clt_reload *r, const struct changes_ops *ops, clt_reload_done_fn *done,
		void *arg)
{
	struct reload *reload = calloc(1, sizeof(*reload));

	if (!reload) {
		tell(-ENOMEM, "out of memory");
		if (done)
			done(arg, -ENOMEM, "out of memory");
		return;
	}
	reload->of = r;
	reload->done = done;
	reload->arg = arg;
	changes_add(&r->changes, &reload->call, ops);
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

static void end_call(struct loop_call *call)
{
	struct clt_reload *r = call->arg;

	changes_stop(&r->changes, "the program ends");
	if (list_empty(&r->changes.all))
		loop_call_end(call);
	else
		r->ending = call;
}

void clt_reload_begin(struct clt_reload *r, const struct clt_conf *conf, struct loop *loop)
{
	*r = (struct clt_reload){ .conf = conf, .loop = loop };
	changes_init(&r->changes, loop);
	loop_msg_init(&r->hup_msg, hup_msg);
}

void clt_reload_end(struct clt_reload *r)
{
	if (!r->loop)
		return;
	loop_call(r->loop, end_call, r);
	changes_fini(&r->changes);
	r->loop = NULL;
}
