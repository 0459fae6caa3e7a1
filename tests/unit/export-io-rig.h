/* SPDX-License-Identifier: BSD-3-Clause */
/* A real reactor with real exports for tests of export-io: one thread, operations in batches. */
#ifndef EXPORT_IO_RIG_H
#define EXPORT_IO_RIG_H

#include <stddef.h>

#include "store-file-priv.h"
#include "export-io.h"
#include "exports.h"

struct rig {
	char dir[64];			/* of its own; current directory while the rig stands */
	struct exports exports;
	struct reactor *reactor;
	unsigned in_flight;
	bool mounted;
	int loop;			/* 0: none */
};

struct rig_io {
	struct export_io io;
	int status;			/* 1 while in flight */
};

/* The one of the program, new in each test: these are .init and .fini.  They fail the test when
 * something cannot be had. */
extern struct rig rig;
void rig_init(void);
void rig_fini(void);
/* A file of @size bytes, of which byte i is (i / 512 + seed) % 251. */
void rig_file(const char *name, size_t size, unsigned seed);
struct export *rig_export(const char *spec);
/* Pretend that @ex needs O_DIRECT's @align, as on a disk with large blocks; stricter than the truth
 * is always allowed. */
void rig_set_align(struct export *ex, uint32_t align);
/* After the last rig_export(), before any operation. */
void rig_attach(void);

/* Start; the caller fills op, flags, offset, len, buf and mem of io->io. */
void rig_start(struct export *ex, struct rig_io *io);
/* Run until nothing is in flight. */
void rig_wait(void);
/* One operation from start to end: its status. */
int rig_do(struct export *ex, enum rnbd_io_op op, uint32_t flags, uint64_t offset,
	   uint32_t len, void *buf);
/* The file as others see it. */
void rig_read_file(const char *name, void *buf, size_t len);

/* A file system of @kib KiB at "small", in a mount namespace of this process.  False: not root. */
bool rig_mount_small(unsigned kib);
/* Make a loop device of @file; its path in @path.  False: not possible here. */
bool rig_loop(const char *file, char *path, size_t len);

/* Would a WRITE with @flags that is started now take its data at once? */
bool rig_takes_at_once(struct export *ex, uint32_t flags);

#endif
