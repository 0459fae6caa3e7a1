/* SPDX-License-Identifier: BSD-3-Clause */
/* The geometry of an export, for OPEN_RSP (doc/protocol.md 8.3): block sizes, discard, zeroing,
 * cache, from the kernel's ioctls and sysfs.  Main thread, or a worker (export-life.h); owns
 * nothing.  An unknown property gets the safe value: no discard, a volatile cache. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>

#include "store-file-priv.h"

#define PHYSICAL_MAX 32768u
#define PROBE_LEN 4096

/* Punching behind the end loses no data. */
int store_file_punch_behind(const struct store_file *f)
{
	off_t end = (off_t)align_up(export_size(&f->ex), 1 << 20);

	return fallocate(f->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, end, PROBE_LEN) ?
	       -errno : 0;
}

/* Only these errors speak of the file system: behind the end it may answer ENOSPC (nbdfuse), and
 * EFBIG or EINVAL if the file is as long as a file can be. */
static bool can_punch(const struct store_file *f)
{
	int rc = store_file_punch_behind(f);

	return rc != -EOPNOTSUPP && rc != -ENOSYS;
}

static void geometry_file(struct export *ex, uint32_t st_blksize)
{
	struct rnbd_dev_info *g = &ex->geometry;
	struct store_file *f = store_file(ex);
	bool sane = is_pow2(st_blksize) && st_blksize >= RNBD_SECTOR_SIZE;
	struct statfs fs;
	bool known;

	g->physical_block_size = (uint16_t)(sane ? MIN(st_blksize, PHYSICAL_MAX) : PROBE_LEN);
	if (ex->direct)
		g->physical_block_size = (uint16_t)MAX(g->physical_block_size,
						       MIN(ex->block_align, PHYSICAL_MAX));
	g->rotational = store_file_disk_number(f->dev, "queue/rotational", 0);
	known = !fstatfs(f->fd, &fs) && is_pow2((uint64_t)fs.f_bsize);
	f->whole = known ? MAX((uint32_t)fs.f_bsize, RNBD_SECTOR_SIZE) : PROBE_LEN;
	if (!ex->spec.readonly && can_punch(f)) {
		g->max_discard_sectors = EXPORT_RANGE_SECTORS;
		g->discard_granularity = f->whole;
	} else {
		atomic_fetch_or(&f->cannot, STORE_FILE_CANNOT_PUNCH);
	}
	if (f->fs & STORE_FILE_FS_PARTS)
		f->whole = RNBD_SECTOR_SIZE;
}

uint32_t store_file_geometry_block(const struct store_file *f)
{
	int size = 0;

	if (!f->is_block || ioctl(f->fd, BLKSSZGET, &size) < 0 || !is_pow2((uint64_t)size) ||
	    size < (int)RNBD_SECTOR_SIZE || size > (int)PHYSICAL_MAX)
		return RNBD_SECTOR_SIZE;
	return (uint32_t)size;
}

/* The kernel fails a read ahead that has a part of the tail, with the whole blocks in front of
 * it. */
bool store_file_geometry_tail(struct store_file *f, uint64_t tail)
{
	bool had = f->has_tail;

	f->has_tail = tail;
	if (f->has_tail != had)
		posix_fadvise(f->fd, 0, 0, tail ? POSIX_FADV_RANDOM : POSIX_FADV_NORMAL);
	return tail && !had && !f->ex.direct;
}

static void geometry_block(struct export *ex)
{
	struct rnbd_dev_info *g = &ex->geometry;
	unsigned logical = store_file_geometry_block(store_file(ex)), physical = 0;
	char cache[32];
	uint64_t max;

	if (ioctl(store_file(ex)->fd, BLKPBSZGET, &physical) < 0 || !is_pow2(physical))
		physical = logical;
	g->logical_block_size = (uint16_t)logical;
	store_file(ex)->whole = logical;
	g->physical_block_size = (uint16_t)MIN(MAX(physical, logical), PHYSICAL_MAX);
	g->rotational = store_file_disk_number(store_file(ex)->dev, "queue/rotational", 0);
	/* With O_DIRECT data is in the device when a write is answered. */
	if (ex->direct &&
	    store_file_disk_attr(store_file(ex)->dev, "queue/write_cache", cache, sizeof(cache)))
		g->writeback = strcmp(cache, "write through") != 0;
	max = store_file_disk_number(store_file(ex)->dev, "queue/discard_max_bytes", 0) >>
	      RNBD_SECTOR_SHIFT;
	if (!ex->spec.readonly && max) {
		g->max_discard_sectors = (uint32_t)MIN(max, (uint64_t)EXPORT_RANGE_SECTORS);
		g->discard_granularity = (uint32_t)store_file_disk_number(
			store_file(ex)->dev, "queue/discard_granularity", logical);
		g->discard_alignment = (uint32_t)store_file_disk_number(store_file(ex)->dev,
									"discard_alignment", 0);
	} else {
		atomic_fetch_or(&store_file(ex)->cannot,
				STORE_FILE_CANNOT_DISCARD | STORE_FILE_CANNOT_STALE);
	}
}

void store_file_geometry(struct store_file *f, uint32_t st_blksize)
{
	/* Zeroes are written if neither device nor file system helps. */
	export_geometry_init(&f->ex);
	f->ex.geometry.writeback = true;
	if (f->is_block)
		geometry_block(&f->ex);
	else
		geometry_file(&f->ex, st_blksize);
}

/* ---- file systems ---- */

/* What is known of file systems, by their type; any thread.
 *
 * A file system may take a flag and not do what the flag says: FUSE takes RWF_DSYNC of a direct
 * write and sends no FSYNC (Linux 6.18), and fuse2fs 1.47.0 punches no part of a block that begins
 * with the block.  So the driver relies on a property only where it was seen; an unknown file
 * system gets the way that is right everywhere. */

struct fs_kind {
	uint32_t type;			/* statfs.f_type */
	unsigned known;			/* STORE_FILE_FS_* */
};

#define EVERYWHERE (STORE_FILE_FS_HOLES | STORE_FILE_FS_PARTS | STORE_FILE_FS_ERRORS)

/* DSYNC: tests/test-fua-flushes.sh.  EXT4_SUPER_MAGIC is ext2 and ext3, too. */
static const struct fs_kind fs_kinds[] = {
	{ EXT4_SUPER_MAGIC, EVERYWHERE | STORE_FILE_FS_LOCAL | STORE_FILE_FS_DSYNC },
	{ XFS_SUPER_MAGIC, EVERYWHERE | STORE_FILE_FS_DSYNC },
	{ BTRFS_SUPER_MAGIC, EVERYWHERE | STORE_FILE_FS_DSYNC },
	{ TMPFS_MAGIC, EVERYWHERE | STORE_FILE_FS_LOCAL },
};

unsigned store_file_geometry_fs(const struct store_file *f)
{
	struct statfs st;

	/* Its statfs is that of the file system with the node, not of the device. */
	if (f->is_block)
		return STORE_FILE_FS_DSYNC | STORE_FILE_FS_ERRORS;
	if (fstatfs(f->fd, &st) < 0)
		return 0;
	for (unsigned i = 0; i < ARRAY_SIZE(fs_kinds); i++) {
		if (fs_kinds[i].type == (uint32_t)st.f_type)
			return fs_kinds[i].known;
	}
	return 0;
}
