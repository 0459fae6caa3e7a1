/* SPDX-License-Identifier: BSD-3-Clause */
/* What a request asks of the kernel, and in which order.  That something is durable shows in a file
 * only when the power fails; here it shows in what went to the ring. */
#include <config.h>

#include <fcntl.h>
#include <linux/falloc.h>
#include <unistd.h>

#include "store-file-io.h"
#include "export-io-rig.h"
#include "unit.h"

#define SIZE (1u << 20)
#define ASKED_MAX 256
#define RING 64				/* the rig's: older entries are overwritten */

static struct io_uring_sqe *asked[ASKED_MAX];
static unsigned nasked;
static _Atomic(uint64_t) *other_turns;	/* of a ring whose sync ends when ... */
static unsigned other_ends;		/* ... this many were asked for */
static unsigned other_step;		/* 2: and another one begins at once */
/* If set, instead: the other ring waits for the turn that this one has at other_ends. */
static _Atomic(uint64_t) *our_turns;
static uint64_t our_turn;

static unsigned npass, nfail;		/* so many pass, and then so many fail with @fail_errno */
static int fail_errno = EIO;
static void (*real_done)(struct reactor_op *op, int res, unsigned flags);

static void fail_done(struct reactor_op *op, int res, unsigned flags)
{
	op->done = real_done;
	op->done(op, -fail_errno, flags);
}

struct io_uring_sqe *__real_reactor_ring_sqe(struct reactor *r, struct reactor_op *op);
struct io_uring_sqe *__wrap_reactor_ring_sqe(struct reactor *r, struct reactor_op *op);

struct io_uring_sqe *__wrap_reactor_ring_sqe(struct reactor *r, struct reactor_op *op)
{
	struct io_uring_sqe *sqe = __real_reactor_ring_sqe(r, op);

	cr_assert_lt(nasked, ASKED_MAX);
	asked[nasked++] = sqe;
	if (npass) {
		npass--;
	} else if (nfail) {
		nfail--;
		real_done = op->done;
		op->done = fail_done;
	}
	if (!other_turns)
		return sqe;
	if (nasked == other_ends && our_turns)
		our_turn = atomic_load(our_turns);
	else if (our_turns ? our_turn && our_turn != atomic_load(our_turns) : nasked == other_ends)
		atomic_fetch_add(other_turns, other_step);
	return sqe;
}

TestSuite(export_ask, .init = rig_init, .fini = rig_fini, .timeout = 60);

static struct export *ask_export(const char *spec, uint32_t align)
{
	struct export *ex;

	rig_file("f", SIZE + 512, 0);
	ex = rig_export(spec);
	if (align)
		rig_set_align(ex, align);
	rig.exports.one_medium = false;	/* all through the ring, nothing by a call */
	store_file(ex)->fs |= STORE_FILE_FS_ERRORS;
	rig_attach();
	nasked = 0;			/* the reactor has asked for something of its own */
	return ex;
}

/* S: fdatasync, on the description that is for nothing else; F, T: on that which writes, or writes
 * the tail. */
static char sync_letter(const struct export *ex, const struct io_uring_sqe *sqe)
{
	if (sqe->fsync_flags != IORING_FSYNC_DATASYNC || !(sqe->flags & IOSQE_FIXED_FILE))
		return '?';
	return sqe->fd == store_file_fixed_sync(ex) ? 'S' :
	       sqe->fd == store_file_fixed(ex)	    ? 'F' :
	       sqe->fd == store_file_fixed_tail(ex) ? 'T' : '?';
}

/* As sync_letter(); R, W: read, write; D: write with DSYNC; P, Z: punch a hole, zero a range. */
static char letter(const struct export *ex, const struct io_uring_sqe *sqe)
{
	switch (sqe->opcode) {
	case IORING_OP_FSYNC:
		return sync_letter(ex, sqe);
	case IORING_OP_READ:
		return 'R';
	case IORING_OP_WRITE:
		return sqe->rw_flags == RWF_DSYNC ? 'D' : sqe->rw_flags ? '?' : 'W';
	case IORING_OP_FALLOCATE:
		return sqe->len == (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE) ? 'P' :
		       sqe->len == (FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE) ? 'Z' : '?';
	default:
		return '?';
	}
}

