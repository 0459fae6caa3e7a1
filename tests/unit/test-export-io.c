/* SPDX-License-Identifier: BSD-3-Clause */
/* Storage IO on a real ring and real files: what is read and written in all ways of getting there,
 * and what comes back when the storage fails. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include "export-io-rig.h"
#include "export-ring.h"
#include "reactor-ring.h"
#include "srv-export.h"
#include "unit.h"

#define SIZE (1u << 20)


TestSuite(export_io, .init = rig_init, .fini = rig_fini, .timeout = 60);

/* ---- against a model ---- */

struct way {
	const char *spec;
	uint32_t align;			/* of a direct export, pretended; 0: buffered */
	size_t size;
	bool fixed;			/* caller's memory is registered */
	size_t skew;			/* its misalignment */
	const char *name;
};

/* A step of the model: what the file is to look like afterwards. */
static void model_apply(uint8_t *model, const struct export_io *io)
{
	if (io->op == RNBD_OP_WRITE)
		memcpy(model + io->offset, io->buf, io->len);
	else if (io->op == RNBD_OP_WRITE_ZEROES || io->op == RNBD_OP_DISCARD)
		memset(model + io->offset, 0, io->len);
}

static void random_io(struct export_io *io, unsigned *seed, size_t size, uint8_t *buf)
{
	static const enum rnbd_io_op ops[] = {
		RNBD_OP_READ, RNBD_OP_READ, RNBD_OP_READ, RNBD_OP_WRITE, RNBD_OP_WRITE,
		RNBD_OP_WRITE, RNBD_OP_WRITE_ZEROES, RNBD_OP_DISCARD, RNBD_OP_FLUSH,
	};
	static const uint32_t flags[] = { 0, 0, 0, RNBD_F_FUA, RNBD_F_PREFLUSH, RNBD_F_NOUNMAP,
					  RNBD_F_NOUNMAP | RNBD_F_FUA };
	unsigned sectors = (unsigned)(size / 512), start, n;

	io->op = ops[(unsigned)rand_r(seed) % ARRAY_SIZE(ops)];
	io->flags = flags[(unsigned)rand_r(seed) % ARRAY_SIZE(flags)];
	start = (unsigned)rand_r(seed) % sectors;
	if (!(rand_r(seed) % 4))		/* the tail is where mistakes are */
		start = sectors - 1 - (unsigned)rand_r(seed) % 16;
	n = 1 + (unsigned)rand_r(seed) % 32;
	io->offset = start * 512ull;
	io->len = MIN(n, sectors - start) * 512;
	io->buf = buf;
	if (io->op == RNBD_OP_FLUSH)
		io->offset = io->len = 0;
	for (uint32_t i = 0; io->op == RNBD_OP_WRITE && i < io->len; i++)
		buf[i] = (uint8_t)rand_r(seed);
}

static void run_way(const struct way *way)
{
	uint8_t *model = malloc(way->size), *file = malloc(way->size), *mem;
	unsigned seed = 1;
	struct export *ex;
	struct stat st;
	int handle = -1;

	cr_assert(model && file && !posix_memalign((void **)&mem, 65536, 65536));
	rig_file("f", way->size, 3);
	rig_read_file("f", model, way->size);
	ex = rig_export(way->spec);
	if (way->align)
		rig_set_align(ex, way->align);
	rig_attach();
	if (way->fixed) {
		handle = export_ring_mem_add(rig.reactor, mem, 65536);
		cr_assert_geq(handle, 0);
	}
	for (unsigned i = 0; i < 400; i++) {
		struct rig_io rio = { .io.mem = handle };

		random_io(&rio.io, &seed, way->size, mem + way->skew);
		rig_start(ex, &rio);
		rig_wait();
		cr_assert_eq(rio.status, 0, "%s: step %u: op %d: %s", way->name, i, rio.io.op,
			     strerror(-rio.status));
		model_apply(model, &rio.io);
		if (rio.io.op == RNBD_OP_READ)
			expect_bytes(rio.io.buf, model + rio.io.offset, rio.io.len, way->name);
	}
	if (handle >= 0)
		export_ring_mem_del(rig.reactor, handle);
	rig_read_file("f", file, way->size);
	expect_bytes(file, model, way->size, way->name);
	cr_assert_eq(stat("f", &st), 0);
	cr_assert_eq(st.st_size, (off_t)way->size, "%s: the size has changed", way->name);
	free(model);
	free(file);
	free(mem);
}

