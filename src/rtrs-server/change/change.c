/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes, one after the other, with the configurations that they lead to, until these hold.
 *
 * The happy path of a reload: read the files (worker), take away what they take away, wait for its
 * turn, carry out the plan and give the keys that are new, ask for sizes.  Other changes begin at
 * their turn: at the plan, at the sizes, at the lock, or at the file that is written.
 *
 * Possible failures: a change that fails is answered with one line, or a line for each mistake of a
 * file, and the configuration is as before, but for the keys that a reload has taken away. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apply.h"
#include "change-priv.h"
#include "conf.h"
#include "log.h"
#include "process.h"
#include "srv-auth.h"
#include "srv-state.h"
#include "srv-storage.h"
#include "tell.h"

#define CHANGE_ERR 512
/* The most changes that wait for commands, or run.  Each has one of the CTL_CLIENTS_MAX clients of
 * the control socket, which may have left; the others look at the server, or kick. */
#define CHANGE_CALLS_MAX 8u

static const char no_file[] = "there is no configuration file: the server was started without "
			      "--config, and with an export on its command line";

/* ---- doubts ---- */

static void print_doubt(void *arg, const char *line)
{
	fprintf(arg, "warning: %s\n", line);
}

static void each_doubt(const struct change_call *call, tell_doubt_fn *say, void *arg)
{
	const struct doubts doubts = tell_doubts_of(call->change->conf, call->change->srv);
	/* "NAME=PATH..." of a new export, "NAME,KEY=VALUE..." */
	char *name = call->text ? strndup(call->text, strcspn(call->text, "=,")) : NULL;

	if (!call->text)
		tell_doubts(&doubts, say, arg);
	else if (name)
		tell_doubts_export(&doubts, name, say, arg);
	free(name);
}

/* The plan of @call holds: tell the log of doubts, and keep them for the answer. */
static void note_doubts(struct change_call *call)
{
	size_t len = 0;
	FILE *out = open_memstream(&call->doubts, &len);

	if (out) {
		each_doubt(call, print_doubt, out);
		fclose(out);
	}
	each_doubt(call, tell_doubt, NULL);
}

/* ---- the end of a change ---- */

/* Returns @text with the lines @doubts behind it; NULL: none.  *@all: NULL, or for the caller to
 * free. */
static const char *and_doubts(const char *text, const char *doubts, char **all)
{
	if (!doubts || asprintf(all, "%s%s", text, doubts) < 0)
		*all = NULL;
	return *all ? *all : text;
}

/* Go on with a stop that waits for the threads. */
static void stop_goes_on(struct change *change)
{
	void (*stopped)(void *arg) = change->stopped;

	if (!stopped || changes_reads(&change->queue) || change->state == CHANGE_SIZING ||
	    change->state == CHANGE_SAVING)
		return;
	change->stopped = NULL;
	stopped(change->stopped_arg);
}

static void call_free(struct change_call *call)
{
	secrets_change_free(&call->secrets);
	conf_fini(&call->wanted);
	free(call->doubts);
	free(call->mistakes);
	free(call->text);
	free(call);
}

void change_call_end(struct changes_call *queued, int rc, const char *text)
{
	struct change_call *call = change_call_of(queued);
	struct change *change = call->change;
	const bool runs = call == change->now, sized = runs && change->state == CHANGE_SIZING;
	char *lines = runs ? change->text : NULL, *all = NULL;

	if (change_ops_of(call)->tell)
		change_ops_of(call)->tell(call, sized, rc, text);
	if (runs) {
		plan_fini(&change->plan);
		change->now = NULL;
		change->text = NULL;
		change->state = CHANGE_IDLE;
	}
	text = rc ? changes_and_done(text, sized ? lines : change_withdrawn(call), &all) :
		    and_doubts(text, call->doubts, &all);
	if (call->done)
		call->done(call->arg, rc, text);
	free(all);
	free(lines);
	call_free(call);
	stop_goes_on(change);
}

void change_ended(struct change *change, int rc, const char *text)
{
	changes_end(&change->now->secrets.queued, rc, text);
}

/* ---- the begin of a change ---- */

/* Tell why @what waits: the first change, which is carried out, or whose files are read. */
static void tell_waits(const struct change *change, const char *what)
{
	const struct export *now = change->apply->life->now;
	struct changes_call *first = list_entry(change->queue.all.next, struct changes_call, link);

	if (!change->now)
		log_info(NULL, "%s waits: the files of %s are being read", what,
			 change_ops_of(change_call_of(first))->what);
	else if (now)
		log_info(NULL, "%s waits: another change is being carried out: export '%s' (%s) "
			 "%s", what, now->name, now->path,
			 now->life.goal == EXPORT_PARSED ? "goes" : "comes");
	else
		log_info(NULL, "%s waits: another change is being carried out", what);
}

