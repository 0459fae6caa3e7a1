/* SPDX-License-Identifier: BSD-3-Clause */
/* Persistent reservations by the ioctls of linux/pr.h (store-file-pr.h).  Owns nothing; a worker.
 *
 * A conflict says that a command was refused, and not why: another holder, a key that the device
 * does not know, a holder who has just gone.  So after a command that was to bring the reservation
 * the device is asked who has it, and its answer is the result. */
#include <config.h>

#include <inttypes.h>
#include <linux/pr.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "number.h"
#include "store-file-pr.h"
#include "store-file-priv.h"

static int __attribute__((format(printf, 5, 6)))
refuse(const struct store_file_pr *pr, int rc, char *why, size_t len, const char *fmt, ...)
{
	va_list ap;

	snprintf(why, len, "'%s' ", pr->path);
	va_start(ap, fmt);
	fmt_vadd(why, len, fmt, ap);
	va_end(ap);
	return rc;
}

static int refuse_command(const struct store_file_pr *pr, int rc, const char *what, char *why,
			  size_t len)
{
	switch (rc) {
	case -EPERM:
		return refuse(pr, rc, why, len, "cannot %s: the kernel requires a writable "
			      "descriptor, and Linux 6.1 the capability CAP_SYS_ADMIN, which a "
			      "server keeps only if an export has shared=yes at its start: restart "
			      "it (rtrs-guide(7) has the drop-in)", what);
	case -ENOTTY:
	case -EOPNOTSUPP:
	case -EINVAL:
		return refuse(pr, -EOPNOTSUPP, why, len, "cannot %s: it has no persistent "
			      "reservations of the type write-exclusive", what);
	}
	return refuse(pr, rc, why, len, "cannot %s: %s", what, strerror(-rc));
}

int store_file_pr_look(const struct store_file_pr *pr, struct store_file_pr_view *view, char *why,
		       size_t len)
{
	int rc = store_file_pr_ask(pr->fd, pr->key, view);

	switch (rc) {
	case 0:
		return 0;
	case -EPERM:
		return refuse(pr, rc, why, len, "does not report which host has its reservation: "
			      "before Linux 6.19 a server needs the capability CAP_SYS_RAWIO to "
			      "ask, and keeps it only if an export has shared=yes at its start: "
			      "restart it (rtrs-guide(7) has the drop-in)");
	case -EOPNOTSUPP:
		return refuse(pr, rc, why, len, "has no persistent reservations that can be read: "
			      "a SCSI disk that has them is needed, or an NVMe namespace under "
			      "Linux 6.19");
	}
	return refuse(pr, rc, why, len, "does not report which host has its reservation: %s",
		      strerror(-rc));
}

int store_file_pr_check(const struct store_file_pr *pr, char *why, size_t len)
{
	struct store_file_pr_view view;
	struct stat st;
	char line[8];

	if (fstat(pr->fd, &st))
		return refuse(pr, -errno, why, len, "cannot be looked at: %s", strerror(errno));
	if (!S_ISBLK(st.st_mode))
		return refuse(pr, -EOPNOTSUPP, why, len, "is no block device: a device with "
			      "persistent reservations is needed");
	if (store_file_disk_attr(st.st_rdev, "partition", line, sizeof(line)))
		return refuse(pr, -EOPNOTSUPP, why, len, "is a partition, and a reservation is "
			      "that of the whole disk: the disk itself is needed");
	if (store_file_disk_attr(st.st_rdev, "dm/suspended", line, sizeof(line)))
		return refuse(pr, -EOPNOTSUPP, why, len, "is made by device-mapper, and a "
			      "reservation is that of a disk on one path: the disk itself is "
			      "needed");
	return store_file_pr_look(pr, &view, why, len);
}

int store_file_pr_new_key(uint64_t *key)
{
	do {
		if (getrandom(key, sizeof(*key), 0) != sizeof(*key))
			return errno == EINTR ? -EINTR : -EIO;
	} while (!*key);
	return 0;
}

int store_file_pr_register(const struct store_file_pr *pr, char *why, size_t len)
{
	/* The key of an earlier server on this host need not be known. */
	struct pr_registration reg = { .new_key = pr->key, .flags = PR_FL_IGNORE_KEY };
	int rc = store_file_pr_ioctl(pr->fd, IOC_PR_REGISTER, &reg);

	return rc ? refuse_command(pr, rc, "register a key", why, len) : 0;
}

