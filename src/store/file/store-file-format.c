/* SPDX-License-Identifier: BSD-3-Clause */
/* Images of virtual machines in a format of their own, exported as they lie: clients see the bytes
 * of the format instead of the disk.  A warning, because a disk may hold anything.  Owns nothing;
 * main thread, or a worker (export-life.h); blocks. */
#include <config.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cleanup.h"
#include "log.h"
#include "store-file-priv.h"

/* What a file of the format begins with, as QEMU's block drivers know the format. */
struct format {
	const char *name;		/* of qemu-img(1) */
	unsigned at;
	const char *magic;
	size_t len;
};

#define MAGIC(s) .magic = (s), .len = sizeof(s) - 1

/* LUKS is none of them: a client may open it. */
static const struct format formats[] = {
	{ "qcow2", 0, MAGIC("QFI\xfb") },
	{ "vmdk", 0, MAGIC("KDMV") },
	{ "vmdk", 0, MAGIC("COWD") },
	{ "vmdk", 0, MAGIC("# Disk DescriptorFile") },
	{ "vhdx", 0, MAGIC("vhdxfile") },
	{ "vdi", 64, MAGIC("\x7f\x10\xda\xbe") },
};

/* The format of what begins with the @len bytes of @head; NULL: none that is known. */
static const char *format_of(const char *head, size_t len)
{
	for (unsigned i = 0; i < ARRAY_SIZE(formats); i++) {
		const struct format *f = &formats[i];

		if (f->at + f->len <= len && !memcmp(head + f->at, f->magic, f->len))
			return f->name;
	}
	return NULL;
}

void store_file_format_warn(const struct export *ex)
{
	size_t size = MAX(ex->direct ? ex->block_align : 0, RNBD_SECTOR_SIZE);
	_cleanup_free_ char *head = NULL;
	const char *name;
	ssize_t n;
	void *p;

	if (posix_memalign(&p, size, size))
		return;
	head = p;
	n = pread(store_file(ex)->fd, head, size, 0);
	name = n > 0 ? format_of(head, (size_t)n) : NULL;
	if (name)
		log_warn(ex->name, "'%s' is a %s image: clients see the bytes of the format, not "
			 "the disk inside: make a raw copy (qemu-img convert -f %s -O raw), or "
			 "export the image with qemu-nbd", ex->path, name, name);
}
