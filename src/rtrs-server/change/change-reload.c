/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing: a reload is a change.  Its files are read when it comes, those of keys and
 * certificates first.  What these take away is taken away then, whatever the configuration says, or
 * its file system; the plan and the keys that are new wait for its turn. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "change-priv.h"
#include "changes.h"
#include "log.h"
#include "srv-auth.h"
#include "srv-listen.h"
#include "tell.h"

/* ---- what is told ---- */

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

/* A reload has failed because of @text, one line or more. */
static void tell_refused(const struct change_call *call, const char *file, const char *text)
{
	log_event(LOG_LEVEL_ERROR, LOG_FIELDS(RELOAD_REFUSED), NULL, *change_withdrawn(call) ?
		  "%s rejected, only keys and certificates changed:" :
		  "%s rejected, configuration unchanged:", file);
	tell_mistakes(text);
}

static void tell_end(const struct change_call *call, bool sized, int rc, const char *text)
{
	const char *file = file_of_reload(call->change->conf), *before = change_withdrawn(call);

	if (rc && sized) {
		log_event(LOG_LEVEL_ERROR, LOG_FIELDS(RELOADED), NULL, "%s was read again, but "
			  "sizes of the storage were not: %s", file, text);
		return;
	}
	if (rc) {
		tell_refused(call, file, text);
		return;
	}
	files_age_reset();
	/* The log has the lines from before the plan. */
	tell_changes(strncmp(text, before, strlen(before)) ? text : text + strlen(before));
	log_event(LOG_LEVEL_INFO, LOG_FIELDS(RELOADED), NULL, "%s was read again%s",
		  file, *text ? "" : ": nothing has changed");
}

/* ---- files ---- */

/* Keys and certificates in other files than those of @now take effect after a restart, which is not
 * to fail because of them. */
static void try_other_keys(struct change_call *call, const struct srv_conf *now, FILE *errors)
{
	const struct srv_conf *wanted = &call->wanted;

	if (!auth_files_same(&now->tls, &now->auth, &wanted->tls, &wanted->auth) &&
	    srv_keys_try(wanted, errors))
		call->read = OPT_FAILED;
}

/* Read the configuration into call->wanted, behind the keys. */
static void read_conf(struct change_call *call, FILE *errors)
{
	struct change *change = call->change;

	conf_fini(&call->wanted);
	call->wanted = (struct srv_conf){ 0 };
	call->read = conf_parse(&call->wanted, CONF_RELOAD, change->argc, change->argv,
				errors);
	if (call->read == OPT_RUN)
		try_other_keys(call, change->conf, errors);
}

/* Without a configuration its copy waits for the turn. */
static void read_keys(struct change_call *call, FILE *errors)
{
	secrets_set_free(&call->secrets.set);
	srv_keys_add(call->change->srv, &call->secrets.set);
	call->trusted = secrets_set_read(&call->secrets.set, errors);
	call->read = OPT_RUN;
}

/* Thread of the worker: names of hosts and users may take a while. */
static void read_part(struct changes_call *queued)
{
	struct change_call *call = change_call_of(queued);
	char *before = queued->part ? call->mistakes : NULL;
	FILE *errors;
	size_t len;

	if (!queued->part) {
		free(call->mistakes);
		call->trusted = false;
	}
	errors = open_memstream(&call->mistakes, &len);
	call->read = OPT_FAILED;
	if (!errors) {
		call->mistakes = before;
		return;
	}
	if (queued->part)
		read_conf(call, errors);
	else
		read_keys(call, errors);
	fprintf(errors, "%s", before ? before : "");
	fclose(errors);
	free(before);
}

/* Take away what the files of @call take away: a line of the log each.  0, or -ENOMEM. */
static int withdraw(struct change_call *call)
{
	char *lines;
	int rc = srv_keys_withdraw(call->change->srv, &call->secrets, &lines);

	tell_changes(lines ? lines : "");
	free(lines);
	return rc;
}

static int part_came(struct changes_call *queued, const char **why)
{
	struct change_call *call = change_call_of(queued);
	int rc = 0;

	*why = "out of memory";
	if (!queued->part && call->trusted)
		rc = withdraw(call);
	if (rc)
		return rc;
	if (!queued->part && call->change->conf->config)
		return CHANGES_MORE;
	if (call->read == OPT_RUN && call->trusted)
		return 0;
	*why = call->mistakes && *call->mistakes ? call->mistakes : "out of memory";
	return -EINVAL;
}

/* ---- the turn ---- */

static void run_reload(struct changes_call *queued)
{
	struct change_call *call = change_take_turn(queued, CHANGE_APPLYING);
	struct change *change = call->change;
	char err[512];

	if (!change->conf->config && conf_copy(&call->wanted, change->conf))
		change_ended(change, -ENOMEM, "out of memory");
	else if (srv_listen_has_keys(change->srv, &call->wanted, err, sizeof(err)))
		change_ended(change, -EINVAL, err);
	else
		change_run_plan(call);
}

static char *give_keys(struct change_call *call, const char *text)
{
	char *all = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&all, &len);

	if (!out)
		return NULL;
	fprintf(out, "%s%s", change_withdrawn(call), text);
	secrets_set_give(&call->secrets.set, out);
	fclose(out);
	return all;
}

#define OPS(name)                                                                                  \
	{                                                                                          \
		.queued = { .read = read_part, .came = part_came, .run = run_reload,               \
			    .end = change_call_end },                                              \
		.what = (name), .tell = tell_end, .give = give_keys,                               \
	}

const struct change_ops change_reload_ops = OPS("reload");
const struct change_ops change_hup_ops = OPS("SIGHUP");
