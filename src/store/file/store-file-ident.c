/* SPDX-License-Identifier: BSD-3-Clause */
/* The identity of the file or device of an export, by which a returning client tells one storage
 * from another (man/rtrs-protocol.pod, "export id").  Main thread, or a worker (export-life.h);
 * owns nothing; cannot fail.
 *
 * Device numbers follow the order in which devices are found.  A reboot may change such numbers,
 * and a client would take the same file for another.  File systems and disks have ids that stay;
 * the device number stands in for a missing id. */
#include <config.h>

#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>

#include "store-file-priv.h"

static uint64_t hash_number(uint64_t hash, uint64_t number)
{
	return fnv1a(hash, &number, sizeof(number));
}

/* Read the id of the block device of @ex into @id.  False: it has none. */
static bool read_wwid(const struct export *ex, char *id, int len)
{
	static const char *const attrs[] = { "dm/uuid", "wwid", "device/wwid", "serial" };

	for (unsigned i = 0; i < ARRAY_SIZE(attrs); i++) {
		if (store_file_sysfs(store_file(ex)->dev, attrs[i], id, len) && id[0])
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
	return hash_number(hash, store_file_sysfs_number(store_file(ex)->dev, "partition", 0));
}

static uint64_t ident_regular(const struct store_file *f)
{
	uint64_t hash = FNV1A_INIT, fsid = 0;
	int generation = 0;
	struct statfs fs;

	if (!fstatfs(f->fd, &fs))
		memcpy(&fsid, &fs.f_fsid, sizeof(fsid));
	/* The next file with this inode's number has another generation. */
	if (ioctl(f->fd, FS_IOC_GETVERSION, &generation) < 0)
		generation = 0;
	hash = hash_number(hash, fsid ? fsid : f->dev);
	hash = hash_number(hash, f->ino);
	return hash_number(hash, (unsigned)generation);
}

uint64_t store_file_ident(const struct store_file *f)
{
	return f->is_block ? ident_block(&f->ex) : ident_regular(f);
}
