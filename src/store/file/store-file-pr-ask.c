/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands for a reservation, and who has it: by ioctl where the kernel has one (linux/pr.h,
 * for questions since Linux 6.19), else by the SCSI command PERSISTENT RESERVE IN (SPC-4).  Owns a
 * buffer for the time of a call; a worker.
 *
 * Data of the device is checked here: the device may announce more keys than it sends. */
#include <config.h>

#include <endian.h>
#include <linux/pr.h>
#include <scsi/sg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "store-file-pr.h"
#include "util.h"

#define KEYS_MAX 8190u			/* as many as the 16 bits of the SCSI length can bring */
#define KEYS_FIRST 64
#define SG_TIMEOUT_MS 60000

/* The ABI of Linux 6.19, which headers of today lack. */
struct ioc_read_keys {
	uint32_t generation;
	uint32_t num_keys;		/* in: room; out: how many there are */
	uint64_t keys_ptr;
};

struct ioc_read_reservation {
	uint64_t key;
	uint32_t generation;
	uint32_t type;			/* 0: no reservation */
};

_Static_assert(sizeof(struct ioc_read_keys) == 16, "ABI");
_Static_assert(sizeof(struct ioc_read_reservation) == 16, "ABI");
#define IOC_READ_KEYS _IOWR('p', 206, struct ioc_read_keys)
#define IOC_READ_RESERVATION _IOR('p', 207, struct ioc_read_reservation)

#define TRIES 8			/* a host or a reset may have left a unit attention */
/* enum pr_status of newer headers; SCSI's status in any kernel. */
#define STATUS_CHECK 0x02
#define STATUS_CONFLICT 0x18

/* Ask with room for @room keys in @keys: how many there are, or -errno. */
typedef int ask_keys(int fd, uint64_t *keys, unsigned room);

static bool ioctl_missing(int rc)
{
	return rc == -ENOTTY || rc == -EINVAL || rc == -EOPNOTSUPP;
}

/* ---- by ioctl ---- */

int store_file_pr_ioctl(int fd, unsigned long request, void *arg)
{
	int rc = STATUS_CHECK;

	/* Linux 6.1 returns the first unit attention, 6.12 repeats the command by itself. */
	for (int i = 0; i < TRIES && rc == STATUS_CHECK; i++)
		rc = ioctl(fd, request, arg);
	if (rc < 0)
		return -errno;
	if (rc == STATUS_CONFLICT)
		return -EBUSY;
	return rc ? -EIO : 0;
}

static int ioctl_keys(int fd, uint64_t *keys, unsigned room)
{
	struct ioc_read_keys ask = { .num_keys = room, .keys_ptr = (uintptr_t)keys };
	int rc = store_file_pr_ioctl(fd, IOC_READ_KEYS, &ask);

	return rc ? rc : (int)MIN(ask.num_keys, KEYS_MAX);
}

static int ioctl_holder(int fd, uint64_t *key)
{
	struct ioc_read_reservation rsv = { 0 };
	int rc = store_file_pr_ioctl(fd, IOC_READ_RESERVATION, &rsv);

	*key = rsv.key;
	return rc ? rc : !!rsv.type;
}

/* ---- by SCSI command ---- */

enum { SENSE_ILLEGAL_REQUEST = 5, SENSE_UNIT_ATTENTION = 6 };
enum { IN_READ_KEYS = 0, IN_READ_RESERVATION = 1 };

static unsigned sense_key(const uint8_t *sense)
{
	/* Two formats: descriptor, and fixed. */
	return (sense[0] & 0x7f) >= 0x72 ? sense[1] & 0xf : sense[2] & 0xf;
}

/* One command: how many bytes came, -EAGAIN, or -errno. */
static int sg_once(int fd, uint8_t action, uint8_t *buf, unsigned len)
{
	uint8_t cdb[10] = { 0x5e, action, [7] = len >> 8, [8] = len & 0xff };
	uint8_t sense[32] = { 0 };
	struct sg_io_hdr hdr = { .interface_id = 'S', .dxfer_direction = SG_DXFER_FROM_DEV,
				 .cmdp = cdb, .cmd_len = sizeof(cdb), .sbp = sense,
				 .mx_sb_len = sizeof(sense), .dxferp = buf, .dxfer_len = len,
				 .timeout = SG_TIMEOUT_MS };

	memset(buf, 0, len);
	if (ioctl(fd, SG_IO, &hdr))
		return ioctl_missing(-errno) ? -EOPNOTSUPP : -errno;
	if (!hdr.status && !hdr.host_status)
		return (int)len - MAX(0, MIN(hdr.resid, (int)len));
	if (hdr.status != STATUS_CHECK)
		return -EIO;
	switch (sense_key(sense)) {
	case SENSE_UNIT_ATTENTION:
		return -EAGAIN;
	case SENSE_ILLEGAL_REQUEST:
		return -EOPNOTSUPP;
	}
	return -EIO;
}

