/* SPDX-License-Identifier: BSD-3-Clause */
/* Holds the exports that an administrator has looked at, or whose lock is taken, until the storage
 * has answered. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export-retry.h"
#include "export.h"
#include "exports.h"
#include "number.h"
#include "srv-open.h"
#include "srv-rnbd-state.h"
#include "srv-storage.h"
#include "util.h"

/* ---- a look ---- */

struct resize_one {
	struct srv_size_waiter wait;
	struct resize *resize;
	struct export *ex;
	uint64_t was;
};

struct resize {
	unsigned pending;		/* questions without an end, and the look itself */
	struct srv *srv;
	bool one_name;			/* that the administrator has named */
	bool force;			/* take a smaller size of an export in use, too */
	int rc;
	srv_storage_done_fn *done;
	void *arg;
	char *text;
	size_t len;
	FILE *out;			/* into @text */
	struct resize_one all[];
};

static void resize_put(struct resize *r)
{
	if (--r->pending)
		return;
	fclose(r->out);
	r->done(r->arg, r->rc, r->text);
	free(r->text);
	free(r);
}

static void put_named(struct resize *r, const struct export *ex)
{
	if (ex->named != EXPORT_NAMED_OPEN)
		fprintf(r->out, "%s: '%s' now names %s: %s\n", ex->name, ex->path,
			ex->named == EXPORT_NAMED_OTHER ? "another file" : "no file",
			ex->life.rung == EXPORT_SHOWN ? "clients have the old one open" :
			"it is opened again");
}

/* The smaller size of @ex was found and not taken. */
static void put_shrunk(struct resize *r, const struct export *ex)
{
	char was[SIZE_TEXT_MAX], is[SIZE_TEXT_MAX], openers[256];

	srv_close_openers(r->srv, ex, openers, sizeof(openers));
	size_text(ex->found, is);
	fprintf(r->out, "%s %s -> %s rejected: %s has it open, keeps the old size, and gets errors "
		"for requests beyond %s: restore the size of '%s', or accept the new size with "
		"--force\n", ex->name, size_text(export_size(ex), was), is,
		*openers ? openers : "a client", is, ex->path);
	if (r->one_name)
		r->rc = -EBUSY;
}

static void one_ended(struct srv_size_waiter *w)
{
	struct resize_one *one = container_of(w, struct resize_one, wait);
	char was[SIZE_TEXT_MAX], is[SIZE_TEXT_MAX];
	struct resize *r = one->resize;

	if (w->question == EXPORT_ASK_NAMED)
		put_named(r, one->ex);
	else if (!srv_size_is_known(w))
		fprintf(r->out, "%s: the storage does not report its size\n", one->ex->name);
	else if (one->ex->found < export_size(one->ex))
		put_shrunk(r, one->ex);
	else if (export_size(one->ex) != one->was)
		fprintf(r->out, "%s %s -> %s\n", one->ex->name, size_text(one->was, was),
			size_text(export_size(one->ex), is));
	else if (r->one_name)
		fprintf(r->out, "%s %s as before\n", one->ex->name, size_text(one->was, was));
	export_put(one->ex);
	resize_put(r);
}

static void resize_ask(struct resize *r, struct srv_rnbd *rnbd, struct resize_one *one,
		       struct export *ex, enum export_question question)
{
	*one = (struct resize_one){ .wait = { .then = one_ended, .question = question,
					      .spares_openers = !r->force },
				    .resize = r, .ex = ex, .was = export_size(ex) };
	r->pending++;
	export_hold(ex);
	if (srv_size_ask(rnbd, &one->wait, ex))
		one_ended(&one->wait);
}

static struct resize *resize_create(unsigned n, srv_storage_done_fn *done, void *arg)
{
	struct resize *r = calloc(1, sizeof(*r) + n * sizeof(r->all[0]));

	if (!r)
		return NULL;
	r->pending = 1;
	r->done = done;
	r->arg = arg;
	r->out = open_memstream(&r->text, &r->len);
	if (r->out)
		return r;
	free(r);
	return NULL;
}

