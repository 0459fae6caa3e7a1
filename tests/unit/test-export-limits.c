/* SPDX-License-Identifier: BSD-3-Clause */
/* Limits of storage that no disk of today comes up to, and of one ring: statx(), pread() and
 * ioctl() say what the test wants. */
#include <config.h>

#include <errno.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "export-add.h"
#include "export-io-rig.h"
#include "export-ring.h"
#include "store-driver.h"
#include "unit.h"

#define SIZE (1u << 20)
#define DIO_ALIGN_MAX 65536u		/* as store-file.c has it */
#define PHYSICAL_MAX 32768u		/* as store-file-geometry.c has it */
#define WORKERS_MAX 1024u		/* as export-io.c has it */

/* ---- alignment of O_DIRECT ---- */

static uint32_t align;			/* of the file system; 0: as it is */
static bool tells_align;		/* by statx() */
static bool takes_any;			/* pread() takes any alignment */

#ifdef STATX_DIOALIGN
int __real_statx(int dir, const char *path, int flags, unsigned mask, struct statx *stx);
int __wrap_statx(int dir, const char *path, int flags, unsigned mask, struct statx *stx);

int __wrap_statx(int dir, const char *path, int flags, unsigned mask, struct statx *stx)
{
	int r = __real_statx(dir, path, flags, mask, stx);

	stx->stx_mask &= ~STATX_DIOALIGN;
	if (!tells_align)
		return r;
	stx->stx_mask |= STATX_DIOALIGN;
	stx->stx_dio_mem_align = RNBD_SECTOR_SIZE;
	stx->stx_dio_offset_align = align;
	return r;
}
#endif

ssize_t __real_pread(int fd, void *buf, size_t len, off_t off);
ssize_t __wrap_pread(int fd, void *buf, size_t len, off_t off);
ssize_t __wrap_pread64(int fd, void *buf, size_t len, off_t off);

ssize_t __wrap_pread(int fd, void *buf, size_t len, off_t off)
{
	if (align && !takes_any &&
	    (len % align || (uint64_t)off % align || (uintptr_t)buf % align)) {
		errno = EINVAL;
		return -1;
	}
	return __real_pread(fd, buf, len, off);
}

ssize_t __wrap_pread64(int fd, void *buf, size_t len, off_t off)
{
	return __wrap_pread(fd, buf, len, off);
}

/* What is written between the blocks is there, and what is beside it stays. */
static void unaligned_io(struct export *ex)
{
	static uint8_t want[SIZE], got[SIZE];
	uint8_t *data = want + DIO_ALIGN_MAX - 1536;

	rig_attach();
	rig_read_file("disk", want, SIZE);
	memset(data, 0xd7, DIO_ALIGN_MAX + 4096);
	cr_assert_eq(rig_do(ex, RNBD_OP_WRITE, 0, DIO_ALIGN_MAX - 1536, DIO_ALIGN_MAX + 4096,
			    data), 0);
	rig_read_file("disk", got, SIZE);
	expect_bytes(got, want, SIZE, "file");
	memset(got, 0, SIZE);
	cr_assert_eq(rig_do(ex, RNBD_OP_READ, 0, DIO_ALIGN_MAX - 1024, DIO_ALIGN_MAX, got),
		     0);
	expect_bytes(got, want + DIO_ALIGN_MAX - 1024, DIO_ALIGN_MAX, "read");
}

static void direct_up_to_the_limit(bool tells)
{
	static const uint32_t aligns[] = { DIO_ALIGN_MAX / 2, DIO_ALIGN_MAX, 2 * DIO_ALIGN_MAX,
					   4 * DIO_ALIGN_MAX };

	tells_align = tells;
	for_each_case(a, aligns) {
		char err[512] = "";
		struct export *ex;
		int rc;

		rig_init();
		rig_file("disk", SIZE, 1);
		align = *a;
		rc = export_add_line(&rig.exports, "d=disk,direct", err, sizeof(err));
		align = 0;
		cr_assert_eq(rc, *a <= DIO_ALIGN_MAX ? 0 : -EINVAL, "%u: %s", *a, err);
		if (!rc) {
			ex = exports_find(&rig.exports, "d");
			cr_assert_eq(ex->block_align, *a);
			cr_assert_eq(ex->geometry.physical_block_size, MIN(*a, PHYSICAL_MAX));
			unaligned_io(ex);
		} else {
			cr_assert(strstr(err, "cannot be read with O_DIRECT: remove ',direct'"),
				  "%s", err);
		}
		rig_fini();
	}
}

Test(export_limits, direct_as_a_file_system_tells_it)
{
#ifdef STATX_DIOALIGN
	direct_up_to_the_limit(true);
#endif
}

Test(export_limits, direct_as_it_is_found) { direct_up_to_the_limit(false); }

/* An alignment that cannot be kept is refused, whatever the file system takes. */
Test(export_limits, direct_as_no_file_system_tells_it, .init = rig_init, .fini = rig_fini)
{
#ifdef STATX_DIOALIGN
	static const uint32_t aligns[] = { 3 * RNBD_SECTOR_SIZE, 2 * DIO_ALIGN_MAX };
	char err[512];

	rig_file("disk", SIZE, 1);
	tells_align = takes_any = true;
	for_each_case(a, aligns) {
		align = *a;
		cr_assert_eq(export_add_line(&rig.exports, "d=disk,direct", err, sizeof(err)),
			     -EINVAL, "%u", *a);
	}
	align = 0;
#endif
}

/* ---- blocks of a disk ---- */

static unsigned logical, physical;

int __real_ioctl(int fd, unsigned long request, ...);
int __wrap_ioctl(int fd, unsigned long request, ...);

