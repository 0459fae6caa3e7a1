/* SPDX-License-Identifier: BSD-3-Clause */
/* What the server exports: files and block devices with their geometry, and who has them open.
 *
 * The list is built at start and constant afterwards.  Sharing (protocol.md 8.2: many ro, one rw, a
 * second rw only as migration) is counted per underlying file across sessions and used on the
 * control thread only. */
#ifndef EXPORT_H
#define EXPORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "list.h"
#include "rnbd-msg.h"

struct export {
	struct list link;
	unsigned index;			/* 0.. in order of the command line; fixed-file slot of each ring */
	char *name, *path;
	int fd;
	bool readonly;			/* asked for, or the file cannot be opened for writing */
	bool direct;			/* O_DIRECT */
	bool is_block;
	uint64_t size;			/* bytes, a multiple of 512: what is exported */
	struct rnbd_dev_info geometry;	/* all but device_id; told in OPEN_RSP */
	uint32_t dio_align;		/* direct: needed alignment of offset, length and memory */
	unsigned writers, users;	/* control thread */
	/* A failed fsync stays: FLUSH and FUA fail in every session until the export is opened anew
	 * with no user left (design.md D13).  Any thread. */
	_Atomic(int) sync_error;
};

struct exports {
	struct list list;
	unsigned n;
};

/* Parse "NAME=PATH[,readonly][,direct]", open it, learn its geometry, append it.  Returns 0 or
 * -errno with one clear line in @err: bad syntax, name empty, too long or with "..", duplicate name,
 * missing, unreadable, a directory, size not a multiple of 512, size 0.  A ',' or '\' in PATH is
 * written "\,", "\\". */
int exports_add(struct exports *e, const char *spec, char *err, size_t errlen);
void exports_init(struct exports *e);
void exports_fini(struct exports *e);
struct export *exports_find(const struct exports *e, const char *name);

/* Sharing rules: 0, -EPERM, -EROFS (rw or migration of a read-only export).  Pairs with
 * export_release of the same mode. */
int export_acquire(struct export *ex, enum rnbd_access_mode mode);
void export_release(struct export *ex, enum rnbd_access_mode mode);

#endif
