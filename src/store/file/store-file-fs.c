/* SPDX-License-Identifier: BSD-3-Clause */
/* What is known of file systems, by their type.  Owns nothing; any thread.
 *
 * A file system may take a flag and not do what the flag says: FUSE takes RWF_DSYNC of a direct
 * write and sends no FSYNC (Linux 6.18), and fuse2fs 1.47.0 punches no part of a block that begins
 * with the block.  So the driver relies on a property only where it was seen; an unknown file
 * system gets the way that is right everywhere. */
#include <config.h>

#include <linux/magic.h>
#include <sys/vfs.h>

#include "store-file-priv.h"

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

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

unsigned store_file_fs(const struct store_file *f)
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
