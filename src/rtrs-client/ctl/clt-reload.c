/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns what was read of the files, until it is taken, and the worker that reads.  The worker sees
 * only what is constant of the configuration, and fills what the job owns. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "auth-creds.h"
#include "clt-conf.h"
#include "clt-reload.h"
#include "fab-tls.h"
#include "log.h"
#include "loop-call.h"
#include "signals.h"

static const char no_files[] = "there is no file to read again: expected auth-psk, tls-psk or "
			       "tls-certificates at the start";

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

static void forget(struct clt_reload *r)
{
	secrets_set_free(&r->set);
	free(r->mistakes);
	r->mistakes = NULL;
}

static void reload_again(struct clt_reload *r);

static void reload_ended(struct clt_reload *r, int rc, const char *text)
{
	tell(rc, text);
	/* ORDER: a reload that begins inside of done() is refused; @text may be forgotten next. */
	r->done(r->arg, rc, text);
	forget(r);
	r->state = CLT_RELOAD_IDLE;
	if (r->ending)
		loop_call_end(r->ending);
	else if (r->again)
		reload_again(r);
}

/* ---- take ---- */

static void files_are_read(struct worker_job *job)
{
	struct clt_reload *r = container_of(job, struct clt_reload, job);
	char *text = NULL;
	size_t len = 0;
	FILE *report;

	if (!r->good) {
		reload_ended(r, -EINVAL, r->mistakes ? r->mistakes : "out of memory");
		return;
	}
	/* ORDER: what may fail comes first. */
	report = open_memstream(&text, &len);
	if (!report) {
		reload_ended(r, -ENOMEM, "out of memory");
		return;
	}
	secrets_set_replace(&r->set, report);
	if (r->conf->front->secrets_replaced)
		r->conf->front->secrets_replaced();
	fclose(report);
	reload_ended(r, 0, text ? text : "");
	free(text);
}

/* ---- read ---- */

/* Thread of the worker. */
static void read_files(struct worker_job *job)
{
	struct clt_reload *r = container_of(job, struct clt_reload, job);
	size_t len = 0;
	FILE *errors = open_memstream(&r->mistakes, &len);

	r->good = errors;
	if (!errors)
		return;
	add_all(r->conf, &r->set);
	r->good = secrets_set_read(&r->set, errors);
	fclose(errors);
}

void clt_reload_run(struct clt_reload *r, clt_reload_done_fn *done, void *arg)
{
	int rc;

	if (r->ending || r->state != CLT_RELOAD_IDLE) {
		done(arg, r->ending ? -ECANCELED : -EBUSY, r->ending ? "the program ends" :
		     "another reload is being carried out: try again");
		return;
	}
	if (!has_files(r)) {
		done(arg, -ENOENT, no_files);
		return;
	}
	r->done = done;
	r->arg = arg;
	r->state = CLT_RELOAD_READING;
	r->job = (struct worker_job){ .work = read_files, .done = files_are_read };
	rc = worker_run(&r->worker, &r->job);
	if (rc)
		reload_ended(r, rc, "no thread to read files");
}

/* ---- SIGHUP ---- */

/* The log has the end of each reload. */
static void hup_ended(void *arg, int rc, const char *text)
{
}

static void reload_again(struct clt_reload *r)
{
	r->again = r->state == CLT_RELOAD_READING;
	if (!r->again && has_files(r))
		clt_reload_run(r, hup_ended, r);
	else if (!r->again)
		signals_tell_ignored(SIGHUP, no_files);
}

static void hup_msg(struct loop_msg *msg)
{
	reload_again(container_of(msg, struct clt_reload, hup_msg));
}

void clt_reload_hup(struct clt_reload *r)
{
	loop_post(r->loop, &r->hup_msg);
}

/* ---- begin and end ---- */

static void end_call(struct loop_call *call)
{
	struct clt_reload *r = call->arg;

	r->ending = call;
	if (r->state == CLT_RELOAD_IDLE)
		loop_call_end(call);
}

void clt_reload_begin(struct clt_reload *r, const struct clt_conf *conf, struct loop *loop)
{
	*r = (struct clt_reload){ .conf = conf, .loop = loop };
	worker_init(&r->worker, loop);
	loop_msg_init(&r->hup_msg, hup_msg);
}

void clt_reload_end(struct clt_reload *r)
{
	if (!r->loop)
		return;
	loop_call(r->loop, end_call, r);
	worker_fini(&r->worker);
	r->loop = NULL;
}