static int sg_in(int fd, uint8_t action, uint8_t *buf, unsigned len)
{
	int rc = -EAGAIN;

	for (int i = 0; i < TRIES && rc == -EAGAIN; i++)
		rc = sg_once(fd, action, buf, len);
	if (rc >= 0 && rc < 8)
		return -EIO;
	return rc == -EAGAIN ? -EIO : rc;
}

static uint64_t be64_at(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return be64toh(v);
}

/* How many bytes follow the eight of the header, as the device says. */
static uint32_t follows(const uint8_t *buf)
{
	uint32_t v;

	memcpy(&v, buf + 4, sizeof(v));
	return be32toh(v);
}

static int sg_keys(int fd, uint64_t *keys, unsigned room)
{
	unsigned len = 8 + 8 * room, n;
	uint8_t *buf = malloc(len);
	int rc;

	if (!buf)
		return -ENOMEM;
	rc = sg_in(fd, IN_READ_KEYS, buf, len);
	if (rc >= 0) {
		n = MIN(follows(buf) / 8, KEYS_MAX);
		/* A key that was announced, and did not come, is no key. */
		memset(keys, 0, room * sizeof(*keys));
		for (size_t i = 0; i < MIN(n, ((unsigned)rc - 8) / 8); i++)
			keys[i] = be64_at(buf + 8 + 8 * i);
		rc = (int)n;
	}
	free(buf);
	return rc;
}

static int sg_holder(int fd, uint64_t *key)
{
	uint8_t buf[24];
	int rc = sg_in(fd, IN_READ_RESERVATION, buf, sizeof(buf));

	if (rc < 0)
		return rc;
	*key = 0;
	if (!follows(buf))
		return 0;
	if (follows(buf) < 16 || rc < (int)sizeof(buf))
		return -EIO;
	*key = be64_at(buf + 8);
	return 1;
}

/* ---- both ---- */

/* Of the keys of other hosts. */
struct others {
	unsigned n;
	uint64_t first[2];
};

/* Learn the other keys beside @key.  1 if @key is registered, 0, or -errno. */
static int find_key(int fd, uint64_t key, ask_keys *ask, struct others *others)
{
	unsigned room = KEYS_FIRST;
	uint64_t *keys = NULL;
	int n = 0, found = 0;

	do {
		room = MAX(room, (unsigned)n);
		free(keys);
		keys = calloc(room, sizeof(*keys));
		if (!keys)
			return -ENOMEM;
		n = ask(fd, keys, room);
	} while (n > (int)room);
	*others = (struct others){ 0 };
	for (int i = 0; i < n; i++) {
		found |= keys[i] == key;
		if (!keys[i] || keys[i] == key)
			continue;
		if (others->n < ARRAY_SIZE(others->first))
			others->first[others->n] = keys[i];
		others->n++;
	}
	free(keys);
	return n < 0 ? n : found;
}

int store_file_pr_ask(int fd, uint64_t key, struct store_file_pr_view *view)
{
	struct others others;
	int rc, found = find_key(fd, key, ioctl_keys, &others);
	uint64_t holder;

	if (ioctl_missing(found)) {
		found = find_key(fd, key, sg_keys, &others);
		rc = found < 0 ? found : sg_holder(fd, &holder);
	} else {
		rc = found < 0 ? found : ioctl_holder(fd, &holder);
	}
	if (rc < 0)
		return rc;
	view->registered = found;
	view->holder = rc ? holder : 0;
	view->owner = STORE_FILE_PR_FREE;
	if (rc)
		view->owner = holder == key ? STORE_FILE_PR_OURS : STORE_FILE_PR_OTHER;
	view->others = others.n;
	view->idle = others.first[others.first[0] == view->holder];
	return 0;
}