static const char *asked_of(const struct export *ex)
{
	static char text[RING + 1];
	unsigned n = 0;

	cr_assert_leq(nasked, RING);
	for (unsigned i = 0; i < nasked; i++) {
		if (asked[i]->opcode != IORING_OP_TIMEOUT)	/* for lines about failures */
			text[n++] = letter(ex, asked[i]);
	}
	text[n] = '\0';
	nasked = 0;
	return text;
}

struct ask {
	enum rnbd_io_op op;
	uint32_t flags;
	uint64_t offset;
	uint32_t len;
	const char *want;
};

static void ask_all(struct export *ex, const struct ask *asks, unsigned n, char *buf)
{
	for (unsigned i = 0; i < n; i++) {
		const struct ask *a = &asks[i];
		const char *got;

		nasked = 0;
		cr_assert_eq(rig_do(ex, a->op, a->flags, a->offset, a->len, buf), 0);
		got = asked_of(ex);
		cr_assert_str_eq(got, a->want, "row %u: %s instead of %s", i, got, a->want);
	}
}

static bool file_can(int mode)
{
	int fd = open("f", O_RDWR | O_CLOEXEC);
	bool can = !fallocate(fd, mode | FALLOC_FL_KEEP_SIZE, 0, 4096);

	close(fd);
	return can;
}

Test(export_ask, buffered)
{
	static const struct ask asks[] = {
		{ RNBD_OP_READ, 0, 0, 4096, "R" },
		{ RNBD_OP_WRITE, 0, 0, 4096, "W" },
		{ RNBD_OP_FLUSH, 0, 0, 0, "S" },
		{ RNBD_OP_FLUSH, RNBD_F_PREFLUSH, 0, 0, "S" },
		{ RNBD_OP_WRITE, RNBD_F_FUA, 0, 4096, "WS" },
		{ RNBD_OP_WRITE, RNBD_F_PREFLUSH, 0, 4096, "SW" },
		{ RNBD_OP_WRITE, RNBD_F_PREFLUSH | RNBD_F_FUA, 0, 4096, "SWS" },
		{ RNBD_OP_READ, RNBD_F_FUA, 0, 4096, "R" },
		{ RNBD_OP_READ, RNBD_F_PREFLUSH, 0, 4096, "SR" },
	};
	static char buf[4096];

	ask_all(ask_export("a=f", 0), asks, ARRAY_SIZE(asks), buf);
}

Test(export_ask, direct)
{
	static const struct ask asks[] = {
		{ RNBD_OP_WRITE, 0, 4096, 8192, "W" },
		{ RNBD_OP_FLUSH, 0, 0, 0, "S" },
		{ RNBD_OP_WRITE, RNBD_F_FUA, 4096, 8192, "D" },
		{ RNBD_OP_WRITE, RNBD_F_PREFLUSH, 4096, 8192, "SW" },
		{ RNBD_OP_WRITE, RNBD_F_PREFLUSH | RNBD_F_FUA, 4096, 8192, "SD" },
		/* Part of a block at the end, which has to be read and is not written with
		 * DSYNC. */
		{ RNBD_OP_WRITE, RNBD_F_FUA, 4096, 4096 + 512, "DRWS" },
		/* Behind the last whole block: through the page cache. */
		{ RNBD_OP_WRITE, RNBD_F_FUA, SIZE, 512, "WS" },
		{ RNBD_OP_WRITE, 0, SIZE, 512, "W" },
	};
	static char buf[16384] __attribute__((aligned(4096)));

	struct export *ex = ask_export("a=f,direct", 4096);

	store_file(ex)->fs |= STORE_FILE_FS_DSYNC;
	ask_all(ex, asks, ARRAY_SIZE(asks), buf);
}

