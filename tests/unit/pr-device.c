/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the one device of a test, as SPC-4 and LIO have it (pr-device.h). */
#include <config.h>

#include <endian.h>
#include <errno.h>
#include <linux/pr.h>
#include <scsi/sg.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <unistd.h>

#include "pr-device.h"
#include "unit.h"
#include "util.h"

#define READ_KEYS 206
#define READ_RESERVATION 207

struct device dev;
uint64_t random_numbers[4];
unsigned nrandom;
int __wrap_ioctl(int fd, unsigned long request, ...);
ssize_t __wrap_getrandom(void *buf, size_t len, unsigned flags);

ssize_t __wrap_getrandom(void *buf, size_t len, unsigned flags)
{
	(void)flags;
	memcpy(buf, &random_numbers[nrandom++], len);
	return (ssize_t)len;
}

/* Put the keys, at most @room, into @keys.  Returns how many there are. */
static unsigned list_keys(uint64_t *keys, unsigned room)
{
	unsigned n = 0;

	for (int i = 0; i < NHOSTS; i++) {
		if (dev.keys[i] && n++ < room)
			keys[n - 1] = dev.keys[i];
	}
	return n;
}

static int do_register(int host, const struct pr_registration *reg)
{
	if (!(reg->flags & PR_FL_IGNORE_KEY) && reg->old_key != dev.keys[host])
		return CONFLICT;
	dev.keys[host] = reg->new_key;
	if (!reg->new_key && dev.holder == host)
		dev.holder = -1;
	return 0;
}

static int do_reserve(int host, const struct pr_reservation *rsv)
{
	cr_assert_eq(rsv->type, PR_WRITE_EXCLUSIVE);
	/* As LIO does. */
	if (!dev.keys[host])
		return dev.holder < 0 ? CHECK : CONFLICT;
	if (rsv->key != dev.keys[host] || (dev.holder >= 0 && dev.holder != host))
		return CONFLICT;
	dev.holder = host;
	return 0;
}

static int do_release(int host, const struct pr_reservation *rsv)
{
	if (!dev.keys[host] || rsv->key != dev.keys[host])
		return CONFLICT;
	if (dev.holder == host)
		dev.holder = -1;
	return 0;
}

/* SPC-4, 5.13.11.4: who asks says its own key first. */
static int do_preempt(int host, const struct pr_preempt *p)
{
	bool known = false, holds = dev.holder >= 0 && dev.keys[dev.holder] == p->new_key;

	if (!dev.keys[host] || p->old_key != dev.keys[host])
		return CONFLICT;
	for (int i = 0; i < NHOSTS; i++) {
		if (dev.keys[i] != p->new_key)
			continue;
		known = true;
		dev.keys[i] = dev.stubborn ? dev.keys[i] : 0;
	}
	if (!known)
		return CONFLICT;
	dev.aborts++;
	if (holds)
		dev.holder = host;
	return 0;
}

static void put_be32(uint8_t *p, uint32_t v)
{
	v = htobe32(v);
	memcpy(p, &v, sizeof(v));
}

static void put_be64(uint8_t *p, uint64_t v)
{
	v = htobe64(v);
	memcpy(p, &v, sizeof(v));
}

static int do_sg(struct sg_io_hdr *hdr)
{
	static uint8_t all[8 + 8 * NHOSTS];
	static uint64_t keys[NHOSTS];
	unsigned room = hdr->cmdp[7] << 8 | hdr->cmdp[8], len = 8;

	memset(all, 0, sizeof(all));
	cr_assert_eq(hdr->cmdp[0], 0x5e);
	cr_assert_eq(hdr->timeout, 60000);	/* ms: SG_TIMEOUT_MS */
	cr_assert_eq(room, hdr->dxfer_len);
	if (dev.attentions > 0 || dev.illegal) {
		/* In both formats of sense data. */
		hdr->status = CHECK;
		hdr->sbp[0] = dev.attentions & 1 ? 0x72 : 0x70;
		hdr->sbp[dev.attentions & 1 ? 1 : 2] = dev.illegal ? 5 : 6;
		dev.attentions -= !dev.illegal;
		return 0;
	}
	if (hdr->cmdp[1] == 0) {
		unsigned n = list_keys(keys, NHOSTS);

		for (unsigned i = 0; i < n; i++, len += 8)
			put_be64(all + len, keys[i]);
	} else if (dev.holder >= 0 || dev.everybody) {
		put_be64(all + 8, dev.everybody ? 0 : dev.keys[dev.holder]);
		len = 24;
	}
	put_be32(all + 4, len - 8);
	len = MIN(len, room);
	len = dev.sent ? MIN(len, dev.sent) : len;
	memcpy(hdr->dxferp, all, len);
	hdr->resid = (int)(room - len);
	return 0;
}

static int do_read(unsigned nr, void *arg)
{
	struct { uint32_t generation, num; uint64_t ptr; } keys;
	struct { uint64_t key; uint32_t generation, type; } rsv = { 0 };

	if (nr == READ_RESERVATION) {
		if (dev.holder >= 0 || dev.everybody) {
			rsv.key = dev.everybody ? 0 : dev.keys[dev.holder];
			rsv.type = dev.everybody ? PR_WRITE_EXCLUSIVE_ALL_REGS : PR_WRITE_EXCLUSIVE;
		}
		memcpy(arg, &rsv, sizeof(rsv));
		return 0;
	}
	memcpy(&keys, arg, sizeof(keys));
	keys.num = list_keys((uint64_t *)(uintptr_t)keys.ptr, keys.num);
	memcpy(arg, &keys, sizeof(keys));
	return 0;
}

static int fails(int error)
{
	errno = error;
	return -1;
}

int __wrap_ioctl(int fd, unsigned long request, ...)
{
	int host = fd - FD;
	va_list ap;
	void *arg;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (dev.refuses)
		return fails(dev.refuses);
	if (request == SG_IO)
		return dev.scsi ? do_sg(arg) : fails(ENOTTY);
	if (dev.scsi && _IOC_NR(request) >= READ_KEYS)
		return fails(ENOTTY);
	if (dev.attentions > 0) {
		dev.attentions--;
		return CHECK;
	}
	switch (request) {
	case IOC_PR_REGISTER:
		return do_register(host, arg);
	case IOC_PR_RESERVE:
		return do_reserve(host, arg);
	case IOC_PR_RELEASE:
		return do_release(host, arg);
	case IOC_PR_PREEMPT_ABORT:
		return do_preempt(host, arg);
	}
	return do_read(_IOC_NR(request), arg);
}
