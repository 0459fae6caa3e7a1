/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the look until its end, and holds the exports that are looked at. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exports.h"
#include "size.h"
#include "srv-resize.h"
#include "srv-rnbd-state.h"

struct resize_one {
	struct srv_size_waiter wait;
	struct resize *resize;
	struct export *ex;
	uint64_t was;
};

struct resize {
	unsigned pending;		/* exports without an end, and srv_resize() itself */
	srv_resize_done_fn *done;
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
	r->done(r->arg, 0, r->text);
	free(r->text);
	free(r);
}

static void one_ended(struct srv_size_waiter *w)
{
	struct resize_one *one = container_of(w, struct resize_one, wait);
	char was[SIZE_TEXT_MAX], is[SIZE_TEXT_MAX];
	struct resize *r = one->resize;

	if (!srv_size_is_known(w))
		fprintf(r->out, "%s: the storage does not tell its size\n", one->ex->name);
	else if (export_size(one->ex) != one->was)
		fprintf(r->out, "%s %s -> %s\n", one->ex->name, size_text(one->was, was),
			size_text(export_size(one->ex), is));
	export_put(one->ex);
	resize_put(r);
}

static void resize_add(struct resize *r, struct srv_rnbd *rnbd, struct resize_one *one,
		       struct export *ex)
{
	*one = (struct resize_one){ .wait.then = one_ended, .resize = r, .ex = ex,
				    .was = export_size(ex) };
	r->pending++;
	export_hold(ex);
	if (srv_size_ask(rnbd, &one->wait, ex))
		one_ended(&one->wait);
}

static struct resize *resize_create(unsigned n, srv_resize_done_fn *done, void *arg)
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

void srv_resize(struct srv *srv, const char *name, srv_resize_done_fn *done, void *arg)
{
	struct srv_rnbd *rnbd = srv_rnbd(srv);
	unsigned n = 0, most = rnbd->exports->n;
	struct resize *r = resize_create(most, done, arg);
	struct export *ex;
	char err[RNBD_NAME_MAX + 32];

	if (!r) {
		done(arg, -ENOMEM, "out of memory");
		return;
	}
	if (name && !exports_find(rnbd->exports, name)) {
		snprintf(err, sizeof(err), "there is no export '%s'", name);
		fclose(r->out);
		free(r->text);
		free(r);
		done(arg, -ENOENT, err);
		return;
	}
	list_for_each(ex, &rnbd->exports->list, link) {
		if ((!name || !strcmp(name, ex->name)) && n < most)
			resize_add(r, rnbd, &r->all[n++], ex);
	}
	resize_put(r);
}
