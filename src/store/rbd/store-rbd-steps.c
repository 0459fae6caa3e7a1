/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps to an opened image: cluster, pool, namespace, image, LUKS.  Owns nothing.  Each refusal
 * says what to do. */
#include <config.h>

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plain-file.h"
#include "store-rbd-priv.h"
#include "util.h"

/* Ceph waits 300 s for a monitor, and a server that starts says nothing meanwhile. */
#define MOUNT_TIMEOUT_THEIRS "300"
#define MOUNT_TIMEOUT_OURS "30"
#define GRACE_S 5u			/* in which Ceph itself ends a connect, with its reason */
#define KEY_MAX 2048
#define CEPH_CONF_MAX (16u << 20)

/* Note the failure of a step, which returned @rc < 0. */
__attribute__((format(printf, 3, 4)))
static int refuse(struct rbd_connect *c, int rc, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(c->err, sizeof(c->err), fmt, ap);
	va_end(ap);
	return rc;
}

static int set_options(struct rbd_connect *c)
{
	rados_t cluster = c->r->handle.cluster;
	char timeout[32] = "";
	/* Of our log each line is ours; Ceph's own log goes where its configuration says. */
	static const char *const options[][2] = {
		{ "rbd_cache", "false" },
		{ "rbd_blocklist_on_break_lock", "true" },
		{ "rbd_non_blocking_aio", "true" },	/* no reactor waits in librbd */
		{ "log_to_stderr", "false" },
		{ "err_to_stderr", "false" },
	};

	for (unsigned i = 0; i < ARRAY_SIZE(options); i++) {
		int rc = rbd_lib.rados_conf_set(cluster, options[i][0], options[i][1]);

		/* A version that does not know an option does not do the opposite. */
		if (rc < 0 && rc != -ENOENT)
			return refuse(c, rc, "cannot be opened: Ceph refuses %s=%s: %s",
				      options[i][0], options[i][1], strerror(-rc));
	}
	if (!rbd_lib.rados_conf_get(cluster, RBD_MOUNT_TIMEOUT, timeout, sizeof(timeout)) &&
	    !strcmp(timeout, MOUNT_TIMEOUT_THEIRS))
		rbd_lib.rados_conf_set(cluster, RBD_MOUNT_TIMEOUT, MOUNT_TIMEOUT_OURS);
	timeout[0] = '\0';
	rbd_lib.rados_conf_get(cluster, RBD_MOUNT_TIMEOUT, timeout, sizeof(timeout));
	c->r->timeout_s = (unsigned)strtoul(timeout, NULL, 10);
	if (!c->r->timeout_s)
		c->r->timeout_s = RBD_MOUNT_TIMEOUT_S;
	return 0;
}

static const char *conf_of(const struct store_rbd *r)
{
	return r->ex.spec.conf ? r->ex.spec.conf : "/etc/ceph/ceph.conf";
}

static const char *user_of(const struct store_rbd *r)
{
	return r->ex.spec.id ? r->ex.spec.id : "admin";
}

static int conf_refuse(struct rbd_connect *c, int rc, const char *why)
{
	return refuse(c, rc, "cannot be opened: Ceph's configuration '%s' cannot be read: %s: give "
		      "the file with ',conf=FILE'", conf_of(c->r), why);
}

/* librados would wait for the writer of a FIFO for ever. */
static int check_conf(struct rbd_connect *c)
{
	struct plain_file file;
	char why[256];
	int rc = plain_file_load(conf_of(c->r), CEPH_CONF_MAX, &file, why, sizeof(why));

	plain_file_free(&file);
	return rc ? conf_refuse(c, rc, why) : 0;
}

static int create_cluster(struct rbd_connect *c)
{
	struct store_rbd *r = c->r;
	int rc = rbd_lib.rados_create(&r->handle.cluster, user_of(r));

	if (rc < 0) {
		r->handle.cluster = NULL;
		return refuse(c, rc, "cannot be opened: rados_create: %s", strerror(-rc));
	}
	rc = rbd_lib.rados_conf_read_file(r->handle.cluster, conf_of(r));
	return rc < 0 ? conf_refuse(c, rc, strerror(-rc)) : set_options(c);
}

