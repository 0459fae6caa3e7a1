/* SPDX-License-Identifier: BSD-3-Clause */
/* The io_uring of a reactor.  The ring is made disabled, with the best flags that the kernel takes,
 * and restricted to what the server does: another operation completes with -EACCES.  A failure is
 * logged with the way out of it, because hosts and containers forbid rings in many ways. */
#include <config.h>

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "process.h"
#include "reactor-ring.h"
#include "util.h"

/* Completion entries per submission entry: multishot polls complete several times. */
#define CQ_PER_SQ 8

#define LATER_MS 50

static struct log_limit later_limit = LOG_LIMIT_INIT(1, 10000);

static int sysctl_disabled(void)
{
	FILE *f = fopen("/proc/sys/kernel/io_uring_disabled", "re");
	int value = 0;

	if (!f)
		return 0;
	if (fscanf(f, "%d", &value) != 1)
		value = 0;
	fclose(f);
	return value;
}

static void log_setup_error(const char *name, int err)
{
	int disabled = sysctl_disabled();

	if (err == -EPERM && disabled == 1)
		log_err(name, "io_uring is restricted to privileged users on this host "
			"(kernel.io_uring_disabled = 1): run as root, as a member of the group "
			"kernel.io_uring_group, or run: sysctl -w kernel.io_uring_disabled=0");
	else if (err == -EPERM && disabled)
		log_err(name, "io_uring is forbidden on this host (kernel.io_uring_disabled = %d): "
			"to allow it run: sysctl -w kernel.io_uring_disabled=0", disabled);
	else if (err == -EPERM || err == -EACCES)
		log_err(name, "io_uring is forbidden by a system call filter, as containers have: "
			"allow io_uring_setup, io_uring_enter and io_uring_register in its seccomp "
			"profile (systemd: SystemCallFilter=@aio)");
	else if (err == -ENOSYS)
		log_err(name, "this kernel has no io_uring, or a system call filter hides it: "
			"Linux 5.19 or later with CONFIG_IO_URING is needed, and io_uring_setup, "
			"io_uring_enter and io_uring_register in the seccomp profile "
			"of a container");
	else if (err == -ENOMEM)
		log_err(name, "no memory for an io_uring: raise the limit of locked memory "
			"(ulimit -l, systemd: LimitMEMLOCK=)");
	else
		log_err(name, "cannot create an io_uring: %s", fds_strerror(err));
}

static int check_features(const char *name, struct io_uring *ring)
{
	const unsigned needed = IORING_FEAT_NODROP | IORING_FEAT_EXT_ARG | IORING_FEAT_RSRC_TAGS |
				IORING_FEAT_SUBMIT_STABLE | IORING_FEAT_LINKED_FILE;
	unsigned workers[2] = { 0 };	/* 0: only ask */
	int rc;

	if ((ring->features & needed) != needed) {
		log_err(name, "this kernel's io_uring is too old (features 0x%x, needed 0x%x): "
			"Linux 5.19 or later is needed", ring->features, needed);
		return -ENOSYS;
	}
	/* A filter may forbid this call and allow the making of rings. */
	rc = io_uring_register_iowq_max_workers(ring, workers);
	if (rc)
		log_setup_error(name, rc);
	return rc;
}

static const __u8 operations[] = {
	IORING_OP_ASYNC_CANCEL,		/* reactor-watch.c */
	IORING_OP_POLL_ADD,
	IORING_OP_TIMEOUT,		/* reactor.c */
	IORING_OP_TIMEOUT_REMOVE,
	IORING_OP_FADVISE,		/* storage */
	IORING_OP_FALLOCATE,
	IORING_OP_FSYNC,
	IORING_OP_READ,
	IORING_OP_READ_FIXED,
	IORING_OP_STATX,
	IORING_OP_URING_CMD,
	IORING_OP_WRITE,
	IORING_OP_WRITE_FIXED,
};

