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

static uint64_t ident_block(const struct export *ex)
{
	static const char *const attrs[] = { "dm/uuid", "wwid", "device/wwid", "serial" };
	char id[256];

	for (unsigned i = 0; i < ARRAY_SIZE(attrs); i++) {
		uint64_t hash;

		if (!store_file_sysfs(store_file(ex)->dev, attrs[i], id, sizeof(id)) || !id[0])
			continue;
		hash = fnv1a(FNV1A_INIT, id, strlen(id));
		return hash_number(hash,
				   store_file_sysfs_number(store_file(ex)->dev, "partition", 0));
	}
	return hash_number(FNV1A_INIT, store_file(ex)->dev);
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
