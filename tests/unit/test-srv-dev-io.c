/* SPDX-License-Identifier: BSD-3-Clause */
/* What an IO may do on a handle: mode, range, empty writes. */
#include "unit.h"

#include <errno.h>
#include <linux/ioprio.h>

#include "export.h"
#include "srv-export.h"
#include "srv-rnbd-state.h"

#define SECTORS 2048ull

static const struct {
	const char *what;
	bool readonly;
	enum rnbd_access_mode mode;
	struct rnbd_io io;
	int rc;
	enum rnbd_io_op op;		/* afterwards */
} cases[] = {
#define IO(op_, flags_, sector_, size_)                                                            \
	{ .op = RNBD_OP_##op_, .flags = flags_, .sector = sector_, .bi_size = size_ }
	{ "read", false, RNBD_ACCESS_RO, IO(READ, 0, 0, 4096), 0, RNBD_OP_READ },
	{ "read to the end", false, RNBD_ACCESS_RW, IO(READ, 0, SECTORS - 8, 4096), 0,
	  RNBD_OP_READ },
	{ "read past the end", false, RNBD_ACCESS_RW, IO(READ, 0, SECTORS - 7, 4096), -EIO,
	  RNBD_OP_READ },
	{ "read behind the end", false, RNBD_ACCESS_RW, IO(READ, 0, SECTORS, 512), -EIO,
	  RNBD_OP_READ },
	{ "empty read at the end", false, RNBD_ACCESS_RW, IO(READ, 0, SECTORS, 0), 0,
	  RNBD_OP_READ },
	{ "sector that wraps in bytes", false, RNBD_ACCESS_RW, IO(READ, 0, 1ull << 55, 512), -EIO,
	  RNBD_OP_READ },
	{ "largest sector", false, RNBD_ACCESS_RW, IO(READ, 0, UINT64_MAX, 512), -EIO,
	  RNBD_OP_READ },
	{ "write", false, RNBD_ACCESS_RW, IO(WRITE, 0, 0, 4096), 0, RNBD_OP_WRITE },
	{ "write, migration", false, RNBD_ACCESS_MIGRATION, IO(WRITE, 0, 0, 512), 0,
	  RNBD_OP_WRITE },
	{ "write on ro", false, RNBD_ACCESS_RO, IO(WRITE, 0, 0, 4096), -EPERM, RNBD_OP_WRITE },
	{ "write on read-only export", true, RNBD_ACCESS_RW, IO(WRITE, 0, 0, 4096), -EPERM,
	  RNBD_OP_WRITE },
	{ "write past the end", false, RNBD_ACCESS_RW, IO(WRITE, 0, SECTORS - 1, 1024), -EIO,
	  RNBD_OP_WRITE },
	{ "empty write", false, RNBD_ACCESS_RW, IO(WRITE, 0, 0, 0), 0, RNBD_OP_WRITE },
	{ "empty write with FUA is a flush", false, RNBD_ACCESS_RW, IO(WRITE, RNBD_F_FUA, 0, 0), 0,
	  RNBD_OP_FLUSH },
	{ "empty write with PREFLUSH is a flush", false, RNBD_ACCESS_RW,
	  IO(WRITE, RNBD_F_PREFLUSH, 0, 0), 0, RNBD_OP_FLUSH },
	{ "discard", false, RNBD_ACCESS_RW, IO(DISCARD, 0, 0, SECTORS * 512), 0, RNBD_OP_DISCARD },
	{ "discard on ro", false, RNBD_ACCESS_RO, IO(DISCARD, 0, 0, 512), -EPERM, RNBD_OP_DISCARD },
	{ "discard past the end", false, RNBD_ACCESS_RW, IO(DISCARD, 0, 1, SECTORS * 512), -EIO,
	  RNBD_OP_DISCARD },
	{ "zeroes on ro", false, RNBD_ACCESS_RO, IO(WRITE_ZEROES, 0, 0, 512), -EPERM,
	  RNBD_OP_WRITE_ZEROES },
	{ "flush", false, RNBD_ACCESS_RW, IO(FLUSH, RNBD_F_FUA, RNBD_FLUSH_SECTOR, 0), 0,
	  RNBD_OP_FLUSH },
	{ "flush on ro", false, RNBD_ACCESS_RO, IO(FLUSH, 0, 0, 0), 0, RNBD_OP_FLUSH },
#undef IO
};

Test(srv_dev_io, checks)
{
	for_each_case(c, cases) {
		const struct export ex = { .size = SECTORS * 512, .spec.readonly = c->readonly };
		struct rnbd_io io = c->io;

		cr_assert_eq(srv_dev_io_check(&ex, c->mode, &io), c->rc, "%s", c->what);
		cr_assert_eq(io.op, c->op, "%s", c->what);
	}
}

Test(srv_dev_io, priorities)
{
	const unsigned rt = IOPRIO_CLASS_RT << IOPRIO_CLASS_SHIFT,
		be = IOPRIO_CLASS_BE << IOPRIO_CLASS_SHIFT,
		       idle = IOPRIO_CLASS_IDLE << IOPRIO_CLASS_SHIFT;

	cr_assert_eq(srv_export_wire_prio(0, true), 0);
	for (unsigned wire = 0; wire <= UINT16_MAX; wire++) {
		unsigned class = wire & ~((1u << IOPRIO_CLASS_SHIFT) - 1);
		unsigned user = srv_export_wire_prio((uint16_t)wire, false),
			root = srv_export_wire_prio((uint16_t)wire, true);

		if (class == be)
			cr_assert(user == be + wire % 8 && root == user);
		else if (class == rt)
			cr_assert(user == be && root == rt + wire % 8);
		else
			cr_assert(user == (class == idle ? idle : 0) && root == user);
	}
}
