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

static const struct clt_front_files *front_files(const struct clt_reload *r)
{
	const struct clt_front_files *files = r->conf->front->files;

	return files && files->any(files->arg) ? files : NULL;
}

static bool has_files(const struct clt_reload *r)
{
	return r->conf->auth || r->conf->tls || front_files(r);
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
	const struct clt_front_files *front = front_files(r);

	auth_key_put(r->auth);
	r->auth = NULL;
	clt_files_forget(&r->tls);
	if (front)
		front->forget(front->arg);
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

static void take_auth(struct clt_reload *r, FILE *report)
{
	struct auth_creds *creds = r->conf->auth;

	if (auth_key_same(r->auth, creds->own)) {
		fprintf(report, "auth-psk: nothing has changed\n");
		return;
	}
	r->auth = auth_creds_take_key(creds, r->auth);
	fprintf(report, "-auth key %s\n+auth key %s\n", r->auth->psk.name, creds->own->psk.name);
}

static void take_all(struct clt_reload *r, FILE *report)
{
	const struct clt_front_files *front = front_files(r);

	if (r->conf->auth)
		take_auth(r, report);
	if (r->conf->tls)
		clt_files_take(&r->tls, r->conf->tls, "", report);
	if (front)
		front->take(front->arg, report);
}

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
	take_all(r, report);
	fclose(report);
	reload_ended(r, 0, text ? text : "");
	free(text);
}

/* ---- read ---- */

/* Thread of the worker. */
static void read_files(struct worker_job *job)
{
	struct clt_reload *r = container_of(job, struct clt_reload, job);
	const struct clt_front_files *front = front_files(r);
	const struct clt_conf *conf = r->conf;
	size_t len = 0;
	FILE *errors = open_memstream(&r->mistakes, &len);
	char why[CLT_FRONT_ERR];

	r->good = errors;
	if (!errors)
		return;
	if (conf->auth && auth_key_read(&conf->auth_conf, &r->auth, why, sizeof(why))) {
		fprintf(errors, "%s\n", why);
		r->good = false;
	}
	r->good = clt_files_read(&r->tls, conf->tls, &conf->tls_conf, "", errors) && r->good;
	if (front)
		r->good = front->read(front->arg, errors) && r->good;
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