#define WAY(id, ...)                                                                               \
	Test(export_io, model_##id)                                                                \
	{                                                                                          \
		static const struct way way = { .name = #id, __VA_ARGS__ };                        \
		run_way(&way);                                                                     \
	}

WAY(buffered, .spec = "a=f", .size = SIZE)
WAY(buffered_fixed, .spec = "a=f", .size = SIZE, .fixed = true)
WAY(buffered_odd_size, .spec = "a=f", .size = SIZE + 512, .skew = 1)
WAY(direct, .spec = "a=f,direct", .align = 512, .size = SIZE)
WAY(direct_fixed, .spec = "a=f,direct", .align = 512, .size = SIZE, .fixed = true)
WAY(direct_unaligned_memory, .spec = "a=f,direct", .align = 512, .size = SIZE, .skew = 8)
WAY(direct_4k, .spec = "a=f,direct", .align = 4096, .size = SIZE)
WAY(direct_4k_fixed, .spec = "a=f,direct", .align = 4096, .size = SIZE, .fixed = true)
WAY(direct_4k_unaligned_memory, .spec = "a=f,direct", .align = 4096, .size = SIZE, .skew = 512,
    .fixed = true)
WAY(direct_4k_tail, .spec = "a=f,direct", .align = 4096, .size = SIZE + 3 * 512)
WAY(direct_16k_tail, .spec = "a=f,direct", .align = 16384, .size = SIZE + 9 * 512, .skew = 2)

/* ---- many at once ---- */

/* Each sector of a few large blocks is written by a request of its own, all at the same time: a
 * read-modify-write that does not keep the others out loses some of them. */
Test(export_io, partial_writes_of_one_block_do_not_undo_each_other)
{
	enum { N = 64 };
	static struct rig_io rio[N];
	uint8_t *mem = malloc(N * 512), *file = malloc(N * 512);
	struct export *ex, *same;

	rig_file("f", N * 512, 0);
	ex = rig_export("a=f,direct");
	same = rig_export("same=f,direct");	/* another name of the file */
	rig_set_align(ex, 8192);
	rig_set_align(same, 8192);
	rig_attach();
	for (unsigned round = 0; round < 20; round++) {
		for (unsigned i = 0; i < N; i++) {
			unsigned sector = i * 29 % N;	/* neighbours are not in order */

			memset(mem + sector * 512, (int)(round * 7 + sector), 512);
			rio[i].io = (struct export_io){
				.op = RNBD_OP_WRITE, .offset = sector * 512u, .len = 512,
				.buf = mem + sector * 512, .mem = -1,
				.flags = sector % 5 ? 0 : RNBD_F_FUA,
			};
			rig_start(i / 3 % 2 ? same : ex, &rio[i]);
		}
		rig_wait();
		for (unsigned i = 0; i < N; i++)
			cr_assert_eq(rio[i].status, 0);
		rig_read_file("f", file, N * 512);
		expect_bytes(file, mem, N * 512, "file");
	}
	cr_assert(list_empty(&ex->store->ranges.ranges));
	free(mem);
	free(file);
}

/* More than the ring has entries; FLUSHes share fdatasyncs and are all answered. */
Test(export_io, more_than_the_ring_holds)
{
	enum { N = 1000 };
	static struct rig_io rio[N];
	uint8_t *mem = calloc(N, 512);
	struct export *ex;

	rig_file("f", SIZE, 0);
	ex = rig_export("a=f");
	rig_attach();
	for (unsigned i = 0; i < N; i++) {
		rio[i].io = (struct export_io){
			.op = i % 3 ? RNBD_OP_READ : RNBD_OP_FLUSH, .offset = i * 512u, .len = 512,
			.buf = mem + i * 512, .mem = -1,
		};
		rig_start(ex, &rio[i]);
	}
	rig_wait();
	for (unsigned i = 0; i < N; i++) {
		cr_assert_eq(rio[i].status, 0);
		cr_assert_eq(mem[i * 512], i % 3 ? i % 251 : 0);
	}
	free(mem);
}

/* What is beyond an export's share of the ring waits and gets its turn. */
Test(export_io, more_than_a_share)
{
	enum { N = 400, LEN = 1024 };
	static const enum rnbd_io_op ops[] = { RNBD_OP_WRITE, RNBD_OP_WRITE, RNBD_OP_WRITE_ZEROES,
					       RNBD_OP_WRITE, RNBD_OP_DISCARD };
	static struct rig_io rio[N];
	static uint8_t data[LEN], zeroes[LEN], file[N * LEN];
	struct export *ex;

	rig_file("f", N * LEN, 1);
	ex = rig_export("f=f,direct");
	rig_set_align(ex, 4096);	/* parts of blocks: they wait for ranges, too */
	rig_attach();
	memset(data, 0xd4, LEN);
	for (unsigned i = 0; i < N; i++) {
		rio[i].io = (struct export_io){
			.op = ops[i % ARRAY_SIZE(ops)],
			.flags = i % 7 ? 0 : RNBD_F_PREFLUSH | RNBD_F_FUA,
			.offset = i * (uint64_t)LEN, .len = LEN, .buf = data, .mem = -1,
		};
		rig_start(ex, &rio[i]);
	}
	rig_wait();
	rig_read_file("f", file, sizeof(file));
	for (unsigned i = 0; i < N; i++) {
		cr_assert(!rio[i].status || rio[i].status == -EOPNOTSUPP);
		if (rio[i].io.op != RNBD_OP_DISCARD)
			cr_assert_arr_eq(file + i * LEN,
					 rio[i].io.op == RNBD_OP_WRITE ? data : zeroes, LEN);
	}
}

/* ---- what the file looks like afterwards ---- */

static blkcnt_t blocks(const char *name)
{
	struct stat st;

	cr_assert_eq(stat(name, &st), 0);
	return st.st_blocks;
}

static bool file_can(const char *name, int mode)
{
	int fd = open(name, O_RDWR | O_CLOEXEC);
	bool can = !fallocate(fd, mode | FALLOC_FL_KEEP_SIZE, 4 * SIZE, 4096);

	close(fd);
	return can;
}

Test(export_io, discard_frees_and_nounmap_keeps)
{
	struct export *ex;
	blkcnt_t full;

	rig_file("f", SIZE, 0);
	if (!file_can("f", FALLOC_FL_PUNCH_HOLE) || !file_can("f", FALLOC_FL_ZERO_RANGE))
		cr_skip_test("the file system of /var/tmp cannot punch holes or zero ranges");
	rig_file("g", SIZE, 0);
	cr_assert_eq(truncate("g", SIZE), 0);
	ex = rig_export("a=g");
	rig_attach();
	cr_assert_eq(rig_do(ex, RNBD_OP_FLUSH, 0, 0, 0, NULL), 0);
	full = blocks("g");
	cr_assert_geq(full, SIZE / 512);
	cr_assert_eq(rig_do(ex, RNBD_OP_WRITE_ZEROES, RNBD_F_NOUNMAP, 0, SIZE, NULL), 0);
	cr_assert_geq(blocks("g"), SIZE / 512);
	cr_assert_eq(rig_do(ex, RNBD_OP_WRITE_ZEROES, 0, 0, SIZE / 2, NULL), 0);
	cr_assert_leq(blocks("g"), full - SIZE / 2 / 512);
	cr_assert_eq(rig_do(ex, RNBD_OP_DISCARD, RNBD_F_FUA, 0, SIZE, NULL), 0);
	cr_assert_leq(blocks("g"), full - SIZE / 512);
}

/* What the kernel has once refused is not asked for again; zeroes are then written. */
Test(export_io, zeroes_are_written_when_nothing_else_works)
{
	const uint32_t len = 3 * SIZE + 512;
	uint8_t *file = malloc(4 * SIZE), *want = malloc(4 * SIZE);
	struct export *ex;

	rig_file("f", 4 * SIZE, 1);
	rig_read_file("f", want, 4 * SIZE);
	memset(want + 1024, 0, len);
	ex = rig_export("a=f");
	rig_attach();
	atomic_store(&store_file(ex)->cannot,
		     STORE_FILE_CANNOT_PUNCH | STORE_FILE_CANNOT_ZERO_RANGE);
	cr_assert_eq(rig_do(ex, RNBD_OP_WRITE_ZEROES, 0, 1024, len, NULL), 0);
	rig_read_file("f", file, 4 * SIZE);
	expect_bytes(file, want, 4 * SIZE, "file");
	cr_assert_eq(rig_do(ex, RNBD_OP_DISCARD, 0, 0, 4096, NULL), -EOPNOTSUPP);
	free(file);
	free(want);
}

/* ---- failures ---- */

/* The ring refuses what is no priority, or is not for this process; and what it takes is what it
 * was told. */
Test(export_io, priorities)
{
	bool realtime = srv_export_may_realtime();
	uint8_t *buf = aligned_alloc(4096, 4096);
	struct export *ex;

	cr_assert(buf);
	rig_file("f", SIZE, 0);
	ex = rig_export("a=f,direct");
	rig_attach();
	for (unsigned wire = 0; wire <= UINT16_MAX; wire += wire % 16 ? 1 : 13) {
		struct rig_io rio = { .io = { .op = wire % 2 ? RNBD_OP_READ : RNBD_OP_WRITE,
					      .len = 4096, .buf = buf,
					      .mem = -1,
					      .prio = srv_export_wire_prio((uint16_t)wire,
									   realtime) } };
		struct io_uring *ring = &rig.reactor->ring;

		rig_start(ex, &rio);
		cr_assert_eq(ring->sq.sqes[(ring->sq.sqe_tail - 1) & *ring->sq.kring_mask].ioprio,
			     rio.io.prio);
		rig_wait();
		cr_assert_eq(rio.status, 0, "0x%x: %s", wire, strerror(-rio.status));
	}
	free(buf);
}

Test(export_io, truncated_file)
{
	uint8_t buf[1024];
	struct export *ex, *direct;

	rig_file("f", SIZE, 0);
	ex = rig_export("a=f");
	direct = rig_export("b=f,direct");
	rig_set_align(direct, 4096);
	rig_attach();
	cr_assert_eq(truncate("f", SIZE / 2 + 512), 0);
	cr_assert_eq(rig_do(ex, RNBD_OP_READ, 0, SIZE / 2 - 512, 1024, buf), 0);
	cr_assert_eq(rig_do(ex, RNBD_OP_READ, 0, SIZE / 2, 1024, buf), -EIO);
	cr_assert_eq(rig_do(ex, RNBD_OP_READ, 0, SIZE - 512, 512, buf), -EIO);
	cr_assert_eq(rig_do(direct, RNBD_OP_READ, 0, SIZE / 2, 512, buf), 0);
	cr_assert_eq(rig_do(direct, RNBD_OP_READ, 0, SIZE / 2, 1024, buf), -EIO);
	cr_assert_eq(rig_do(direct, RNBD_OP_READ, 0, SIZE - 512, 512, buf), -EIO);
	cr_assert_eq(rig_do(direct, RNBD_OP_WRITE, 0, SIZE / 2, 512, buf), -EIO);
	cr_assert(list_empty(&direct->store->ranges.ranges));
}

static void anew_stop(void *arg)
{
	reactor_stop(rig.reactor);
}

static void lead_reopen(struct export *ex)
{
	cr_assert_eq(export_acquire(ex, RNBD_ACCESS_RW), -EAGAIN);
	export_io_reopen(rig.reactor, ex, anew_stop, NULL);
	cr_assert_eq(export_acquire(ex, RNBD_ACCESS_RW), -EAGAIN, "it runs");
	cr_assert_eq(reactor_run(rig.reactor), 0);
	cr_assert_eq(export_acquire(ex, RNBD_ACCESS_RW), 0);
}

/* Storage that is still broken: what the next client has flushed would not be safe. */
Test(export_io, latched_error_stays_while_syncs_fail)
{
	struct export_desc broken = { .fd = -1 };
	struct export *ex;

	rig_file("f", SIZE, 0);
	ex = rig_export("a=f");
	rig_attach();
	cr_assert_eq(export_acquire(ex, RNBD_ACCESS_RW), 0);
	list_add_tail(&store_file_all(ex->store)->descs, &broken.link);
	export_sync_failed(ex, -ENOSPC);
	export_release(ex, RNBD_ACCESS_RW);
	lead_reopen(ex);
	cr_assert_eq(rig_do(ex, RNBD_OP_FLUSH, 0, 0, 0, NULL), -ENOSPC);
	export_release(ex, RNBD_ACCESS_RW);
	broken.fd = store_file(ex)->fd;
	lead_reopen(ex);
	cr_assert_eq(rig_do(ex, RNBD_OP_FLUSH, 0, 0, 0, NULL), 0);
	export_release(ex, RNBD_ACCESS_RW);
	list_del(&broken.link);
}

Test(export_io, latched_error)
{
	uint8_t buf[512] = { 0 };
	struct export *a, *b;

	rig_file("f", SIZE, 0);
	a = rig_export("a=f");
	b = rig_export("b=f");
	rig_attach();
	cr_assert_eq(export_acquire(a, RNBD_ACCESS_RW), 0);
	cr_assert_eq(rig_do(a, RNBD_OP_FLUSH, 0, 0, 0, NULL), 0);
	export_sync_failed(a, -ENOSPC);
	cr_assert_eq(rig_do(a, RNBD_OP_FLUSH, 0, 0, 0, NULL), -ENOSPC);
	cr_assert_eq(rig_do(b, RNBD_OP_FLUSH, 0, 0, 0, NULL), -ENOSPC, "the same file");
	cr_assert_eq(rig_do(a, RNBD_OP_WRITE, RNBD_F_FUA, 0, 512, buf), -ENOSPC);
	cr_assert_eq(rig_do(a, RNBD_OP_WRITE, RNBD_F_PREFLUSH, 0, 512, buf), -ENOSPC);
	cr_assert_eq(rig_do(a, RNBD_OP_WRITE, 0, 0, 512, buf), 0);
	cr_assert_eq(rig_do(a, RNBD_OP_READ, RNBD_F_FUA, 0, 512, buf), 0);
	export_release(a, RNBD_ACCESS_RW);
	lead_reopen(a);
	cr_assert_eq(rig_do(a, RNBD_OP_FLUSH, 0, 0, 0, NULL), 0);
}

Test(export_io, file_system_full)
{
	uint8_t *buf = malloc(SIZE);
	struct export *ex;

	if (!rig_mount_small(2048))
		cr_skip_test("cannot mount a small tmpfs: root is needed");
	memset(buf, 1, SIZE);
	rig_file("small/f", 512, 0);
	cr_assert_eq(truncate("small/f", 4 * SIZE), 0);
	ex = rig_export("a=small/f");
	rig_attach();
	cr_assert_eq(rig_do(ex, RNBD_OP_WRITE, 0, 0, SIZE, buf), 0);
	cr_assert_eq(rig_do(ex, RNBD_OP_WRITE, 0, SIZE, 2 * SIZE - 4096, buf), -ENOSPC);
	/* That was the write's own error: nothing acknowledged is lost. */
	cr_assert_eq(rig_do(ex, RNBD_OP_FLUSH, 0, 0, 0, NULL), 0);
	cr_assert_eq(rig_do(ex, RNBD_OP_DISCARD, 0, 0, 3 * SIZE, NULL), 0);
	cr_assert_eq(rig_do(ex, RNBD_OP_WRITE, RNBD_F_FUA, 3 * SIZE, SIZE, buf), 0);
	free(buf);
}

/* A server that is killed meanwhile leaves the mark to the next one.  FUA is marked, too: on a
 * direct export it may be told of what others wrote. */
Test(export_io, syncs_are_marked_until_they_end)
{
	static const struct {
		enum rnbd_io_op op;
		uint32_t flags;
		bool direct, marked;
		bool durable;
	} cases[] = {
		{ RNBD_OP_FLUSH, 0, false, true, false },
		{ RNBD_OP_FLUSH, 0, true, true, false },
		{ RNBD_OP_WRITE, RNBD_F_FUA, true, true, false },
		{ RNBD_OP_WRITE, RNBD_F_PREFLUSH, false, true, false },
		{ RNBD_OP_WRITE, 0, true, false, false },
		{ RNBD_OP_READ, 0, false, false, false },
		/* Each write has FUA. */
		{ RNBD_OP_WRITE, 0, true, true, true },
		{ RNBD_OP_READ, 0, true, false, true },
	};
	struct export *buffered, *direct, *ex;
	uint8_t *buf = aligned_alloc(4096, 4096);

	memset(buf, 1, 4096);
	rig_file("f", SIZE, 0);
	buffered = rig_export("a=f");
	direct = rig_export("b=f,direct");
	store_file(direct)->fs |= STORE_FILE_FS_DSYNC;
	rig_attach();
	for_each_case(c, cases) {
		struct rig_io rio = { .io = { .op = c->op, .flags = c->flags, .buf = buf, .mem = -1,
					      .len = c->op == RNBD_OP_FLUSH ? 0 : 4096 } };

		ex = c->direct ? direct : buffered;
		direct->durable = c->durable;
		rig_start(ex, &rio);
		cr_assert_eq(atomic_load(&store_state(buffered->store)->syncing), c->marked,
			     "case %td",
			     c - cases);
		rig_wait();
		cr_assert_eq(rio.status, 0);
		cr_assert_eq(atomic_load(&store_state(buffered->store)->syncing), 0, "case %td",
			     c - cases);
		cr_assert_eq(atomic_load(&store_state(buffered->store)->losses), 0);
	}
	free(buf);
}

/* An export on a device with less room than its size. */
static struct export *full_device(void)
{
	char path[64], spec[80];
	struct export *ex;

	if (!rig_mount_small(1024))
		cr_skip_test("cannot mount a small tmpfs: root is needed");
	rig_file("small/disk", 512, 0);
	cr_assert_eq(truncate("small/disk", 16 * SIZE), 0);
	if (!rig_loop("small/disk", path, sizeof(path)))
		cr_skip_test("no loop device");
	snprintf(spec, sizeof(spec), "a=%s", path);
	ex = rig_export(spec);
	rig_attach();
	return ex;
}

/* Data accepted into the page cache that the device then cannot take: the first FLUSH says so, and
 * so do all others until the export is opened again.  Then the export has what the device has, as
 * after a reboot. */
Test(export_io, write_back_fails)
{
	struct export *ex = full_device();
	uint8_t *buf = malloc(4 * SIZE), *want = malloc(4 * SIZE);

	memset(buf, 1, 4 * SIZE);
	cr_assert_eq(export_acquire(ex, RNBD_ACCESS_RW), 0);
	cr_assert_eq(rig_do(ex, RNBD_OP_WRITE, 0, 0, 4 * SIZE, buf), 0);
	cr_assert_lt(rig_do(ex, RNBD_OP_FLUSH, 0, 0, 0, NULL), 0);
	cr_assert_eq(atomic_load(&store_state(ex->store)->losses), 1);
	cr_assert_eq(atomic_load(&store_state(ex->store)->syncing), 0);
	cr_assert_lt(rig_do(ex, RNBD_OP_FLUSH, 0, 0, 0, NULL), 0);
	cr_assert_lt(rig_do(ex, RNBD_OP_WRITE, RNBD_F_FUA, 0, 512, buf), 0);
	export_release(ex, RNBD_ACCESS_RW);
	lead_reopen(ex);
	cr_assert_eq(rig_do(ex, RNBD_OP_FLUSH, 0, 0, 0, NULL), 0);
	rig_read_file("small/disk", want, 4 * SIZE);
	cr_assert(memcmp(buf, want, 4 * SIZE), "the device is not full");
	cr_assert_eq(rig_do(ex, RNBD_OP_READ, 0, 0, 4 * SIZE, buf), 0);
	expect_bytes(buf, want, 4 * SIZE, "reopened");
	free(want);
	free(buf);
}

/* The same through FUA alone. */
Test(export_io, fua_fails)
{
	struct export *ex = full_device();
	uint8_t *buf = malloc(4 * SIZE);

	memset(buf, 1, 4 * SIZE);
	cr_assert_lt(rig_do(ex, RNBD_OP_WRITE, RNBD_F_FUA, 0, 4 * SIZE, buf), 0);
	cr_assert_lt(export_sync_error(ex), 0);
	cr_assert_gt(atomic_load(&store_state(ex->store)->losses), 0);
	free(buf);
}

/* ---- block devices ---- */

Test(export_io, block_device)
{
	uint8_t *buf = malloc(SIZE), *want = malloc(SIZE);
	struct export *ex, *direct;
	char path[64], spec[80];

	rig_file("disk", SIZE, 5);
	if (!rig_loop("disk", path, sizeof(path)))
		cr_skip_test("no loop device: root is needed");
	snprintf(spec, sizeof(spec), "a=%s", path);
	ex = rig_export(spec);
	snprintf(spec, sizeof(spec), "b=%s,direct", path);
	direct = rig_export(spec);
	rig_attach();
	cr_assert(store_file(ex)->is_block);
	cr_assert_eq(ex->size, SIZE);
	cr_assert_eq(direct->store, ex->store, "the same device");
	rig_read_file("disk", want, SIZE);
	cr_assert_eq(rig_do(ex, RNBD_OP_READ, 0, 0, SIZE, buf), 0);
	expect_bytes(buf, want, SIZE, "buffered");
	cr_assert_eq(rig_do(ex, RNBD_OP_DISCARD, 0, 65536, 65536, NULL), 0);
	cr_assert_eq(rig_do(ex, RNBD_OP_WRITE_ZEROES, 0, 8192, 4096 + 512, NULL), 0);
	cr_assert_eq(rig_do(ex, RNBD_OP_WRITE_ZEROES, RNBD_F_NOUNMAP | RNBD_F_FUA, 32768, 512,
			    NULL), 0);
	cr_assert_eq(rig_do(ex, RNBD_OP_WRITE, RNBD_F_FUA, 512, 512, want + 4096), 0);
	memset(want + 65536, 0, 65536);
	memset(want + 8192, 0, 4096 + 512);
	memset(want + 32768, 0, 512);
	memcpy(want + 512, want + 4096, 512);
	cr_assert_eq(rig_do(ex, RNBD_OP_FLUSH, 0, 0, 0, NULL), 0);
	cr_assert_eq(rig_do(direct, RNBD_OP_READ, 0, 0, SIZE, buf), 0);
	expect_bytes(buf, want, SIZE, "direct");
	free(buf);
	free(want);
}

/* A file system that stops must not take a thread with it that serves another one. */
Test(export_io, only_a_single_file_system_is_written_at_once)
{
	uint8_t buf[512] = { 0 };
	struct export *ex;

	if (!rig_mount_small(1024))
		cr_skip_test("cannot mount a small tmpfs: root is needed");
	rig_file("f", SIZE, 0);
	rig_file("small/f", 512, 0);
	ex = rig_export("f=f");
	rig_export("g=small/f");
	rig_attach();
	cr_assert_not(rig.exports.one_medium);
	for (unsigned i = 0; i < 2; i++) {
		cr_assert_eq(rig_do(ex, RNBD_OP_WRITE, 0, 0, sizeof(buf), buf), 0);
		cr_assert_not(rig_takes_at_once(ex, 0));
	}
}

/* Memory that was taken at once is not read again. */
Test(export_io, data_taken_at_once_is_not_read_again)
{
	enum { N = 200 };
	static struct rig_io rio[N];
	uint8_t first[512], scratch[512], file[512];
	struct export *ex;

	rig_file("f", SIZE, 0);
	ex = rig_export("f=f");
	rig_attach();
	memset(first, 0xa1, sizeof(first));
	/* The first WRITE finds out which kind of file system this is. */
	cr_assert_eq(rig_do(ex, RNBD_OP_WRITE, 0, 8192, sizeof(first), first), 0);
	cr_assert(!rig_takes_at_once(ex, RNBD_F_PREFLUSH));
	if (!rig_takes_at_once(ex, 0))
		cr_skip_test("buffered writes of this file system are left to the ring");

	/* More than an export's share of the ring, which such a WRITE must not wait for. */
	for (unsigned i = 0; i < N; i++) {
		memset(scratch, (int)i, sizeof(scratch));
		rio[i].io = (struct export_io){
			.op = RNBD_OP_WRITE, .offset = i * 512u, .len = 512, .buf = scratch,
			.mem = -1,
		};
		/* A write that has slept sends the next ones to workers for a while. */
		while (!rig_takes_at_once(ex, 0))
			rig_wait();
		rig_start(ex, &rio[i]);
		memset(scratch, 0xc3, sizeof(scratch));
	}
	rig_wait();
	for (unsigned i = 0; i < N; i++) {
		cr_assert_eq(rio[i].status, 0);
		memset(scratch, (int)i, sizeof(scratch));
		cr_assert_eq(rig_do(ex, RNBD_OP_READ, 0, i * 512, sizeof(file), file), 0);
		cr_assert_arr_eq(file, scratch, sizeof(file));
	}
}
