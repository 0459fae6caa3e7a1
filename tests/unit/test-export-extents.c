/* SPDX-License-Identifier: BSD-3-Clause */
/* Which parts of a file hold data, on real files: nothing that was written is called a hole, holes
 * are found, and what is not known is data. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <unistd.h>

#include "export-io-rig.h"
#include "rnbd-ext.h"
#include "unit.h"

#define SIZE (4u << 20)
#define SPARSE (RNBD_EXTENT_HOLE | RNBD_EXTENT_ZERO)

static uint8_t answer[RNBD_EXTENTS_ROOM];

TestSuite(export_extents, .init = rig_init, .fini = rig_fini, .timeout = 60);

/* ---- lseek() as a file system could have it (-Wl,--wrap=lseek) ---- */

off_t __real_lseek(int fd, off_t off, int whence);
off_t __wrap_lseek(int fd, off_t off, int whence);

static struct {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool held, in, fails;
	off_t moves;
} seeks = { .lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER };

off_t __wrap_lseek(int fd, off_t off, int whence)
{
	off_t at;

	pthread_mutex_lock(&seeks.lock);
	seeks.in = true;
	pthread_cond_broadcast(&seeks.cond);
	while (seeks.held)
		pthread_cond_wait(&seeks.cond, &seeks.lock);
	pthread_mutex_unlock(&seeks.lock);
	if (seeks.fails) {
		errno = EINVAL;
		return -1;
	}
	at = __real_lseek(fd, off, whence);
	return at < 0 ? at : at + seeks.moves;
}

static void seeks_hold(bool hold)
{
	pthread_mutex_lock(&seeks.lock);
	seeks.held = hold;
	pthread_cond_broadcast(&seeks.cond);
	pthread_mutex_unlock(&seeks.lock);
}

/* ---- questions ---- */

static void hole(const char *name, off_t off, off_t len)
{
	int fd = open(name, O_RDWR | O_CLOEXEC);

	cr_assert_geq(fd, 0);
	cr_assert_eq(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off, len), 0);
	close(fd);
}

static struct export *export_of(const char *spec)
{
	struct export *ex = rig_export(spec);

	rig_attach();
	return ex;
}

static void start(struct export *ex, struct rig_io *rio, uint64_t off, uint32_t len, uint32_t room)
{
	memset(answer, 0xa5, sizeof(answer));
	*rio = (struct rig_io){ .io = { .op = RNBD_OP_EXTENTS, .offset = off, .len = len,
					.buf = answer,
					.room = room, .mem = -1 } };
	rig_start(ex, rio);
}

/* How many extents there are in [@off, @off + @len). */
static int ask(struct export *ex, uint64_t off, uint32_t len, uint32_t room)
{
	struct rig_io rio;

	start(ex, &rio, off, len, room);
	rig_wait();
	cr_assert_eq(rio.status, 0);
	return rnbd_extents_decode(answer, room, len);
}

static void expect_extent(unsigned i, uint64_t len, uint32_t what)
{
	struct rnbd_extent e = rnbd_extents_get(answer, i);

	cr_assert_eq(e.len, len, "extent %u has %llu bytes", i, (unsigned long long)e.len);
	cr_assert_eq(e.what, what, "extent %u is %u", i, e.what);
}

/* ---- a file ---- */

static void holes_are_found(const char *spec)
{
	struct export *ex;

	rig_file("f", SIZE, 1);
	hole("f", 1 << 20, 1 << 20);
	hole("f", 3 << 20, 1 << 20);
	ex = export_of(spec);
	cr_assert_eq(ask(ex, 0, SIZE, sizeof(answer)), 4);
	expect_extent(0, 1 << 20, 0);
	expect_extent(1, 1 << 20, SPARSE);
	expect_extent(2, 1 << 20, 0);
	expect_extent(3, 1 << 20, SPARSE);
	/* from and to the middle of one */
	cr_assert_eq(ask(ex, (1 << 20) + 512, 2 << 20, sizeof(answer)), 3);
	expect_extent(0, (1 << 20) - 512, SPARSE);
	expect_extent(1, 1 << 20, 0);
	expect_extent(2, 512, SPARSE);
	cr_assert_eq(ask(ex, 512, 512, sizeof(answer)), 1);
	expect_extent(0, 512, 0);
	/* as far as there is room */
	cr_assert_eq(ask(ex, 0, SIZE, RNBD_EXTENTS_ROOM_MIN), 1);
	expect_extent(0, 1 << 20, 0);
	cr_assert_eq(ask(ex, 0, SIZE, RNBD_EXTENTS_ROOM_MIN + 8), 2);
	cr_assert_eq(ask(ex, 1 << 20, SIZE - (1 << 20), RNBD_EXTENTS_ROOM_MIN), 1);
	expect_extent(0, 1 << 20, SPARSE);
}