void change_add(struct change *change, const struct change_ops *ops, const char *text, bool force,
		change_done_fn *done, void *arg)
{
	struct change_call *call = calloc(1, sizeof(*call));

	if (call && text)
		call->text = strdup(text);
	if (!call || (text && !call->text)) {
		free(call);
		log_err(NULL, "%s: out of memory", ops->what);
		if (done)
			done(arg, -ENOMEM, "out of memory");
		return;
	}
	call->change = change;
	call->force = force;
	call->done = done;
	call->arg = arg;
	if (!list_empty(&change->queue.all) && !change->queue.stopping)
		tell_waits(change, ops->what);
	changes_add(&change->queue, &call->secrets.queued, &ops->queued);
}

struct change_call *change_take_turn(struct changes_call *queued, enum change_state state)
{
	struct change_call *call = change_call_of(queued);

	call->change->now = call;
	call->change->state = state;
	return call;
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

static void run_resize(struct changes_call *queued)
{
	struct change_call *call = change_take_turn(queued, CHANGE_SIZING);

	srv_storage_resize(call->change->srv, call->text, call->force, sizes_known, call->change);
}

/* ---- locks ---- */

static void lock_ended(void *arg, int rc, const char *text)
{
	change_ended(arg, rc, text);
}

static void run_break(struct changes_call *queued)
{
	struct change_call *call = change_take_turn(queued, CHANGE_BREAKING);
	struct change *change = call->change;

	srv_storage_break(change->srv, &change->breaking, call->text, call->force, lock_ended,
			  change);
}

/* ---- the plan ---- */

static void plan_ended(void *arg, int rc, const char *text)
{
	struct change *change = arg;
	struct change_call *call = change->now;

	if (!rc && conf_listeners_ask_otherwise(change->conf, &call->wanted))
		log_info(NULL, "the new auth= of --listen applies to new connections");
	if (!rc)
		conf_adopt(change->conf, &call->wanted);
	if (!rc && change_ops_of(call)->give)
		change->text = change_ops_of(call)->give(call, text);
	if (!rc)
		note_doubts(call);
	if (rc || !change_ops_of(call)->give) {
		change_ended(change, rc, text);
		return;
	}
	change->state = CHANGE_SIZING;
	srv_storage_resize(change->srv, NULL, call->force, sizes_known, change);
}

void change_run_plan(struct change_call *call)
{
	struct change *change = call->change;
	const bool reload = change_ops_of(call)->give;
	enum apply_openers openers = !call->force ? APPLY_SPARE_OPENERS :
				     reload ? APPLY_KICK_ALL : APPLY_KICK_OPENERS;
	int rc = plan_make(&change->plan, change->conf, &call->wanted);

	change->apply->lenient = reload && !call->wanted.strict;
	if (!rc)
		rc = apply_run(change->apply, &change->plan, &call->wanted, openers, plan_ended,
			       change);
	if (rc)
		change_ended(change, rc, "out of memory");
}

/* Make another configuration of the one that holds, by @edit, and carry the difference out. */
static void run_edit(struct changes_call *queued, int (*edit)(struct srv_conf *conf,
							      const char *text, char *err,
							      size_t len))
{
	struct change_call *call = change_take_turn(queued, CHANGE_APPLYING);
	char err[CHANGE_ERR] = "out of memory";
	int rc = conf_copy(&call->wanted, call->change->conf);

	if (!rc)
		rc = edit(&call->wanted, call->text, err, sizeof(err));
	if (rc)
		change_ended(call->change, rc, err);
	else
		change_run_plan(call);
}

/* Refuse @spec, "NAME=PATH...", whose name an export has. */
static int there_already(const struct srv_conf *conf, const char *spec, char *err, size_t len)
{
	char *name = strndup(spec, strcspn(spec, "="));
	const struct conf_export *ex = name ? conf_export_find(conf, name) : NULL;

	if (ex)
		snprintf(err, len, "export '%s' is there already, with the path '%s': rtrsctl "
			 "export set changes its limits and rules; for another path remove it "
			 "first", name, ex->spec.path);
	free(name);
	return -EEXIST;
}

/* An export that could not be saved would be gone with the next reload, which tells nobody. */
static int edit_add(struct srv_conf *conf, const char *spec, char *err, size_t len)
{
	int rc = conf_add_export(conf, spec, err, len);

	if (rc == -EEXIST)
		return there_already(conf, spec, err, len);
	return rc ? rc : conf_file_holds(conf->exports[conf->nexports - 1], err, len);
}

static void run_add(struct changes_call *queued)
{
	run_edit(queued, edit_add);
}

static int edit_remove(struct srv_conf *conf, const char *name, char *err, size_t len)
{
	snprintf(err, len, "there is no export '%s'", name);
	return conf_del_export(conf, name);
}

/* @call removes an export that was removed before, and that @openers still have open. */
static void remove_again(struct change_call *call, const char *openers)
{
	struct change *change = call->change;
	char err[CHANGE_ERR];
	size_t len = 0;
	FILE *out;

	change_take_turn(&call->secrets.queued, CHANGE_APPLYING);
	if (!call->force) {
		snprintf(err, sizeof(err), "export '%s' is removed already, and in use by %s: "
			 "removed when closed; --force kicks", call->text, openers);
		change_ended(change, -EBUSY, err);
		return;
	}
	out = open_memstream(&change->text, &len);
	if (!out) {
		change_ended(change, -ENOMEM, "out of memory");
		return;
	}
	apply_removed_kick(change->apply->life, call->text, out);
	fclose(out);
	change_ended(change, 0, change->text);
}

static void run_remove(struct changes_call *queued)
{
	struct change_call *call = change_call_of(queued);
	char openers[256] = "";

	if (!conf_export_find(call->change->conf, call->text))
		apply_removed_openers(call->change->apply->life, call->text, openers,
				      sizeof(openers));
	if (*openers)
		remove_again(call, openers);
	else
		run_edit(queued, edit_remove);
}

static void run_set(struct changes_call *queued)
{
	run_edit(queued, conf_export_options_set);
}

/* ---- the file that is written ---- */

/* Thread of the worker.  The configuration that holds stays as it is during a change. */
static void save(struct worker_job *job)
{
	struct change *change = container_of(job, struct change, job);
	struct srv_conf wanted = { 0 };
	char err[CHANGE_ERR];
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	change->saved = -EINVAL;
	if (!out)
		return;
	if (conf_parse(&wanted, CONF_RELOAD, change->argc, change->argv, out) == OPT_RUN)
		change->saved = conf_file_save(change->conf, &wanted, out, err, sizeof(err));
	else
		snprintf(err, sizeof(err), "%s", "");
	fclose(out);
	conf_fini(&wanted);
	change->text = text;
	if (!change->saved || !*err)
		return;			/* what was done, or the mistakes */
	free(text);
	change->text = strdup(err);
}

static void saved(struct worker_job *job)
{
	struct change *change = container_of(job, struct change, job);

	change_ended(change, change->saved, change->text ? change->text : "out of memory");
}

static void run_save(struct changes_call *queued)
{
	struct change *change = change_take_turn(queued, CHANGE_SAVING)->change;
	int rc;

	if (!change->conf->config) {
		change_ended(change, -ENOENT, no_file);
		return;
	}
	change->job = (struct worker_job){ .work = save, .done = saved };
	rc = changes_work(&change->queue, &change->job);
	if (rc)
		change_ended(change, rc, threads_strerror(rc));
}

/* ---- kinds ---- */

#define KIND(name, turn) &(const struct change_ops){ \
	.queued = { .run = (turn), .end = change_call_end }, .what = (name) }