/* A request whose first @n steps fail asks for @want, and fails. */
static void fails(struct export *ex, enum rnbd_io_op op, uint32_t flags, unsigned n,
		  const char *want)
{
	static char buf[4096] __attribute__((aligned(4096)));
	const char *got;

	nfail = n;
	cr_assert_eq(rig_do(ex, op, flags, 4096, 4096, buf), -EIO);
	got = asked_of(ex);
	cr_assert_str_eq(got, want, "%s instead of %s", got, want);
	cr_assert_eq(nfail, 0);
}

/* After a failed write with DSYNC the same write without DSYNC tells the cause: the write, a matter
 * of this request; or the sync, which FLUSHes report from then on. */
Test(export_ask, failed_dsync)
{
	struct export *ex = ask_export("a=f,direct", 4096);

	store_file(ex)->fs |= STORE_FILE_FS_DSYNC;
	fails(ex, RNBD_OP_READ, 0, 1, "R");
	fails(ex, RNBD_OP_WRITE, 0, 1, "W");
	fails(ex, RNBD_OP_WRITE, RNBD_F_FUA, 2, "DW");
	cr_assert_eq(export_sync_error(ex), 0);
	cr_assert_eq(rig_do(ex, RNBD_OP_FLUSH, 0, 0, 0, NULL), 0);
	nasked = 0;
	fails(ex, RNBD_OP_WRITE, RNBD_F_FUA, 1, "DW");
	cr_assert_eq(export_sync_error(ex), -EIO);
	cr_assert_eq(rig_do(ex, RNBD_OP_FLUSH, 0, 0, 0, NULL), -EIO);
}

/* The data of a FUA went, and its sync fails: no failed write, but a loss. */
Test(export_ask, failed_sync)
{
	struct export *ex = ask_export("a=f", 0);

	npass = 1;
	fails(ex, RNBD_OP_WRITE, RNBD_F_FUA, 1, "WS");
	cr_assert_eq(export_writes_failed(ex).n, 0);
	cr_assert_eq(export_sync_error(ex), -EIO);
	fails(ex, RNBD_OP_WRITE, 0, 1, "W");
	cr_assert_eq(export_writes_failed(ex).n, 1);
}

/* The kernel has no thread to begin a request with: each waits, and none fails. */
Test(export_ask, no_thread_for_a_while)
{
	static const struct ask asks[] = {
		{ RNBD_OP_READ, 0, 0, 4096, "RR" },
		{ RNBD_OP_WRITE, 0, 0, 4096, "WW" },
		{ RNBD_OP_FLUSH, 0, 0, 0, "SS" },
		{ RNBD_OP_WRITE_ZEROES, RNBD_F_NOUNMAP, 0, 4096, "ZZ" },
	};
	static char buf[4096];
	struct export *ex = ask_export("a=f", 0);

	if (!file_can(FALLOC_FL_ZERO_RANGE))
		cr_skip_test("the file system of /var/tmp cannot zero ranges");
	fail_errno = ECANCELED;
	for (unsigned i = 0; i < ARRAY_SIZE(asks); i++) {
		nfail = 1;
		ask_all(ex, &asks[i], 1, buf);
	}
	cr_assert_eq(export_sync_error(ex), 0);
	cr_assert_eq(export_writes_failed(ex).n, 0);
	/* A file system in user space may say the same of a sync that failed. */
	store_file(ex)->fs &= ~STORE_FILE_FS_ERRORS;
	nfail = 1;
	cr_assert_eq(rig_do(ex, RNBD_OP_FLUSH, 0, 0, 0, NULL), -ECANCELED);
	cr_assert_eq(export_sync_error(ex), -ECANCELED);
}

