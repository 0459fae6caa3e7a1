/* SPDX-License-Identifier: BSD-3-Clause */
/* The identity of the file or device of an export, by which a returning client tells one storage
 * from another (man/rtrs-protocol.pod, "export id").  Main thread, or a worker (export-life.h);
 * owns nothing.
 *
 * Device numbers follow the order in which devices are found.  A reboot may change such numbers,
 * and a client would take the same file for another.  File systems and disks have ids that stay;
 * the device number stands in for a missing id.  A name of the administrator's (id=) replaces all
 * of that. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>

#include "log.h"
#include "store-file-priv.h"

#define FUSE_MAGIC 0x65735546		/* <linux/fuse.h> has no name for it */

/* struct xfs_fsop_geom_v1 of the kernel, whose header is a package of its own. */
struct xfs_geometry {
	uint32_t sizes[8];
	uint64_t blocks[4];
	uint8_t uuid[16];
	uint32_t others[8];
};

#define XFS_GEOMETRY _IOR('X', 100, struct xfs_geometry)

static uint64_t hash_number(uint64_t hash, uint64_t number)
{
	return fnv1a(hash, &number, sizeof(number));
}

/* Read the id of the block device of @ex into @id.  False: it has none. */
static bool read_wwid(const struct export *ex, char *id, int len)
{
	static const char *const attrs[] = { "dm/uuid", "wwid", "device/wwid", "serial" };

	for (unsigned i = 0; i < ARRAY_SIZE(attrs); i++) {
		if (store_file_disk_attr(store_file(ex)->dev, attrs[i], id, len) && id[0])
			return true;
	}
	return false;
}

bool store_file_has_wwid(const struct export *ex)
{
	char id[256];

	return read_wwid(ex, id, sizeof(id));
}

static uint64_t ident_block(const struct export *ex)
{
	char id[256];
	uint64_t hash;

	if (!read_wwid(ex, id, sizeof(id)))
		return hash_number(FNV1A_INIT, store_file(ex)->dev);
	hash = fnv1a(FNV1A_INIT, id, strlen(id));
	return hash_number(hash, store_file_disk_number(store_file(ex)->dev, "partition", 0));
}

/* A number of the file system of @f that stays; 0: none.  XFS has the number of its device in
 * f_fsid.  With all others f_fsid is better than their UUID: two subvolumes of btrfs may have a
 * file with one inode number. */
static uint64_t fs_ident(const struct store_file *f)
{
	struct xfs_geometry xfs;
	struct statfs fs;
	uint64_t fsid;

	if (fstatfs(f->fd, &fs) < 0)
		return 0;
	if ((uint32_t)fs.f_type == XFS_SUPER_MAGIC && !ioctl(f->fd, XFS_GEOMETRY, &xfs))
		return fnv1a(FNV1A_INIT, xfs.uuid, sizeof(xfs.uuid));
	memcpy(&fsid, &fs.f_fsid, sizeof(fsid));
	return fsid;
}

static uint64_t ident_regular(const struct store_file *f)
{
	uint64_t hash = FNV1A_INIT, fsid = fs_ident(f);
	int generation = 0;

	/* The next file with this inode's number has another generation. */
	if (ioctl(f->fd, FS_IOC_GETVERSION, &generation) < 0)
		generation = 0;
	hash = hash_number(hash, fsid ? fsid : f->dev);
	hash = hash_number(hash, f->ino);
	return hash_number(hash, (unsigned)generation);
}

uint64_t store_file_ident(const struct store_file *f)
{
	if (f->ex.spec.id)
		return fnv1a(FNV1A_INIT, f->ex.spec.id, strlen(f->ex.spec.id));
	return f->is_block ? ident_block(&f->ex) : ident_regular(f);
}

uint64_t store_file_place(const struct store_file *f)
{
	return hash_number(hash_number(hash_number(FNV1A_INIT, f->is_block), f->dev), f->ino);
}

/* Two paths of multipath to one disk are two devices to the kernel, and two stores here: nothing
 * keeps a write on one from a write on the other.  Only their number (read_wwid()) tells. */
static void warn_of_two_ways(const struct export *ex, const struct export *other)
{
	const struct store_file *f = store_file(ex), *o = store_file(other);

	if (!f->is_block || !o->is_block || f->dev == o->dev || ex->spec.id || other->spec.id ||
	    ex->ident != other->ident || (ex->spec.readonly && other->spec.readonly))
		return;
	log_warn(ex->name, "'%s' and '%s' of export '%s' are the same disk (same wwid in sysfs), "
		 "and nothing coordinates their writes: export one of them, or the device of "
		 "multipath, under both names", ex->path, other->path,
		 other->name);
}

int store_file_ident_fits(const struct export *ex, const struct export *other, char *err,
			  size_t errlen)
{
	const struct store_file *f = store_file(ex), *o = store_file(other);
	bool one_id = store_id_equal(&ex->id, &other->id);
	bool one_storage = f->is_block == o->is_block && f->dev == o->dev && f->ino == o->ino;
	const char *what = NULL;

	if (one_id && !one_storage)
		what = "has the same id= but is another storage: give each an id= of its own";
	else if (one_storage && !one_id)
		what = "is the same storage with another id=: give both the same id=";
	else if (!one_id && !f->is_block && !o->is_block && ex->ident == other->ident)
		what = "looks the same to clients: a file of a copy or snapshot of its file "
		       "system, or of the file system below: give one of them an id= of its own";
	if (!what) {
		warn_of_two_ways(ex, other);
		return 0;
	}
	snprintf(err, errlen, "export '%s': '%s': '%s' of export '%s' %s", ex->name, ex->path,
		 other->path, other->name, what);
	return -EEXIST;
}

void store_file_ident_warn(const struct export *ex)
{
	struct statfs fs;

	if (store_file(ex)->is_block || ex->spec.id ||
	    fstatfs(store_file(ex)->fd, &fs) < 0 || (uint32_t)fs.f_type != FUSE_MAGIC)
		return;
	log_warn(ex->name, "'%s' is on FUSE, whose inode numbers may change: after a restart "
		 "clients would treat it as another file, and get permanent errors: give it a name "
		 "with ',id=NAME'", ex->path);
}
