/* SPDX-License-Identifier: BSD-3-Clause */
/* The image as an export: options, size, identity, geometry.  Owns struct store_rbd.  Main thread,
 * or a worker (export-life.h). */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store-rbd-priv.h"
#include "util.h"

#define BLOCK 4096u
/* rbd_discard_granularity_bytes: librbd leaves smaller parts alone. */
#define DISCARD_GRANULARITY 65536u

#define FIELD(field) OPT_FIELD(struct export_spec, field)
static const struct opt image_options[] = {
	{ .name = "conf", .type = OPT_TEXT, FIELD(conf), .arg = "FILE", .of = "a path",
	  .holds = OPT_AT_START | OPT_IN_FILE, .help = "Ceph's configuration" },
	{ .name = "id", .type = OPT_TEXT, FIELD(id), .arg = "USER", .of = "a name",
	  .holds = OPT_AT_START | OPT_IN_FILE, .help = "user without client." },
	{ .name = "luks", .type = OPT_TEXT, FIELD(luks), .arg = "FILE", .of = "a path",
	  .holds = OPT_AT_START | OPT_IN_FILE, .help = "file with the passphrase" },
};

static struct export *image_create(void)
{
	struct store_rbd *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	pthread_mutex_init(&r->renews, NULL);
	return &r->ex;
}

static int image_check(const struct export_spec *spec, char *err, size_t errlen)
{
	struct rbd_target target;
	int rc = rbd_target_parse(&target, spec->path);
	bool is_snap = !rc && target.snap;

	if (rc) {
		snprintf(err, errlen, "export '%s': '%s': expected " RBD_TARGET_EXPECTED,
			 spec->name, spec->path);
		return rc;
	}
	rbd_target_fini(&target);
	if (!is_snap || spec->readonly)
		return 0;
	snprintf(err, errlen, "export '%s': '%s' is a snapshot: export it read-only: "
		 STORE_READONLY, spec->name, spec->path);
	return -EROFS;
}

static void image_learn_geometry(struct export *ex)
{
	struct rnbd_dev_info *g = &ex->geometry;

	export_geometry_init(ex);
	g->max_discard_sectors = g->max_write_zeroes_sectors;
	g->discard_granularity = DISCARD_GRANULARITY;
	g->physical_block_size = BLOCK;
}

static int image_open(struct export *ex, char *err, size_t errlen)
{
	struct store_rbd *r = store_rbd(ex);
	char why[320] = "out of memory";
	int rc = rbd_target_parse(&r->target, ex->path);

	if (!rc)
		rc = rbd_lib_load(why, sizeof(why));
	if (!rc)
		rc = store_rbd_connect(r, why, sizeof(why));
	if (!rc && ex->spec.shared && !(r->features & RBD_FEATURE_EXCLUSIVE_LOCK)) {
		snprintf(why, sizeof(why), "has no lock to decide which server writes: \"rbd "
			 "feature enable POOL/IMAGE exclusive-lock\", or remove ',shared=yes'");
		rc = -EINVAL;
	}
	if (rc) {
		snprintf(err, errlen, "export '%s': '%s' %s", ex->name, ex->path, why);
		return rc;
	}
	ex->kind = "rbd";
	ex->kind_text = "Ceph image";
	/* librbd moves the memory of requests, and checks sums of it on the way. */
	ex->direct = true;
	image_learn_geometry(ex);
	return 0;
}

static void image_let_go(struct export *ex)
{
	store_rbd_disconnect(store_rbd(ex));
}

static void image_leave(struct export *ex)
{
	store_rbd_leave(store_rbd(ex));
}

static void image_close(struct export *ex)
{
	struct store_rbd *r = store_rbd(ex);

	store_rbd_disconnect(r);
	pthread_mutex_destroy(&r->renews);
	rbd_target_fini(&r->target);
	free(r);
}

static void image_store_init(struct store *store)
{
	store_rbd_all(store)->own_fd = -1;
}

static void image_added(struct export *ex)
{
	struct store_rbd_all *all = store_rbd_all(ex->store);

	if (!ex->spec.readonly && !all->writer)
		all->writer = ex;
}

static void image_removed(struct export *ex)
{
	struct store_rbd_all *all = store_rbd_all(ex->store);

	if (all->writer != ex)
		return;
	/* At a start: later a second such name is refused while the first one stays. */
	all->writer = store_other_writer(ex->store, ex);
	store_rbd_unlock(ex->store);
}

/* ---- snapshots, by the cluster ---- */

/* librbd's cache is off, so all writes that were answered are in the snapshot; librbd holds others
 * back meanwhile. */
static int image_snapshot(struct export *ex, const char *name, char *text, size_t len)
{
	struct store_rbd *r = store_rbd(ex);
	int rc;

	/* Another server that breaks the lock has the handle replaced. */
	if (ex->spec.shared || ex->spec.readonly) {
		snprintf(text, len, "an image that is read-only, or shared by two servers, has no "
			 "snapshots here: \"rbd snap create %s@%s\" makes one",
			 ex->path + strlen(RBD_TARGET_PREFIX), name);
		return -EOPNOTSUPP;
	}
	/* A caller that gives up leaves the handle to this call. */
	r->lent = true;
	rc = rbd_lib.rbd_snap_create(r->handle.image, name);
	r->lent = false;
	if (rc)
		snprintf(text, len, "%s@%s: %s", ex->path, name,
			 rc == -EEXIST ? "a snapshot has this name already" : strerror(-rc));
	else
		snprintf(text, len, "%s@%s", ex->path, name);
	return rc;
}

extern const struct store_driver store_rbd_driver;
const struct store_driver store_rbd_driver = {
	.prefix = RBD_TARGET_PREFIX,
	.options = { .rows = image_options, .n = ARRAY_SIZE(image_options) },
	.create = image_create,
	.store_own = sizeof(struct store_rbd_all),
	.store_init = image_store_init,
	.check = image_check,
	.open = image_open,
	.added = image_added,
	.removed = image_removed,
	.lock = store_rbd_lock,
	.claim = store_rbd_claim,
	.let_go = image_let_go,
	.leave = image_leave,
	.close = image_close,
	.take = store_rbd_share_take,
	.yield = store_rbd_share_yield,
	.fenced = store_rbd_lost_already,
	.renew = store_rbd_share_renew,
	.snapshot = image_snapshot,
};