static const __u8 registrations[] = {
	IORING_REGISTER_BUFFERS2,	/* store-uring.c, store-file-sync.c */
	IORING_REGISTER_BUFFERS_UPDATE,
	IORING_REGISTER_FILES2,
	IORING_REGISTER_FILES_UPDATE,
	IORING_REGISTER_IOWQ_MAX_WORKERS,
	IORING_UNREGISTER_FILES,
};

/* Restrict @ring, which is disabled still: an attacker who can write to the ring cannot open files
 * or sockets through it, past the filter of system calls.  0 or -errno. */
static int ring_restrict(struct io_uring *ring)
{
	struct io_uring_restriction rows[ARRAY_SIZE(operations) + ARRAY_SIZE(registrations) + 1] = {
		{ .opcode = IORING_RESTRICTION_SQE_FLAGS_ALLOWED,
		  .sqe_flags = IOSQE_FIXED_FILE | IOSQE_ASYNC },
	};
	unsigned n = 1;

	for (unsigned i = 0; i < ARRAY_SIZE(operations); i++, n++) {
		rows[n].opcode = IORING_RESTRICTION_SQE_OP;
		rows[n].sqe_op = operations[i];
	}
	for (unsigned i = 0; i < ARRAY_SIZE(registrations); i++, n++) {
		rows[n].opcode = IORING_RESTRICTION_REGISTER_OP;
		rows[n].register_op = registrations[i];
	}
	/* liburing 2.3 declares io_uring_register_restrictions() without exporting the function. */
	return io_uring_register((unsigned)ring->ring_fd, IORING_REGISTER_RESTRICTIONS, rows, n);
}

int reactor_ring_init(const char *name, struct io_uring *ring, unsigned entries)
{
	static const unsigned flags[] = {	/* best first */
		IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_SUBMIT_ALL,
		IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN | IORING_SETUP_SUBMIT_ALL,
		IORING_SETUP_COOP_TASKRUN | IORING_SETUP_SUBMIT_ALL,
		IORING_SETUP_SUBMIT_ALL,
	};
	int rc = -EINVAL;

	for (unsigned i = 0; i < ARRAY_SIZE(flags) && rc == -EINVAL; i++) {
		struct io_uring_params p = {
			.flags = flags[i] | IORING_SETUP_R_DISABLED | IORING_SETUP_CQSIZE |
				 IORING_SETUP_CLAMP,
			.cq_entries = entries * CQ_PER_SQ,
		};

		rc = io_uring_queue_init_params(entries, ring, &p);
	}
	if (rc) {
		log_setup_error(name, rc);
		return rc;
	}
	rc = check_features(name, ring);
	if (!rc) {
		rc = ring_restrict(ring);
		if (rc)
			log_err(name, "cannot restrict the io_uring: %s", strerror(-rc));
	}
	if (rc)
		io_uring_queue_exit(ring);
	return rc;
}

struct io_uring_sqe *reactor_ring_sqe(struct reactor *r, struct reactor_op *op)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&r->ring);

	while (!sqe) {
		int rc = io_uring_submit(&r->ring);

		if (rc < 0 && rc != -EINTR && rc != -EAGAIN && rc != -EBUSY) {
			/* A ring is used by the wrong thread, or torn down. */
			log_err(r->name, "io_uring_enter: %s", strerror(-rc));
			abort();
		}
		if (rc == -EAGAIN || rc == -EBUSY)	/* the kernel is short of memory */
			sched_yield();
		sqe = io_uring_get_sqe(&r->ring);
	}
	io_uring_sqe_set_data(sqe, op);
	return sqe;
}

bool reactor_ring_later(struct reactor *r, struct reactor_op *op, int *res)
{
	static struct __kernel_timespec later = { .tv_nsec = LATER_MS * 1000000ll };

	if (*res == -ETIME)
		*res = -EAGAIN;
	if (*res != -ECANCELED)
		return false;
	log_limited(&later_limit, LOG_LEVEL_WARN, r->name,
		    "requests wait for a thread of the kernel: %s; trying again",
		    threads_strerror(-EAGAIN));
	io_uring_prep_timeout(reactor_ring_sqe(r, op), &later, 0, 0);
	return true;
}