Test(export_extents, holes_are_found) { holes_are_found("e=f"); }
Test(export_extents, holes_are_found_by_direct_exports) { holes_are_found("e=f,direct"); }

Test(export_extents, all_is_a_hole_and_all_is_data)
{
	struct export *ex;

	rig_file("f", SIZE, 1);
	hole("f", 0, SIZE);
	ex = export_of("e=f");
	cr_assert_eq(ask(ex, 0, SIZE, sizeof(answer)), 1);
	expect_extent(0, SIZE, SPARSE);
	for (unsigned off = 0; off < SIZE; off += 1 << 20)
		cr_assert_eq(rig_do(ex, RNBD_OP_WRITE, 0, off, sizeof(answer), answer), 0);
	for (unsigned off = 0; off < SIZE; off += 1 << 20) {
		cr_assert_eq(ask(ex, off, sizeof(answer), sizeof(answer)), 1);
		expect_extent(0, sizeof(answer), 0);
	}
}

/* Nothing that an answered request has written is a hole, and what is a hole reads as zeroes. */
Test(export_extents, against_a_model)
{
	static uint8_t model[SIZE / 64], buf[65536];
	static const enum rnbd_io_op ops[] = { RNBD_OP_WRITE, RNBD_OP_WRITE, RNBD_OP_WRITE_ZEROES,
					       RNBD_OP_DISCARD };
	unsigned seed = 7, nholes = 0;
	struct export *ex;

	rig_file("f", sizeof(model), 1);
	hole("f", 0, sizeof(model));
	ex = export_of("e=f");
	memset(buf, 0x5a, sizeof(buf));
	for (unsigned step = 0; step < 600; step++) {
		enum rnbd_io_op op = ops[(unsigned)rand_r(&seed) % ARRAY_SIZE(ops)];
		unsigned off = (unsigned)rand_r(&seed) % (sizeof(model) / 512) * 512;
		unsigned len = MIN((1 + (unsigned)rand_r(&seed) % 32) * 512,
				   (unsigned)sizeof(model) - off);
		uint64_t at = 0;
		int n;

		cr_assert_eq(rig_do(ex, op, 0, off, len, buf), 0);
		memset(model + off, op == RNBD_OP_WRITE ? 0x5a : 0, len);
		n = ask(ex, 0, sizeof(model), sizeof(answer));
		cr_assert_gt(n, 0);
		for (int i = 0; i < n; i++) {
			struct rnbd_extent e = rnbd_extents_get(answer, (unsigned)i);

			for (uint64_t k = 0; e.what && k < e.len; k++)
				cr_assert_eq(model[at + k], 0, "step %u: byte %llu is in a hole",
					     step, (unsigned long long)(at + k));
			nholes += !!e.what;
			at += e.len;
		}
		cr_assert_eq(at, sizeof(model));
	}
	cr_assert_gt(nholes, 100);
}

/* READs fail there, and are not to be left out. */
Test(export_extents, behind_the_end_of_a_truncated_file_is_data)
{
	struct export *ex;

	rig_file("f", SIZE, 1);
	hole("f", 1 << 20, 3 << 20);
	ex = export_of("e=f");
	cr_assert_eq(truncate("f", (2 << 20) + 1000), 0);
	cr_assert_eq(ask(ex, 0, SIZE, sizeof(answer)), 3);
	expect_extent(0, 1 << 20, 0);
	expect_extent(1, (1 << 20) + 512, SPARSE);
	expect_extent(2, (2 << 20) - 512, 0);
	cr_assert_eq(ask(ex, 3 << 20, 1 << 20, sizeof(answer)), 1);
	expect_extent(0, 1 << 20, 0);
	/* no room for that */
	cr_assert_eq(ask(ex, 0, SIZE, RNBD_EXTENTS_ROOM_MIN), 1);
	expect_extent(0, 1 << 20, 0);
}