/* A file system of which nothing is known may take DSYNC, and sync nothing. */
Test(export_ask, direct_without_known_dsync)
{
	static const struct ask asks[] = {
		{ RNBD_OP_WRITE, 0, 4096, 8192, "W" },
		{ RNBD_OP_WRITE, RNBD_F_FUA, 4096, 8192, "WS" },
		{ RNBD_OP_WRITE, RNBD_F_PREFLUSH | RNBD_F_FUA, 4096, 8192, "SWS" },
	};
	static char buf[16384] __attribute__((aligned(4096)));
	struct export *ex = ask_export("a=f,direct", 4096);

	store_file(ex)->fs &= ~STORE_FILE_FS_DSYNC;
	ask_all(ex, asks, ARRAY_SIZE(asks), buf);
}

/* Where a lost write may be reported to the description that wrote alone. */
Test(export_ask, writers_are_synced)
{
	static const struct ask asks[] = {
		{ RNBD_OP_FLUSH, 0, 0, 0, "SF" },
		{ RNBD_OP_WRITE, RNBD_F_FUA, 0, 4096, "WSF" },
	};
	static char buf[4096];
	struct export *ex = ask_export("a=f", 0);

	store_file(ex)->fs &= ~STORE_FILE_FS_ERRORS;
	ask_all(ex, asks, ARRAY_SIZE(asks), buf);
}

Test(export_ask, writers_of_the_tail_are_synced)
{
	static const struct ask asks[] = {
		{ RNBD_OP_FLUSH, 0, 0, 0, "SFT" },
		{ RNBD_OP_WRITE, RNBD_F_FUA, SIZE, 512, "WSFT" },
	};
	static char buf[4096] __attribute__((aligned(4096)));
	struct export *ex = ask_export("a=f,direct", 4096);

	store_file(ex)->fs &= ~(STORE_FILE_FS_ERRORS | STORE_FILE_FS_DSYNC);
	ask_all(ex, asks, ARRAY_SIZE(asks), buf);
}

/* Another ring's sync may have got the error of the description that both sync, and not have said
 * so yet: until that sync has ended, this one is repeated. */
Test(export_ask, syncs_of_other_rings_end_first)
{
	static const struct ask asks[] = { { RNBD_OP_FLUSH, 0, 0, 0, "SFFF" } };
	static const struct ask alone[] = { { RNBD_OP_FLUSH, 0, 0, 0, "SF" } };
	struct export *ex = ask_export("a=f", 0);
	unsigned nrings = rig.exports.nrings;

	store_file(ex)->fs &= ~STORE_FILE_FS_ERRORS;
	other_turns = &store_file(ex)->sync_descs[nrings].turns;
	other_ends = 4;
	rig.exports.nrings = nrings + 1;
	for (other_step = 1; other_step <= 2; other_step++) {
		atomic_store(other_turns, 1);
		ask_all(ex, asks, 1, NULL);
	}
	atomic_store(other_turns, 2);
	ask_all(ex, alone, 1, NULL);
	rig.exports.nrings = nrings;
}

/* The other ring's sync has succeeded, too, and is repeated until the turn of this one ends. */
Test(export_ask, syncs_that_wait_for_each_other_end)
{
	static const struct ask asks[] = { { RNBD_OP_FLUSH, 0, 0, 0, "SFF" } };
	struct export *ex = ask_export("a=f", 0);
	unsigned nrings = rig.exports.nrings;

	store_file(ex)->fs &= ~STORE_FILE_FS_ERRORS;
	our_turns = &store_file(ex)->sync_descs[0].turns;
	other_turns = &store_file(ex)->sync_descs[nrings].turns;
	other_ends = 2;
	other_step = 1;
	rig.exports.nrings = nrings + 1;
	atomic_store(other_turns, 1);
	ask_all(ex, asks, 1, NULL);
	rig.exports.nrings = nrings;
}