/* Ask the export @name, or all if @name is NULL, each question from @first on. */
static void resize_begin(struct srv_rnbd *rnbd, const char *name, enum export_question first,
			 bool force, srv_storage_done_fn *done, void *arg)
{
	unsigned n = 0, most = EXPORT_QUESTIONS * rnbd->exports->n;
	struct resize *r = resize_create(most, done, arg);
	struct export *ex, *next;

	if (!r) {
		done(arg, -ENOMEM, "out of memory");
		return;
	}
	r->srv = rnbd->srv;
	r->one_name = name;
	r->force = force;
	list_for_each_safe(ex, next, &rnbd->exports->list, link) {
		export_hold(ex);
		for (unsigned q = first; q < EXPORT_QUESTIONS && n < most; q++) {
			if (!name || !strcmp(name, ex->name))
				resize_ask(r, rnbd, &r->all[n++], ex, (enum export_question)q);
		}
		export_put(ex);
	}
	resize_put(r);
}

void srv_storage_resize(struct srv *srv, const char *name, bool force, srv_storage_done_fn *done,
			void *arg)
{
	const struct exports *exports = srv_rnbd(srv)->exports;
	const struct export_retry *retry = name ? export_retry_find(exports, name) : NULL;
	char err[RNBD_NAME_MAX + 32];

	if (!name || exports_find(exports, name)) {
		resize_begin(srv_rnbd(srv), name, EXPORT_ASK_SIZE, force, done, arg);
	} else if (retry) {
		done(arg, -ENODEV, *retry->why ? retry->why : "the storage is being opened");
	} else {
		snprintf(err, sizeof(err), "there is no export '%s'", name);
		done(arg, -ENOENT, err);
	}
}

void srv_storage_look(struct srv *srv, srv_storage_done_fn *done, void *arg)
{
	resize_begin(srv_rnbd(srv), NULL, EXPORT_ASK_NAMED, false, done, arg);
}

/* ---- the lock of a shared export ---- */

static void break_ended(struct srv_storage_break *b, int rc, const char *text)
{
	struct export *ex = b->ex;

	b->ex = NULL;
	b->done(b->arg, rc, text);
	export_put(ex);
}

static void wish_done(struct store_lead_break *wish, int rc, const char *why)
{
	struct srv_storage_break *b = container_of(wish, struct srv_storage_break, wish);
	char text[RNBD_NAME_MAX + 512];

	if (!rc)
		snprintf(text, sizeof(text), "%s: clients of this server may write now%s%s\n",
			 b->ex->name, *why ? ": " : "", why);
	else
		snprintf(text, sizeof(text), "export '%s': %s%s", b->ex->name,
			 *why ? why : strerror(-rc), rc == -EBUSY && !wish->force ?
			 "; --force takes its lock, and fences it" : "");
	break_ended(b, rc, text);
}

void srv_storage_break(struct srv *srv, struct srv_storage_break *b, const char *name, bool force,
		       srv_storage_done_fn *done, void *arg)
{
	struct export *ex = exports_find(srv_rnbd(srv)->exports, name);
	char text[RNBD_NAME_MAX + 128];

	*b = (struct srv_storage_break){ .wish = { .force = force, .done = wish_done },
					 .done = done, .arg = arg };
	if (!ex || !ex->store->lead) {
		snprintf(text, sizeof(text), ex ? "export '%s' is not exported with shared=yes: no "
			 "other server can have its lock" : "there is no export '%s'", name);
		done(arg, ex ? -EINVAL : -ENOENT, text);
		return;
	}
	b->ex = ex;
	export_hold(ex);
	store_lead_break(ex->store, &b->wish);
}

void srv_storage_break_stop(struct srv_storage_break *b)
{
	store_lead_break_drop(b->ex->store);
	break_ended(b, -ECANCELED, "the server stops");
}