/* Questions and places that do not fit 31 bits, or 32. */
Test(export_extents, beyond_32_bits)
{
	const uint32_t most = UINT32_MAX / 512 * 512;
	const uint64_t gib = 1 << 30, end = 9 * gib;
	struct export *ex;
	int fd;

	rig_file("f", 4096, 1);
	if (truncate("f", (off_t)end))
		cr_skip_test("no files of 9 GiB here");
	fd = open("f", O_WRONLY | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	cr_assert_eq(pwrite(fd, answer, 4096, (off_t)(3 * gib)), 4096);
	cr_assert_eq(pwrite(fd, answer, 4096, (off_t)(8 * gib)), 4096);
	close(fd);
	ex = export_of("e=f");
	cr_assert_eq(ask(ex, 0, most, sizeof(answer)), 4);
	expect_extent(0, 4096, 0);
	expect_extent(1, 3 * gib - 4096, SPARSE);
	expect_extent(2, 4096, 0);
	expect_extent(3, most - 3 * gib - 4096, SPARSE);
	cr_assert_eq(ask(ex, 4 * gib + 512, most, sizeof(answer)), 1);
	expect_extent(0, most, SPARSE);
	cr_assert_eq(ask(ex, 4 * gib + 4096, most, sizeof(answer)), 2);
	expect_extent(0, 4 * gib - 4096, SPARSE);
	expect_extent(1, 4096 - 512, 0);
	cr_assert_eq(ask(ex, 8 * gib + 4096, (uint32_t)gib - 4096, RNBD_EXTENTS_ROOM_MIN), 1);
	expect_extent(0, gib - 4096, SPARSE);
}

Test(export_extents, without_seeks_all_is_data)
{
	struct export *ex;

	rig_file("f", SIZE, 1);
	hole("f", 0, SIZE);
	ex = export_of("e=f");
	seeks.fails = true;
	cr_assert_eq(ask(ex, 0, SIZE, sizeof(answer)), 1);
	expect_extent(0, SIZE, 0);
}

/* A file system may have smaller blocks than sectors: what is in a hole in part is data. */
Test(export_extents, sectors_are_rounded_to_data)
{
	struct export *ex;

	rig_file("f", SIZE, 1);
	hole("f", 0, 1 << 20);
	hole("f", 2 << 20, 2 << 20);
	ex = export_of("e=f");
	seeks.moves = 100;
	cr_assert_eq(ask(ex, 0, SIZE, sizeof(answer)), 3);
	expect_extent(0, 1 << 20, SPARSE);
	expect_extent(1, (1 << 20) + 512, 0);
	expect_extent(2, (2 << 20) - 512, SPARSE);
}

/* ---- what else it must not do ---- */

Test(export_extents, a_file_system_that_stops_holds_nobody_else)
{
	struct rig_io rio, other;
	struct export *ex, *ex2;

	rig_file("f", SIZE, 1);
	rig_file("g", SIZE, 1);
	hole("g", 0, SIZE);
	ex = rig_export("e=f");
	ex2 = rig_export("e2=g");
	rig_attach();
	seeks_hold(true);
	start(ex, &rio, 0, SIZE, sizeof(answer));
	pthread_mutex_lock(&seeks.lock);
	while (!seeks.in)
		pthread_cond_wait(&seeks.cond, &seeks.lock);
	pthread_mutex_unlock(&seeks.lock);
	/* The one in the file system is not waited for. */
	rig.in_flight--;
	cr_assert_eq(rig_do(ex, RNBD_OP_READ, 0, 0, 4096, answer), 0);
	other = (struct rig_io){ .io = { .op = RNBD_OP_WRITE, .len = 4096, .buf = answer,
					 .mem = -1 } };
	rig_start(ex2, &other);
	rig_wait();
	cr_assert_eq(other.status, 0);
	cr_assert_eq(rio.status, 1);
	rig.in_flight++;
	seeks_hold(false);
	rig_wait();
	cr_assert_eq(rio.status, 0);
}

/* Several at once, each with its own answer. */
Test(export_extents, many_at_once)
{
	static uint8_t answers[64][64];
	static struct rig_io rios[64];
	struct export *ex;

	rig_file("f", SIZE, 1);
	hole("f", 2 << 20, 2 << 20);
	ex = export_of("e=f");
	for (unsigned i = 0; i < ARRAY_SIZE(rios); i++) {
		rios[i] = (struct rig_io){ .io = { .op = RNBD_OP_EXTENTS, .offset = i * 65536,
						   .len = 65536,
						   .buf = answers[i], .room = 64, .mem = -1 } };
		rig_start(ex, &rios[i]);
	}
	rig_wait();
	for (unsigned i = 0; i < ARRAY_SIZE(rios); i++) {
		cr_assert_eq(rios[i].status, 0);
		cr_assert_eq(rnbd_extents_decode(answers[i], 64, 65536), 1);
		cr_assert_eq(rnbd_extents_get(answers[i], 0).what, i < 32 ? 0 : SPARSE);
	}
}

Test(export_extents, block_devices_are_data)
{
	char path[64], spec[96];
	struct export *ex;

	rig_file("f", SIZE, 1);
	hole("f", 0, SIZE);
	if (geteuid() || !rig_loop("f", path, sizeof(path)))
		cr_skip_test("needs root and a loop device");
	snprintf(spec, sizeof(spec), "e=%s", path);
	ex = export_of(spec);
	cr_assert_eq(ask(ex, 0, SIZE, sizeof(answer)), 1);
	expect_extent(0, SIZE, 0);
}