static int connect_cluster(struct rbd_connect *c)
{
	struct store_rbd *r = c->r;
	const char *conf = conf_of(r);
	char fault[256];
	int rc = rbd_lib.rados_connect(r->handle.cluster);

	if (rc == -EACCES || rc == -EPERM || rc == -ENOENT)
		return refuse(c, rc, "cannot be opened: the cluster does not let 'client.%s' in: "
			      "%s: give the user with ',id=USER', whose key is in a keyring that "
			      "'%s' names", user_of(r), strerror(-rc), conf);
	if (rc == -EIO) {
		store_rbd_steps_fault(r->handle.cluster, fault, sizeof(fault));
		return refuse(c, rc, "cannot be opened: %s", fault);
	}
	if (rc < 0)
		return refuse(c, rc, "cannot be opened: the cluster of '%s' does not answer: %s: "
			      "is a monitor reachable from here?", conf, strerror(-rc));
	return 0;
}

static int open_pool(struct rbd_connect *c)
{
	struct store_rbd *r = c->r;
	const char *pool = r->target.pool;
	int rc = rbd_lib.rados_ioctx_create(r->handle.cluster, pool, &r->handle.pool);

	if (rc < 0) {
		r->handle.pool = NULL;
		return refuse(c, rc, "cannot be opened: pool '%s': %s", pool, strerror(-rc));
	}
	rbd_lib.rados_ioctx_set_namespace(r->handle.pool, r->target.space);
	/* A full pool fails a write, instead of holding it until somebody makes room. */
	rbd_lib.rados_set_pool_full_try(r->handle.pool);
	return 0;
}

static int open_image(struct rbd_connect *c)
{
	struct store_rbd *r = c->r;
	const struct rbd_target *t = &r->target;
	int rc;

	if (r->ex.spec.readonly)
		rc = rbd_lib.rbd_open_read_only(r->handle.pool, t->image, &r->handle.image,
						t->snap);
	else
		rc = rbd_lib.rbd_open(r->handle.pool, t->image, &r->handle.image, NULL);
	if (rc >= 0)
		return 0;
	r->handle.image = NULL;
	if (rc == -EPERM || rc == -EACCES)
		return refuse(c, rc, "cannot be opened: %s: the user needs the capabilities \"mon "
			      "'profile rbd' osd 'profile rbd pool=%s'\"%s", strerror(-rc), t->pool,
			      r->ex.spec.readonly ? "" :
			      ", or export it read-only: " STORE_READONLY);
	return refuse(c, rc, "cannot be opened: image '%s'%s%s: %s", t->image,
		      t->snap ? ", snapshot " : "", t->snap ? t->snap : "", strerror(-rc));
}

/* ---- options of pool and image ---- */

/* With these values an answer means that the data is on the osds, a READ sees what others wrote,
 * and a broken lock fences.  Pool and image may have values of their own, which win over those of
 * set_options(). */
static const char *const needed[][2] = {
	{ "rbd_cache", "false" },
	{ "rbd_persistent_cache_mode", "disabled" },
	{ "rbd_blocklist_on_break_lock", "true" },
	{ "rbd_non_blocking_aio", "true" },
};

static int check_option(struct rbd_connect *c, const rbd_config_option_t *option)
{
	bool of_pool = option->source == RBD_CONFIG_SOURCE_POOL;

	for (unsigned i = 0; i < ARRAY_SIZE(needed); i++) {
		const char *wanted = needed[i][1];

		if (!strcmp(option->name, needed[i][0]) && strcmp(option->value, wanted))
			return refuse(c, -EINVAL, "cannot be opened: the %s has %s=%s, which "
				      "breaks promises of the server: \"rbd config %s set\" it to "
				      "%s",
				      of_pool ? "pool" : "image", option->name, option->value,
				      of_pool ? "pool" : "image", wanted);
	}
	return 0;
}

