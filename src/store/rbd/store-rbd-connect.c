/* SPDX-License-Identifier: BSD-3-Clause */
/* The way to an opened image: its name, Ceph's libraries, the connection; and back.  Owns what a
 * way has got until its end; a caller that waits no more leaves all of it to the thread of the
 * call. */
#include <config.h>

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exports.h"
#include "log.h"
#include "process.h"
#include "store-rbd-priv.h"
#include "util.h"
#include "worker.h"

/* ---- the name of an image ---- */

#define PARTS 3u

/* Cut target->text, which has no prefix, into parts.  False: there is a part too few, or empty. */
static bool cut(struct rbd_target *target)
{
	char *parts[PARTS], *rest = target->text, *part;
	char *snap = strchr(rest, '@');
	unsigned n = 0;

	if (snap) {
		*snap++ = '\0';
		if (!*snap || strpbrk(snap, "@/"))
			return false;
	}
	while ((part = strsep(&rest, "/"))) {
		if (!*part || n == PARTS)
			return false;
		parts[n++] = part;
	}
	if (n < 2)
		return false;
	target->pool = parts[0];
	target->space = n == PARTS ? parts[1] : "";
	target->image = parts[n - 1];
	target->snap = snap;
	return true;
}

int rbd_target_parse(struct rbd_target *target, const char *text)
{
	if (strncmp(text, RBD_TARGET_PREFIX, strlen(RBD_TARGET_PREFIX)))
		return -EINVAL;
	target->text = strdup(text + strlen(RBD_TARGET_PREFIX));
	if (!target->text)
		return -ENOMEM;
	if (cut(target))
		return 0;
	rbd_target_fini(target);
	return -EINVAL;
}

void rbd_target_fini(struct rbd_target *target)
{
	free(target->text);
	*target = (struct rbd_target){ 0 };
}

/* ---- Ceph's libraries ---- */

/* They are loaded for as long as the process runs: threads of theirs do not end before. */

struct rbd_lib rbd_lib;

struct symbol {
	const char *name;
	size_t at;			/* in struct rbd_lib */
};

#define SYMBOL(name) { #name, offsetof(struct rbd_lib, name) },
static const struct symbol rados_symbols[] = { RBD_LIB_RADOS(SYMBOL) };
static const struct symbol rbd_symbols[] = { RBD_LIB_RBD(SYMBOL) };

static pthread_once_t load_once = PTHREAD_ONCE_INIT;
static char load_error[256];		/* empty: both are loaded */

static void load(const char *file, const struct symbol *symbols, unsigned n)
{
	void *handle = *load_error ? NULL : dlopen(file, RTLD_NOW | RTLD_LOCAL);
	void *function;

	for (unsigned i = 0; handle && i < n; i++) {
		function = dlsym(handle, symbols[i].name);
		if (!function)
			handle = NULL;
		memcpy((char *)&rbd_lib + symbols[i].at, &function, sizeof(function));
	}
	if (!handle && !*load_error)
		snprintf(load_error, sizeof(load_error), "%s", dlerror());
}

static void load_both(void)
{
	load("librados.so.2", rados_symbols, ARRAY_SIZE(rados_symbols));
	load("librbd.so.1", rbd_symbols, ARRAY_SIZE(rbd_symbols));
}

int rbd_lib_load(char *err, size_t errlen)
{
	pthread_once(&load_once, load_both);
	if (!*load_error)
		return 0;
	snprintf(err, errlen, "needs Ceph's libraries: %s: install librbd1", load_error);
	return -ENOENT;
}

/* ---- connect ---- */

static void connect_aside(void *arg)
{
	struct rbd_connect *c = arg;

	c->rc = 0;
	for (unsigned i = 0; i < ARRAY_SIZE(c->phase->steps) && c->phase->steps[i] && !c->rc; i++)
		c->rc = c->phase->steps[i](c);
}

static void connect_free(struct rbd_connect *c)
{
	rbd_target_fini(&c->copy.target);
	export_spec_free(&c->copy.ex.spec);
	free(c);
}

static void connect_left(void *arg)
{
	struct rbd_connect *c = arg;

	store_rbd_connect_undo(&c->copy.handle);
	connect_free(c);
}

static struct rbd_connect *connect_create(const struct store_rbd *r)
{
	struct rbd_connect *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->r = &c->copy;
	if (!rbd_target_parse(&c->copy.target, r->ex.path) &&
	    !export_spec_copy(&c->copy.ex.spec, &r->ex.spec))
		return c;
	connect_free(c);
	return NULL;
}

/* Give @r what @c has got. */
static void connect_end(struct store_rbd *r, struct rbd_connect *c, char *err, size_t errlen)
{
	const struct export *got = &c->copy.ex;

	r->handle = c->copy.handle;
	r->opened++;
	atomic_store(&r->lost, 0);
	memcpy(r->header, c->copy.header, sizeof(r->header));
	r->features = c->copy.features;
	if (c->rc) {
		snprintf(err, errlen, "%s", c->err);
	} else {
		r->ex.medium = got->medium;
		r->ex.ident = got->ident;
		r->ex.id = got->id;
		atomic_store(&r->ex.size, export_size(got));
	}
	connect_free(c);
}

struct rbd_patience store_rbd_connect_patience(const struct store_rbd *r)
{
	struct exports *e = r->ex.all;