/* True if @rc does not tell who has the reservation.  LIO refuses an unknown key with a conflict if
 * there is a reservation, and with a failure if there is none. */
static bool says_little(int rc)
{
	return !rc || rc == -EBUSY || rc == -EIO;
}

/* After a command for the reservation that ended with @rc: does this host have it? */
static int settle(const struct store_file_pr *pr, int rc, const char *what, char *why, size_t len)
{
	struct store_file_pr_view view;
	int looked;

	if (!says_little(rc))
		return refuse_command(pr, rc, what, why, len);
	looked = store_file_pr_look(pr, &view, why, len);
	if (looked)
		return looked;
	if (view.owner == STORE_FILE_PR_OURS)
		return 0;
	if (!view.registered)
		return refuse(pr, -ENOKEY, why, len, "does not have the key 0x%" PRIx64 " of this "
			      "server: another host has preempted it, or it was never registered",
			      pr->key);
	if (view.owner == STORE_FILE_PR_OTHER)
		return refuse(pr, -EBUSY, why, len, "is reserved by the host with key 0x%" PRIx64,
			      view.holder);
	if (rc == -EIO)
		return refuse_command(pr, rc, what, why, len);
	return refuse(pr, -EAGAIN, why, len, "was given back by another host a moment ago");
}

int store_file_pr_reserve(const struct store_file_pr *pr, char *why, size_t len)
{
	struct pr_reservation rsv = { .key = pr->key, .type = PR_WRITE_EXCLUSIVE };
	int rc = store_file_pr_ioctl(pr->fd, IOC_PR_RESERVE, &rsv);

	return settle(pr, rc, "be reserved", why, len);
}

int store_file_pr_preempt(const struct store_file_pr *pr, uint64_t other, char *why, size_t len)
{
	/* Not as the names say: sd and nvme hand old_key to the device as the key of the host that
	 * asks, new_key as the key to preempt (sd_pr_preempt, nvme_pr_preempt). */
	struct pr_preempt preempt = { .old_key = pr->key, .new_key = other,
				      .type = PR_WRITE_EXCLUSIVE };
	int rc;

	if (!other || other == pr->key)
		return refuse(pr, -EINVAL, why, len, "is reserved by no single other host: the key "
			      "0x%" PRIx64 " cannot be preempted", other);
	rc = store_file_pr_ioctl(pr->fd, IOC_PR_PREEMPT_ABORT, &preempt);
	return settle(pr, rc, "be taken over", why, len);
}

int store_file_pr_forget(const struct store_file_pr *pr, uint64_t other, char *why, size_t len)
{
	/* As in store_file_pr_preempt(). */
	struct pr_preempt preempt = { .old_key = pr->key, .new_key = other,
				      .type = PR_WRITE_EXCLUSIVE };
	struct store_file_pr_view view;
	int rc = store_file_pr_ioctl(pr->fd, IOC_PR_PREEMPT_ABORT, &preempt);

	if (!says_little(rc))
		return refuse_command(pr, rc, "remove the key of another host", why, len);
	rc = store_file_pr_look(pr, &view, why, len);
	if (!rc && view.idle == other)
		rc = refuse(pr, -EBUSY, why, len, "does not remove the key 0x%" PRIx64 " of "
			    "another host", other);
	return rc;
}

/* True if @rc, of a command that gives back, says that the device does not know our key. */
static bool knows_nothing(const struct store_file_pr *pr, int rc)
{
	struct store_file_pr_view view;

	return says_little(rc) && !store_file_pr_ask(pr->fd, pr->key, &view) && !view.registered;
}

int store_file_pr_release(const struct store_file_pr *pr, char *why, size_t len)
{
	struct pr_reservation rsv = { .key = pr->key, .type = PR_WRITE_EXCLUSIVE };
	int rc = store_file_pr_ioctl(pr->fd, IOC_PR_RELEASE, &rsv);

	if (!rc || knows_nothing(pr, rc))
		return 0;
	return refuse_command(pr, rc, "be released", why, len);
}

int store_file_pr_unregister(const struct store_file_pr *pr, char *why, size_t len)
{
	struct pr_registration reg = { .old_key = pr->key };
	int rc = store_file_pr_ioctl(pr->fd, IOC_PR_REGISTER, &reg);

	if (!rc || knows_nothing(pr, rc))
		return 0;
	return refuse_command(pr, rc, "remove the key", why, len);
}