int __wrap_ioctl(int fd, unsigned long request, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (request != BLKSSZGET && request != BLKPBSZGET)
		return __real_ioctl(fd, request, arg);
	*(unsigned *)arg = request == BLKSSZGET ? logical : physical;
	return 0;
}

static const struct rnbd_dev_info *geometry(struct store_file *f, bool is_block)
{
	*f = (struct store_file){ .fd = -1, .is_block = is_block, .ex.spec.readonly = true };
	store_file_geometry(f, is_block ? 0 : physical);
	return &f->ex.geometry;
}

Test(export_limits, blocks_of_a_disk)
{
	static const uint32_t sizes[] = { PHYSICAL_MAX / 2, PHYSICAL_MAX, 2 * PHYSICAL_MAX,
					  4 * PHYSICAL_MAX };
	struct store_file f;

	for_each_case(size, sizes) {
		uint32_t least = MIN(*size, PHYSICAL_MAX);

		logical = RNBD_SECTOR_SIZE;
		physical = *size;
		cr_assert_eq(geometry(&f, true)->logical_block_size, RNBD_SECTOR_SIZE);
		cr_assert_eq(f.ex.geometry.physical_block_size, least);
		cr_assert_eq(geometry(&f, false)->physical_block_size, least);
		/* A client cannot be told of larger sectors: the page cache does without. */
		logical = *size;
		cr_assert_eq(geometry(&f, true)->logical_block_size,
			     *size <= PHYSICAL_MAX ? *size : RNBD_SECTOR_SIZE);
		cr_assert_eq(f.ex.geometry.physical_block_size, least);
	}
}

/* ---- exports of a ring ---- */

static unsigned workers;		/* that the ring may have */
static rlim_t files;			/* that the process may have */

int __real_getrlimit(int resource, struct rlimit *limit);
int __wrap_getrlimit(int resource, struct rlimit *limit);

int __wrap_getrlimit(int resource, struct rlimit *limit)
{
	int r = __real_getrlimit(resource, limit);

	if (files)
		limit->rlim_cur = files;
	return r;
}

int __real_store_uring_attach(struct reactor *r, unsigned nfiles, char *err, size_t errlen);
int __wrap_store_uring_attach(struct reactor *r, unsigned nfiles, char *err, size_t errlen);

/* The kernel does not believe it, and memory needs no file. */
int __wrap_store_uring_attach(struct reactor *r, unsigned nfiles, char *err, size_t errlen)
{
	return __real_store_uring_attach(r, MIN(nfiles, 64u), err, errlen);
}

void __wrap_store_uring_allow_workers(struct reactor *r, unsigned n);

void __wrap_store_uring_allow_workers(struct reactor *r, unsigned n)
{
	workers = n;
}

static struct export *another(unsigned n)
{
	char spec[32];

	snprintf(spec, sizeof(spec), "m%u=mem:64K", n);
	return rig_export(spec);
}

/* Each export may have 73 workers, and 64 are for all. */
static void expect_workers(unsigned nexports)
{
	cr_assert_eq(workers, MIN(nexports * 73 + 64, WORKERS_MAX), "%u: %u", nexports, workers);
}

static void works(struct export *ex, uint8_t fill)
{
	static uint8_t out[4096], in[4096];

	memset(in, 0, sizeof(in));
	memset(out, fill, sizeof(out));
	cr_assert_eq(rig_do(ex, RNBD_OP_WRITE, 0, 8192, sizeof(out), out), 0);
	cr_assert_eq(rig_do(ex, RNBD_OP_READ, 0, 8192, sizeof(in), in), 0);
	expect_bytes(in, out, sizeof(in), "read");
}

/* The exports of a process that may have @nofile files, of which each export wants six, come one by
 * one while the ring runs: @room get in. */
static void exports_come(rlim_t nofile, unsigned room, const char *told)
{
	struct export *ex = NULL, *last;
	char err[256] = "";

	files = nofile;
	rig_init();
	another(0);
	rig_attach();
	for (unsigned n = 1; n < room; n++) {
		ex = another(n);
		cr_assert_eq(export_ring_add(rig.reactor, ex, err, sizeof(err)), 0, "%u: %s", n,
			     err);
		expect_workers(n + 1);
	}
	works(ex, 0x5a);
	for (unsigned n = 0; n < 2; n++) {
		last = another(room + n);
		cr_assert_eq(export_ring_add(rig.reactor, last, err, sizeof(err)), -EMFILE);
		cr_assert_str_eq(strstr(err, "the limit of "), told);
	}
	works(ex, 0xa5);
	/* The place of one that goes is free. */
	export_ring_del(rig.reactor, ex);
	exports_del(&rig.exports, ex);
	ex = another(room + 2);
	cr_assert_eq(ex->index, room - 1);
	cr_assert_eq(export_ring_add(rig.reactor, ex, err, sizeof(err)), 0, "%s", err);
	works(ex, 0x69);
	/* The next server has room for what it finds. */
	export_ring_detach(rig.reactor);
	reactor_destroy(rig.reactor);
	cr_assert_eq(reactor_create("next", 64, &rig.reactor), 0);
	rig_attach();
	works(ex, 0x3c);
	works(last, 0xc3);
	rig_fini();
}

Test(export_limits, exports_of_a_ring)
{
	static const char most[] = "the limit of 4096 exports is reached while the server "
				   "runs";

	exports_come(6 * EXPORT_RING_MAX - 1, EXPORT_RING_MAX - 1,
		     "the limit of 4095 exports is reached "
		     "(RLIMIT_NOFILE: ulimit -n, systemd: LimitNOFILE=)");
	exports_come(6 * EXPORT_RING_MAX, EXPORT_RING_MAX, most);
}