	/* SIGTERM ends a start by itself. */
	return (struct rbd_patience){ .limit_s = e->life ? r->timeout_s : 0,
				      .stops = &e->stopping, .ex = &r->ex };
}

/* 0: the phase has ended.  Another value: @c is not ours any more. */
static int run_phase(const struct store_rbd *r, struct rbd_connect *c, char *err, size_t errlen)
{
	struct rbd_patience patience = store_rbd_connect_patience(r);
	const struct rbd_phase *phase = c->phase;
	struct aside *call;
	int rc = aside_begin(&call, connect_aside, connect_left, c);

	if (rc) {
		c->rc = rc;
		snprintf(c->err, sizeof(c->err), "cannot be opened: %s",
			 threads_strerror(rc));
		return 0;
	}
	patience.limit_s += patience.limit_s ? phase->grace_s : 0;
	patience.whom = phase->whom;
	patience.advice = phase->advice;
	rc = store_rbd_connect_wait(call, &patience);
	if (rc == -ETIMEDOUT)
		snprintf(err, errlen, "cannot be opened: %s do%s not answer for %u s "
			 "(" RBD_MOUNT_TIMEOUT "): %s", phase->whom, phase->grace_s ? "es" : "",
			 patience.limit_s, phase->advice);
	else if (rc)
		snprintf(err, errlen, "cannot be opened: the server stops");
	return rc;
}

int store_rbd_connect(struct store_rbd *r, char *err, size_t errlen)
{
	struct rbd_connect *c = connect_create(r);
	int rc;

	if (!c) {
		snprintf(err, errlen, "cannot be opened: out of memory");
		return -ENOMEM;
	}
	r->timeout_s = RBD_MOUNT_TIMEOUT_S;
	for (unsigned i = 0; i < RBD_PHASES && !c->rc; i++) {
		c->phase = &store_rbd_phases[i];
		rc = run_phase(r, c, err, errlen);
		if (rc)
			return rc;
		if (c->copy.timeout_s)
			r->timeout_s = c->copy.timeout_s;
	}
	rc = c->rc;
	connect_end(r, c, err, errlen);
	return rc;
}

/* ---- disconnect ---- */

void store_rbd_connect_undo(struct rbd_handle *h)
{
	if (h->image && h->has_lock)
		rbd_lib.rbd_lock_release(h->image);
	if (h->image)
		rbd_lib.rbd_close(h->image);
	if (h->pool)
		rbd_lib.rados_ioctx_destroy(h->pool);
	if (h->cluster)
		rbd_lib.rados_shutdown(h->cluster);
}

static void disconnect_aside(void *arg)
{
	store_rbd_connect_undo(arg);
	free(arg);
}

static void disconnect_left(void *arg)
{
}

static void close_here(void *arg)
{
	store_rbd_connect_undo(arg);
}

void store_rbd_leave(struct store_rbd *r)
{
	struct rbd_handle h = r->handle, *own = h.cluster ? malloc(sizeof(*own)) : NULL;

	if (!h.cluster || r->lent)
		return;
	r->handle = (struct rbd_handle){ 0 };
	if (own)
		*own = h;
	if (own && !aside_begin(&r->leaving, disconnect_aside, disconnect_left, own))
		return;
	/* A lock that stays would keep other servers out. */
	free(own);
	aside_here(close_here, &h);
}

void store_rbd_disconnect(struct store_rbd *r)
{
	struct rbd_patience patience = { .limit_s = STORE_RBD_STOP_S };
	struct aside *call;

	store_rbd_leave(r);
	call = r->leaving;
	r->leaving = NULL;
	if (call && store_rbd_connect_wait(call, &patience))
		log_warn(r->ex.name, "'%s': the cluster has not answered for %u s: the image will "
			 "be closed when it does", r->ex.path, STORE_RBD_STOP_S);
}

/* ---- how long callers wait for a cluster, and what the log says of it ---- */

#define TELL_MS 5000u
#define ADVISE_MS 10000u

/* Say once for whom the caller waits, and once what may be the cause. */
static void tell(struct rbd_patience *p, uint64_t ms)
{
	if (p->whom && !p->told && ms >= TELL_MS) {
		log_warn(p->ex->name, "'%s': waiting for %s", p->ex->path, p->whom);
		p->told = 1;
	} else if (p->advice && p->told == 1 && ms >= ADVISE_MS) {
		log_warn(p->ex->name, "'%s': still waiting for %s: %s", p->ex->path, p->whom,
			 p->advice);
		p->told = 2;
	}
}

/* True if the server stops, and the caller has waited for long enough since then. */
static bool is_stopped(struct rbd_patience *p, uint64_t ms)
{
	if (!p->stops || !atomic_load(p->stops))
		return false;
	if (!p->stops_ms)
		p->stops_ms = ms + 1;
	return ms + 1 - p->stops_ms >= p->stops_s * 1000ull;
}

static int patience(void *arg, uint64_t ms)
{
	struct rbd_patience *p = arg;

	if (is_stopped(p, ms))
		return -ECANCELED;
	if (p->limit_s && ms >= p->limit_s * 1000ull)
		return -ETIMEDOUT;
	tell(p, ms);
	return 0;
}

int store_rbd_connect_wait(struct aside *call, struct rbd_patience *p)
{
	return aside_wait(call, patience, p);
}