static int check_options(struct rbd_connect *c)
{
	rbd_image_t image = c->r->handle.image;
	rbd_config_option_t *options;
	int n = 0, rc = rbd_lib.rbd_config_image_list(image, NULL, &n);

	if (c->r->target.snap)
		return 0;
	options = rc == -ERANGE ? calloc((size_t)n, sizeof(*options)) : NULL;
	rc = options ? rbd_lib.rbd_config_image_list(image, options, &n) : rc;
	if (rc < 0) {
		free(options);
		return refuse(c, rc, "cannot be opened: its options cannot be read: %s",
			      strerror(-rc));
	}
	for (int i = 0; options && i < n && !rc; i++)
		rc = check_option(c, &options[i]);
	if (options)
		rbd_lib.rbd_config_image_list_cleanup(options, n);
	free(options);
	return rc;
}

/* ---- LUKS ---- */

static int load_key(struct rbd_connect *c, const char *key, size_t len)
{
	rbd_encryption_luks2_format_options_t luks2 = { .passphrase = key, .passphrase_size = len };
	rbd_encryption_luks1_format_options_t luks1 = { .passphrase = key, .passphrase_size = len };
	rbd_image_t image = c->r->handle.image;
	int rc = rbd_lib.rbd_encryption_load(image, RBD_ENCRYPTION_FORMAT_LUKS2, &luks2,
					     sizeof(luks2));

	if (rc == -EINVAL)
		rc = rbd_lib.rbd_encryption_load(image, RBD_ENCRYPTION_FORMAT_LUKS1, &luks1,
						 sizeof(luks1));
	if (rc == -EPERM)
		return refuse(c, rc, "cannot be opened: the passphrase in '%s' is not the image's",
			      c->r->ex.spec.luks);
	if (rc < 0)
		return refuse(c, rc, "cannot be opened: librbd finds no LUKS that it can read: %s: "
			      "remove ',luks' for an image that librbd does not encrypt",
			      strerror(-rc));
	return 0;
}

static int open_luks(struct rbd_connect *c)
{
	char why[256] = "expected 1 to 2047 bytes";
	struct plain_file key;
	int rc;

	if (!c->r->ex.spec.luks)
		return 0;
	/* All bytes are the passphrase, as cryptsetup reads a key file. */
	rc = plain_file_load(c->r->ex.spec.luks, KEY_MAX - 1, &key, why, sizeof(why));
	if (!rc && !key.n)
		rc = -EINVAL;
	rc = rc ? refuse(c, rc, "cannot be opened: the passphrase file '%s': %s",
			 c->r->ex.spec.luks, why) :
		load_key(c, key.text, key.n);
	plain_file_free(&key);
	return rc;
}

/* ---- what is known of the image ---- */

static int learn_size(struct rbd_connect *c)
{
	uint64_t size;
	int rc = rbd_lib.rbd_get_size(c->r->handle.image, &size);

	if (rc < 0)
		return refuse(c, rc, "does not report its size: %s", strerror(-rc));
	size = align_down(size, RNBD_SECTOR_SIZE);
	if (!size)
		return refuse(c, -EINVAL, "is empty: give it a size first: rbd resize --size 1G "
			      "POOL/IMAGE");
	atomic_store(&c->r->ex.size, size);
	return 0;
}

