/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory as an export: what is written is read, what is discarded or zeroed is zeroes and nothing
 * beside it, and each export is a disk of its own. */
#include <config.h>

#include <stdlib.h>

#include "export-add.h"
#include "export-io-rig.h"
#include "rnbd-ext.h"
#include "unit.h"

#define SIZE (1u << 20)
#define SECTOR RNBD_SECTOR_SIZE

static uint8_t model[SIZE], buf[SIZE];

TestSuite(export_mem, .init = rig_init, .fini = rig_fini);

static void check_all(struct export *ex)
{
	cr_assert_eq(rig_do(ex, RNBD_OP_READ, 0, 0, SIZE, buf), 0);
	cr_assert_arr_eq(buf, model, SIZE);
}

static void write_at(struct export *ex, uint32_t off, uint32_t len, uint8_t fill)
{
	memset(model + off, fill, len);
	memset(buf, fill, len);
	cr_assert_eq(rig_do(ex, RNBD_OP_WRITE, 0, off, len, buf), 0);
}

/* Random operations against an array. */
Test(export_mem, is_a_disk)
{
	static const enum rnbd_io_op zeroing[] = { RNBD_OP_WRITE_ZEROES, RNBD_OP_DISCARD };
	struct export *ex = rig_export("m=mem:1M");

	rig_attach();
	cr_assert_eq(export_size(ex), SIZE);
	cr_assert_str_eq(ex->kind, "mem");
	cr_assert_str_eq(ex->kind_text, "memory");
	cr_assert_eq(ex->geometry.max_discard_sectors, ex->geometry.max_write_zeroes_sectors);
	cr_assert_gt(ex->geometry.max_discard_sectors, 0);
	cr_assert_eq(ex->geometry.discard_granularity, 4096);
	cr_assert_eq(ex->geometry.physical_block_size, 4096);
	check_all(ex);
	srandom(1);
	for (unsigned i = 0; i < 400; i++) {
		uint32_t off = (uint32_t)(random() % (SIZE / SECTOR)) * SECTOR;
		uint32_t len = MIN((uint32_t)(1 + random() % 64) * SECTOR, SIZE - off);
		uint32_t flags = random() % 2 ? RNBD_F_NOUNMAP : 0;

		if (random() % 3) {
			write_at(ex, off, len, (uint8_t)(1 + i % 255));
			continue;
		}
		memset(model + off, 0, len);
		cr_assert_eq(rig_do(ex, zeroing[random() % 2], flags, off, len, NULL), 0);
		check_all(ex);
	}
	check_all(ex);
	cr_assert_eq(rig_do(ex, RNBD_OP_FLUSH, 0, 0, 0, NULL), 0);
}

Test(export_mem, each_is_a_disk_of_its_own)
{
	struct export *a = rig_export("a=mem:1M"), *b = rig_export("b=mem:1M");

	rig_attach();
	cr_assert_neq(a->store, b->store);
	cr_assert_neq(a->ident, b->ident);
	write_at(a, 0, 4096, 7);
	memset(model, 0, 4096);
	check_all(b);
}

/* Nothing of it is called a hole. */
Test(export_mem, is_all_data)
{
	struct export *ex = rig_export("m=mem:1M,readonly");
	struct rig_io rio = { .io = { .op = RNBD_OP_EXTENTS, .len = SIZE, .buf = buf,
				      .room = 4096, .mem = -1 } };
	struct rnbd_extent e;

	rig_attach();
	rig_start(ex, &rio);
	rig_wait();
	cr_assert_eq(rio.status, 0);
	cr_assert_eq(rnbd_extents_decode(buf, 4096, SIZE), 1);
	e = rnbd_extents_get(buf, 0);
	cr_assert_eq(e.len, SIZE);
	cr_assert_eq(e.what, 0);
}

/* Files beside memory go on as if there were files alone. */
Test(export_mem, waits_for_nothing)
{
	rig_file("f", 4096, 0);
	rig_export("a=f");
	rig_export("m=mem:1M");
	rig_export("n=mem:1M");
	cr_assert(exports_one_medium(&rig.exports));
	rig_attach();
}

Test(export_mem, refusals)
{
	static const struct { const char *spec, *want; } cases[] = {
		{ "m=mem:", "export 'm': 'mem:': expected mem:SIZE" },
		{ "m=mem:0", "expected mem:SIZE" },
		{ "m=mem:1000", "a multiple of 512 bytes" },
		{ "m=mem:1Q", "K, M, G or T" },
		{ "m=mem:-1", "expected mem:SIZE" },
		{ "m=mem:16000000T", "expected mem:SIZE" },
		{ "m=mem:7000000T", "not enough memory" },
		{ "m=mem:1M,direct",
		  "'direct' is only for files and block devices: expected readonly" },
	};
	char err[512];

	for_each_case(c, cases) {
		cr_assert_lt(export_add_line(&rig.exports, c->spec, err, sizeof(err)), 0,
			     "%s", c->spec);
		cr_assert_not_null(strstr(err, c->want), "%s: %s", c->spec, err);
	}
	rig_attach();
}