static const struct change_ops *const kinds[CHANGE_KINDS] = {
	[CHANGE_RELOAD] = &change_reload_ops,
	[CHANGE_EXPORT_ADD] = KIND("export add", run_add),
	[CHANGE_EXPORT_REMOVE] = KIND("export remove", run_remove),
	[CHANGE_EXPORT_RESIZE] = KIND("export resize", run_resize),
	[CHANGE_EXPORT_BREAK] = KIND("export break", run_break),
	[CHANGE_EXPORT_SET] = KIND("export set", run_set),
	[CHANGE_EXPORT_SNAPSHOT] = &change_snapshot_ops,
	[CHANGE_SAVE] = KIND("save", run_save),
};

void change_hup(struct change *change)
{
	if (!changes_read_again(&change->queue, &change_hup_ops.queued))
		change_add(change, &change_hup_ops, NULL, false, NULL, NULL);
}

/* Refuse a change because too many wait.  What the files of a reload take away does not wait. */
static void refuse(struct change *change, enum change_kind what, change_done_fn *done, void *arg)
{
	const bool reload = what == CHANGE_RELOAD;

	if (reload)
		change_hup(change);
	done(arg, -EBUSY, reload ? "too many changes wait: the reload runs after them, as on "
	     "SIGHUP, and its result is in the log" : "too many changes wait: try again");
}

static bool too_many(const struct change *change)
{
	const struct changes_call *call;
	unsigned n = 0;

	list_for_each(call, &change->queue.all, link)
		n++;
	return n >= CHANGE_CALLS_MAX && !change->queue.stopping;
}

void change_run(struct change *change, enum change_kind what, const char *text, bool force,
		change_done_fn *done, void *arg)
{
	if (what == CHANGE_RELOAD && !change->conf->config && !srv_keys_any(change->srv))
		done(arg, -ENOENT, no_file);
	else if (too_many(change))
		refuse(change, what, done, arg);
	else
		change_add(change, kinds[what], text, force, done, arg);
}

/* ---- begin and end ---- */

void change_init(struct change *change, struct srv_conf *conf, struct apply *apply,
		 struct srv *srv, int argc, char **argv)
{
	*change = (struct change){ .conf = conf, .apply = apply, .srv = srv, .argc = argc,
				   .argv = argv };
	changes_init(&change->queue, srv_loop(srv));
}

void change_stop(struct change *change, void (*stopped)(void *arg), void *arg)
{
	changes_stop(&change->queue, "the server stops");
	if (change->state == CHANGE_BREAKING)
		srv_storage_break_stop(&change->breaking);
	change->stopped = stopped;
	change->stopped_arg = arg;
	stop_goes_on(change);
}

void change_fini(struct change *change)
{
	changes_fini(&change->queue);
}
