/* SPDX-License-Identifier: BSD-3-Clause */
/* The io_uring of a reactor, set up for all storage, and the table of drivers.  The simulation has
 * another form of both.  Owns nothing: the tables of a ring end with the ring. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "export.h"
#include "log.h"
#include "reactor-ring.h"
#include "store-driver.h"

static int make_tables(struct io_uring *uring, unsigned nfiles, char *err, size_t errlen)
{
	int rc = io_uring_register_files_sparse(uring, nfiles);

	if (!rc)
		rc = io_uring_register_buffers_sparse(uring, STORE_URING_MEMS);
	if (!rc)
		return 0;
	if (rc == -EMFILE)
		snprintf(err, errlen, "%u fixed files are more than RLIMIT_NOFILE allows: raise it "
			 "(ulimit -n, systemd: LimitNOFILE=)", nfiles);
	else if (rc == -EINVAL)
		snprintf(err, errlen, "this kernel's io_uring has no sparse tables: Linux 5.19 or "
			 "later is needed");
	else
		snprintf(err, errlen, "cannot register tables with the io_uring: %s",
			 strerror(-rc));
	return rc;
}

int store_uring_attach(struct reactor *r, unsigned nfiles, char *err, size_t errlen)
{
	int rc = reactor_enable(r);

	if (!rc)
		return make_tables(&r->ring, nfiles, err, errlen);
	snprintf(err, errlen, "cannot use io_uring: %s", strerror(-rc));
	return rc;
}

void store_uring_let_go(struct reactor *r)
{
	int rc = io_uring_unregister_files(&r->ring);

	if (rc)
		log_warn(reactor_name(r),
			 "the io_uring releases the exports only some time after the end: %s",
			 strerror(-rc));
}

void store_uring_allow_workers(struct reactor *r, unsigned want)
{
	unsigned limits[2] = { 0 };	/* 0: only ask */
	int rc = io_uring_register_iowq_max_workers(&r->ring, limits);

	if (!rc && limits[0] < want) {
		limits[0] = want;
		limits[1] = 0;
		rc = io_uring_register_iowq_max_workers(&r->ring, limits);
	}
	if (rc)
		log_warn(reactor_name(r),
			 "cannot raise the number of io_uring's workers: %s; one export with "
			 "stalled storage may delay others",
			 strerror(-rc));
}

int store_uring_mem(struct reactor *r, unsigned mem, void *addr, size_t len)
{
	struct iovec iov = { .iov_base = addr, .iov_len = len };
	int rc = io_uring_register_buffers_update_tag(&r->ring, mem, &iov, NULL, 1);

	return rc == 1 ? 0 : rc < 0 ? rc : -EIO;
}

/* ---- the drivers of this server, and the IO of each ---- */

#define DECLARE(name)                                                                              \
	extern const struct store_driver store_##name##_driver;                                    \
	extern const struct store_io_ops store_##name##_io_ops;
STORE_DRIVERS(DECLARE)

#define DRIVER(name) &store_##name##_driver,
const struct store_driver *const store_drivers[] = { STORE_DRIVERS(DRIVER) };

#define IO_OPS(name) &store_##name##_io_ops,
const struct store_io_ops *const store_drivers_io[] = { STORE_DRIVERS(IO_OPS) };