/* An id in the cluster that another image never has, whatever its name is. */
static int learn_ids(struct rbd_connect *c)
{
	struct store_rbd *r = c->r;
	struct export *ex = &r->ex;
	char fsid[40] = "", image[32] = "";
	uint64_t snap = 0, hash = FNV1A_INIT;
	int64_t pool = rbd_lib.rados_ioctx_get_id(r->handle.pool);
	int rc = rbd_lib.rados_cluster_fsid(r->handle.cluster, fsid, sizeof(fsid));

	if (rc >= 0)
		rc = rbd_lib.rbd_get_id(r->handle.image, image, sizeof(image));
	if (rc >= 0)
		rc = rbd_lib.rbd_get_features(r->handle.image, &r->features);
	if (rc >= 0 && r->target.snap)
		rc = rbd_lib.rbd_snap_get_id(r->handle.image, r->target.snap, &snap);
	if (rc < 0)
		return refuse(c, rc, "cannot be opened: its ids cannot be read: %s",
			      strerror(-rc));
	snprintf(r->header, sizeof(r->header), "rbd_header.%s", image);
	/* Two namespaces of a pool may have the same id of an image. */
	hash = fnv1a(hash, fsid, strlen(fsid));
	hash = fnv1a(hash, &pool, sizeof(pool));
	ex->medium = hash;
	hash = fnv1a(hash, r->target.space, strlen(r->target.space));
	hash = fnv1a(hash, image, strlen(image));
	ex->ident = fnv1a(hash, &snap, sizeof(snap));
	ex->id.len = (uint8_t)snprintf(ex->id.bytes, sizeof(ex->id.bytes),
				       "rbd-%s-%lld-%016llx", fsid, (long long)pool,
				       (unsigned long long)ex->ident);
	return 0;
}

/* ---- phases ---- */

const struct rbd_phase store_rbd_phases[RBD_PHASES] = {
	{ "the files of Ceph's configuration", "is their file system up?", 0,
	  { check_conf, create_cluster } },
	{ "a monitor of the cluster", "is a monitor reachable from here?", GRACE_S,
	  { connect_cluster } },
	{ "the osds of the cluster", "are they up (\"ceph osd stat\"), and has the "
	  "user capabilities on them (\"ceph auth get client.USER\")?  Ceph 18 and later do not "
	  "answer a user without", 0,
	  { open_pool, open_image, check_options, open_luks, learn_size, learn_ids } },
};

/* ---- why librados cannot read the key of its user; any thread ---- */

/* A key in a keyring is base64 of its cipher, a number of 16 bits, and more: "AQ..."
 * is AES-128, "Ag..." AES-256, which Ceph has since 20.2.  librados refuses a whole keyring for one
 * key of a cipher that it does not know. */

#define AES_256 "Ag"
#define AES_256_RELEASE "20.2"
#define LIST_MAX 2048
#define KEYRING_MAX ((size_t)64 << 10)

/* @line is like "	key = AgAB...". */
static bool line_has_new_key(const char *line)
{
	line += strspn(line, " \t");
	if (strncmp(line, "key", 3))
		return false;
	line += 3 + strspn(line + 3, " \t");
	return *line == '=' && !strncmp(line + 1 + strspn(line + 1, " \t\""), AES_256,
					sizeof(AES_256) - 1);
}

static bool file_has_new_key(const char *file)
{
	char why[128], *rest, *line;
	struct plain_file keyring;
	bool found = false;

	if (plain_file_load(file, KEYRING_MAX, &keyring, why, sizeof(why)))
		return false;
	rest = keyring.text;
	while (!found && (line = strsep(&rest, "\n")))
		found = line_has_new_key(line);
	plain_file_free(&keyring);
	return found;
}

void store_rbd_steps_fault(rados_t cluster, char *buf, size_t len)
{
	char list[LIST_MAX] = "", *rest = list, *file;
	int major = 0, minor = 0, extra = 0;

	/* librados takes the first file of the list that is there. */
	rbd_lib.rados_conf_get(cluster, "keyring", list, sizeof(list));
	while ((file = strsep(&rest, ",;= \t")) && (!*file || access(file, F_OK)))
		;
	if (file && file_has_new_key(file)) {
		rbd_lib.rbd_version(&major, &minor, &extra);
		snprintf(buf, len,
			 "the keyring '%s' has an AES-256 key (\"" AES_256 "...\"), which librbd "
			 "%d.%d of this machine does not know: install librbd1 of Ceph "
			 AES_256_RELEASE " or newer", file, major, minor);
	} else {
		snprintf(buf, len, "librados cannot read the keyring '%s': is each key in it "
			 "complete, and of a cipher that this librados knows?", file ? file : "");
	}
}