/* Through memory of ours, without DSYNC. */
Test(export_ask, direct_unaligned_memory)
{
	static const struct ask asks[] = {
		{ RNBD_OP_WRITE, RNBD_F_FUA, 4096, 8192, "WS" },
	};
	static char buf[16384] __attribute__((aligned(4096)));

	struct export *ex = ask_export("a=f,direct", 4096);

	store_file(ex)->fs |= STORE_FILE_FS_DSYNC;
	ask_all(ex, asks, ARRAY_SIZE(asks), buf + 8);
}

Test(export_ask, zeroes)
{
	static const struct ask asks[] = {
		{ RNBD_OP_DISCARD, 0, 0, 4096, "P" },
		{ RNBD_OP_DISCARD, RNBD_F_FUA, 0, 4096, "PS" },
		{ RNBD_OP_WRITE_ZEROES, 0, 0, 4096, "P" },
		{ RNBD_OP_WRITE_ZEROES, RNBD_F_FUA, 0, 4096, "PS" },
		{ RNBD_OP_WRITE_ZEROES, RNBD_F_NOUNMAP | RNBD_F_PREFLUSH, 0, 4096, "SZ" },
		{ RNBD_OP_WRITE_ZEROES, RNBD_F_NOUNMAP | RNBD_F_FUA, 0, 4096, "ZS" },
	};
	static const struct ask written[] = {
		{ RNBD_OP_WRITE_ZEROES, RNBD_F_FUA, 0, 4096, "WS" },
		{ RNBD_OP_WRITE_ZEROES, RNBD_F_NOUNMAP, 0, 4096, "W" },
	};
	struct export *ex = ask_export("a=f", 0);

	if (!file_can(FALLOC_FL_PUNCH_HOLE) || !file_can(FALLOC_FL_ZERO_RANGE))
		cr_skip_test("the file system of /var/tmp cannot punch holes or zero ranges");
	ask_all(ex, asks, ARRAY_SIZE(asks), NULL);
	atomic_store(&store_file(ex)->cannot,
		     STORE_FILE_CANNOT_PUNCH | STORE_FILE_CANNOT_ZERO_RANGE);
	ask_all(ex, written, ARRAY_SIZE(written), NULL);
}

/* A FLUSH is covered by an fdatasync that began after it; those that wait share the next one. */
Test(export_ask, flushes_share_the_next_sync)
{
	enum { N = 5 };
	struct rig_io rio[N];
	struct export *ex = ask_export("a=f", 0);

	for (unsigned i = 0; i < N; i++) {
		rio[i].io = (struct export_io){ .op = RNBD_OP_FLUSH, .mem = -1 };
		rig_start(ex, &rio[i]);
	}
	cr_assert_eq(nasked, 1, "%u at once", nasked);
	rig_wait();
	cr_assert_str_eq(asked_of(ex), "SS");
}

/* So that an export whose storage stops does not hold the workers of others. */
Test(export_ask, no_more_than_a_share_at_once)
{
	enum { N = 100, ZEROES = 8, WRITES = 64 };
	static const struct {
		enum rnbd_io_op op;
		unsigned most;
	} kinds[] = { { RNBD_OP_WRITE_ZEROES, ZEROES }, { RNBD_OP_DISCARD, ZEROES },
		      { RNBD_OP_WRITE, WRITES } };
	static struct rig_io rio[N];
	static char buf[512];
	struct export *ex = ask_export("a=f", 0);

	for (unsigned k = 0; k < ARRAY_SIZE(kinds); k++) {
		nasked = 0;
		for (unsigned i = 0; i < N; i++) {
			rio[i].io = (struct export_io){
				.op = kinds[k].op, .offset = i * 4096ull, .len = 512, .buf = buf,
				.mem = -1,
			};
			rig_start(ex, &rio[i]);
		}
		cr_assert_eq(nasked, kinds[k].most, "%u requests at once", nasked);
		rig_wait();
		cr_assert_geq(nasked, N);
	}
}
