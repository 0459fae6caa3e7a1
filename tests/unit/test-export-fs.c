/* SPDX-License-Identifier: BSD-3-Clause */
/* What the server believes of a file system, by its type: on which ones a hole is a hole
 * (doc/decisions.md D16), on which ones a thread writes by itself (D3), and on which ones RWF_DSYNC
 * is durable (D13).  fstatfs() says what the test wants; the file is a real one. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "export-io-rig.h"
#include "rnbd-ext.h"
#include "unit.h"

#define SIZE (1u << 20)
#define SPARSE (RNBD_EXTENT_HOLE | RNBD_EXTENT_ZERO)
#define NO_STATFS (-1)

static long fs_type;

int __real_fstatfs(int fd, struct statfs *st);
int __wrap_fstatfs(int fd, struct statfs *st);

int __wrap_fstatfs(int fd, struct statfs *st)
{
	int r = __real_fstatfs(fd, st);

	st->f_type = fs_type;
	if (fs_type != NO_STATFS)
		return r;
	/* All of it could be right. */
	st->f_type = EXT4_SUPER_MAGIC;
	errno = EIO;
	return -1;
}

static const struct {
	const char *name;
	long type;
	bool holes, local, dsync;
} kinds[] = {
	{ "ext2, ext3, ext4", EXT4_SUPER_MAGIC, true, true, true },
	{ "tmpfs", TMPFS_MAGIC, true, true, false },
	{ "xfs", 0x58465342, true, false, true },	/* takes RWF_NOWAIT, so nothing is gained */
	{ "btrfs", BTRFS_SUPER_MAGIC, true, false, true },
	{ "FUSE", 0x65735546, false, false, false },
	{ "NFS", NFS_SUPER_MAGIC, false, false, false },
	{ "CIFS", 0xff534d42, false, false, false },
	{ "SMB2", 0xfe534d42, false, false, false },
	{ "CephFS", 0x00c36400, false, false, false },
	{ "9p", V9FS_MAGIC, false, false, false },
	{ "overlayfs", OVERLAYFS_SUPER_MAGIC, false, false, false },
	{ "f2fs", F2FS_SUPER_MAGIC, false, false, false },
	{ "vfat", MSDOS_SUPER_MAGIC, false, false, false },
	{ "ecryptfs", ECRYPTFS_SUPER_MAGIC, false, false, false },
	{ "an unknown one", 0x12345678, false, false, false },
	{ "none", 0, false, false, false },
	{ "one that fails", NO_STATFS, false, false, false },
};

TestSuite(export_fs, .init = rig_init, .fini = rig_fini, .timeout = 60);

/* The kinds of the extents of @ex, all of which is a hole in truth. */
static uint32_t what_is_told(struct export *ex)
{
	static uint8_t answer[RNBD_EXTENTS_ROOM];
	struct rig_io rio = { .io = { .op = RNBD_OP_EXTENTS, .len = SIZE, .buf = answer,
				      .room = sizeof(answer),
				      .mem = -1 } };

	rig_start(ex, &rio);
	rig_wait();
	cr_assert_eq(rio.status, 0);
	cr_assert_eq(rnbd_extents_decode(answer, sizeof(answer), SIZE), 1);
	cr_assert_eq(rnbd_extents_get(answer, 0).len, SIZE);
	return rnbd_extents_get(answer, 0).what;
}

/* The export of a new file, all of which is a hole, on a file system of the type of @k; NULL: files
 * have no holes here. */
static struct export *hole_on(size_t k)
{
	char name[16], spec[32];
	int fd, r;

	snprintf(name, sizeof(name), "f%zu", k);
	snprintf(spec, sizeof(spec), "%s=%s", name, name);
	rig_file(name, SIZE, 1);
	fd = open(name, O_RDWR | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	r = fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, SIZE);
	close(fd);
	fs_type = kinds[k].type;
	return r ? NULL : rig_export(spec);
}

/* A hole too many is lost data: where the type is not known all is data. */
Test(export_fs, holes_are_told_of_known_file_systems_only)
{
	struct export *ex[ARRAY_SIZE(kinds)];

	for_each_case(k, kinds) {
		ex[k - kinds] = hole_on((size_t)(k - kinds));
		if (!ex[k - kinds])
			cr_skip_test("files have no holes here");
	}
	rig_attach();
	for_each_case(k, kinds)
		cr_assert_eq(what_is_told(ex[k - kinds]), k->holes ? SPARSE : 0, "%s", k->name);
}

/* A file system that asks another machine, or a process, would stop the thread with all exports.
 * RWF_DSYNC may be taken and ignored. */
Test(export_fs, threads_write_to_local_ones_and_dsync_is_for_known_ones)
{
	char name[16], spec[32];
	unsigned fs;

	for_each_case(k, kinds) {
		snprintf(name, sizeof(name), "f%zu", (size_t)(k - kinds));
		snprintf(spec, sizeof(spec), "%s=%s", name, name);
		rig_file(name, 4096, 1);
		fs_type = k->type;
		fs = store_file(rig_export(spec))->fs;
		cr_assert_eq(!!(fs & STORE_FILE_FS_LOCAL), k->local, "%s", k->name);
		cr_assert_eq(!!(fs & STORE_FILE_FS_DSYNC), k->dsync, "%s", k->name);
	}
	rig_attach();
}
