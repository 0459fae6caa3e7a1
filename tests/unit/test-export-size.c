/* SPDX-License-Identifier: BSD-3-Clause */
/* How large an export is now, on real files and devices, and requests to what was not there when it
 * was opened. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "export-io-rig.h"
#include "unit.h"

#define SIZE (1u << 20)
#define NONE INT64_MIN


TestSuite(export_size, .init = rig_init, .fini = rig_fini, .timeout = 60);

static void told(struct export *ex, int64_t size, void *arg)
{
	cr_assert_eq(*(int64_t *)arg, NONE, "told twice");
	*(int64_t *)arg = size;
	reactor_stop(rig.reactor);
}

static int64_t size_of(struct export *ex)
{
	int64_t later = NONE, now = NONE;

	if (export_io_size(rig.reactor, ex, &now, told, &later))
		return now;
	cr_assert_eq(later, NONE, "told from inside the call");
	cr_assert_eq(reactor_run(rig.reactor), 0);
	return later;
}

static void resize(off_t size)
{
	cr_assert_eq(truncate("f", size), 0);
}

/* What srv-size.c does with it. */
static void learn(struct export *ex)
{
	atomic_store(&ex->size, (uint64_t)size_of(ex));
}

static struct export *export_as(const char *spec, size_t size, uint32_t align)
{
	struct export *ex;

	rig_file("f", size, 1);
	ex = rig_export(spec);
	if (align)
		rig_set_align(ex, align);
	rig_attach();
	cr_assert_eq(size_of(ex), (int64_t)size);
	return ex;
}

Test(export_size, of_a_file)
{
	struct export *ex = export_as("a=f", SIZE, 0);

	resize(3 * SIZE);
	cr_assert_eq(size_of(ex), 3 * SIZE);
	cr_assert_eq(export_size(ex), SIZE, "who asked is who changes it");
	resize(SIZE / 2);
	cr_assert_eq(size_of(ex), SIZE / 2);
	resize(SIZE + 511);
	cr_assert_eq(size_of(ex), SIZE, "whole sectors");
	resize(SIZE + 512);
	cr_assert_eq(size_of(ex), SIZE + 512);
	resize(0);
	cr_assert_eq(size_of(ex), 0);
}

/* It is the file that was opened, whatever its name names now. */
Test(export_size, of_a_file_that_was_replaced)
{
	struct export *ex = export_as("a=f", SIZE, 0);

	cr_assert_eq(rename("f", "g"), 0);
	rig_file("f", 2 * SIZE, 1);
	cr_assert_eq(size_of(ex), SIZE);
}

Test(export_size, is_not_told)
{
	struct export *ex = export_as("a=f", SIZE, 0);
	int fd = store_file(ex)->fd;

	store_file(ex)->fd = 1000000;
	cr_assert_eq(size_of(ex), -EBADF);
	store_file(ex)->fd = fd;
	cr_assert_eq(size_of(ex), SIZE);
}

/* All kinds of requests where there was nothing when it was opened. */
static void use_end(struct export *ex)
{
	static uint8_t buf[4096], got[4096];
	uint64_t size = export_size(ex);

	memset(buf, 7, sizeof(buf));
	memset(got, 9, sizeof(got));
	cr_assert_eq(rig_do(ex, RNBD_OP_WRITE, RNBD_F_FUA, size - 4096, 4096, buf), 0);
	cr_assert_eq(rig_do(ex, RNBD_OP_WRITE, 0, size - 1536, 512, got), 0);
	cr_assert_eq(rig_do(ex, RNBD_OP_WRITE_ZEROES, RNBD_F_NOUNMAP, size - 512, 512, NULL),
		     0);
	cr_assert_eq(rig_do(ex, RNBD_OP_FLUSH, 0, 0, 0, NULL), 0);
	memcpy(buf + 4096 - 1536, got, 512);
	memset(buf + 4096 - 512, 0, 512);
	cr_assert_eq(rig_do(ex, RNBD_OP_READ, 0, size - 4096, 4096, got), 0);
	cr_assert_arr_eq(got, buf, sizeof(got));
	cr_assert_eq(rig_do(ex, RNBD_OP_READ, 0, size - 512, 512, got), 0);
	cr_assert_arr_eq(got, buf + 4096 - 512, 512);
}

static void grow_and_use(struct export *ex, off_t size)
{
	resize(size);
	learn(ex);
	use_end(ex);
}

Test(export_size, all_that_has_grown_is_used)
{
	grow_and_use(export_as("a=f", SIZE, 0), 2 * SIZE + 512);
}

/* A direct export without a tail goes on without one: whole blocks. */
Test(export_size, direct_in_blocks)
{
	struct export *ex = export_as("a=f,direct", SIZE, 4096);

	resize(2 * SIZE + 4095);
	cr_assert_eq(size_of(ex), 2 * SIZE);
	resize(SIZE / 2 + 512);
	cr_assert_eq(size_of(ex), SIZE / 2);
	grow_and_use(ex, 2 * SIZE);
}

/* One with a tail goes on with that, however large it gets. */
Test(export_size, direct_with_a_tail)
{
	struct export *ex = export_as("a=f,direct", SIZE + 3 * 512, 4096);

	resize(2 * SIZE + 4095);
	cr_assert_eq(size_of(ex), 2 * SIZE + 7 * 512);
	grow_and_use(ex, 2 * SIZE + 7 * 512);
	/* In front of the tail there are blocks. */
	resize(SIZE / 2 + 512);
	cr_assert_eq(size_of(ex), SIZE / 2);
}

/* What was cut off is behind the end for whoever comes too late to know. */
Test(export_size, behind_the_end)
{
	struct export *ex = export_as("a=f", SIZE, 0);
	uint8_t buf[1024];

	resize(SIZE / 2);
	cr_assert_eq(rig_do(ex, RNBD_OP_READ, 0, SIZE / 2 - 512, 1024, buf), -EIO);
	cr_assert_eq(rig_do(ex, RNBD_OP_READ, 0, SIZE - 1024, 1024, buf), -EIO);
}

Test(export_size, of_a_device)
{
	char path[64], spec[80];
	struct export *ex;
	int fd;

	rig_file("f", SIZE, 1);
	if (!rig_loop("f", path, sizeof(path)))
		cr_skip_test("no loop device: root is needed");
	snprintf(spec, sizeof(spec), "a=%s", path);
	ex = rig_export(spec);
	rig_attach();
	cr_assert(store_file(ex)->is_block);
	cr_assert_eq(size_of(ex), SIZE);
	resize(2 * SIZE);
	cr_assert_eq(size_of(ex), SIZE, "it is the device's size that counts");
	fd = open(path, O_RDWR | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	cr_assert_eq(ioctl(fd, LOOP_SET_CAPACITY), 0);
	close(fd);
	cr_assert_eq(size_of(ex), 2 * SIZE);
	learn(ex);
	use_end(ex);
}
