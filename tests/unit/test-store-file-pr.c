/* SPDX-License-Identifier: BSD-3-Clause */
/* Persistent reservations (store-file-pr.h) on a device that ioctl() plays: two hosts and
 * strangers, asked by ioctl as in Linux 6.19, or by SCSI command.
 * tests/guest/test-reservation.sh does the same on a real device. */
#include <config.h>

#include <endian.h>
#include <errno.h>
#include <linux/pr.h>
#include <scsi/sg.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <unistd.h>

#include "store-file-pr-priv.h"
#include "unit.h"

#define FD 1000				/* of host 0; the next one is that of host 1 */
#define NHOSTS 200
#define CHECK 0x02
#define CONFLICT 0x18
#define READ_KEYS 206
#define READ_RESERVATION 207

static struct device {
	bool scsi;			/* asked by SCSI command */
	uint64_t keys[NHOSTS];		/* 0: not registered */
	int holder;			/* -1: nobody */
	bool everybody;			/* all who are registered have it: its key is 0 */
	int attentions;			/* so many commands fail first */
	bool illegal;			/* no SCSI command is known */
	int refuses;			/* errno of each ioctl; 0: none */
	unsigned sent;			/* a SCSI answer ends there; 0: whole */
	unsigned aborts;
} dev;

static uint64_t random_numbers[4];
static unsigned nrandom;
static char why[256];

int __wrap_ioctl(int fd, unsigned long request, ...);
ssize_t __wrap_getrandom(void *buf, size_t len, unsigned flags);

ssize_t __wrap_getrandom(void *buf, size_t len, unsigned flags)
{
	(void)flags;
	memcpy(buf, &random_numbers[nrandom++], len);
	return (ssize_t)len;
}

static unsigned count_keys(void)
{
	unsigned n = 0;

	for (int i = 0; i < NHOSTS; i++)
		n += dev.keys[i] != 0;
	return n;
}

static uint64_t nth_key(unsigned n)
{
	for (int i = 0; i < NHOSTS; i++)
		if (dev.keys[i] && !n--)
			return dev.keys[i];
	return 0;
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
		dev.keys[i] = 0;
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
	uint8_t all[8 + 8 * NHOSTS] = { 0 };
	unsigned room = hdr->cmdp[7] << 8 | hdr->cmdp[8], len = 8;

	cr_assert_eq(hdr->cmdp[0], 0x5e);
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
		for (unsigned i = 0; i < count_keys(); i++, len += 8)
			put_be64(all + len, nth_key(i));
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
	unsigned room;

	if (nr == READ_RESERVATION) {
		if (dev.holder >= 0 || dev.everybody) {
			rsv.key = dev.everybody ? 0 : dev.keys[dev.holder];
			rsv.type = dev.everybody ? PR_WRITE_EXCLUSIVE_ALL_REGS : PR_WRITE_EXCLUSIVE;
		}
		memcpy(arg, &rsv, sizeof(rsv));
		return 0;
	}
	memcpy(&keys, arg, sizeof(keys));
	room = keys.num;
	keys.num = count_keys();
	for (unsigned i = 0; i < MIN(room, keys.num); i++)
		((uint64_t *)(uintptr_t)keys.ptr)[i] = nth_key(i);
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

static const struct store_file_pr a = { FD, "/dev/a", 0xaaaaaaaa00000001 };
static const struct store_file_pr b = { FD + 1, "/dev/b", 0xbbbbbbbb00000002 };

static void begin(bool scsi)
{
	dev = (struct device){ .scsi = scsi, .holder = -1 };
	*why = '\0';
}

static struct store_file_pr_view look(const struct store_file_pr *pr)
{
	struct store_file_pr_view view;

	cr_assert_eq(store_file_pr_look(pr, &view, why, sizeof(why)), 0, "%s", why);
	return view;
}

#define ok(call) cr_assert_eq((call), 0, "%s", why)
#define is(call, rc) cr_assert_eq((call), (rc), "%s", why)
#define told(text) cr_assert(strstr(why, (text)), "'%s' lacks '%s'", why, (text))

TestSuite(store_file_pr, .timeout = 60);

Test(store_file_pr, two_hosts)
{
	for (int scsi = 0; scsi < 2; scsi++) {
		begin(scsi);
		is(store_file_pr_reserve(&a, why, sizeof(why)), -ENOKEY);
		told("'/dev/a' ");
		ok(store_file_pr_register(&a, why, sizeof(why)));
		cr_assert(look(&a).registered && look(&a).owner == STORE_FILE_PR_FREE);
		ok(store_file_pr_reserve(&a, why, sizeof(why)));
		ok(store_file_pr_reserve(&a, why, sizeof(why)));
		cr_assert_eq(look(&a).owner, STORE_FILE_PR_OURS);
		ok(store_file_pr_register(&b, why, sizeof(why)));
		is(store_file_pr_reserve(&b, why, sizeof(why)), -EBUSY);
		told("0xaaaaaaaa00000001");
		ok(store_file_pr_release(&b, why, sizeof(why)));
		cr_assert_eq(look(&b).owner, STORE_FILE_PR_OTHER);
		cr_assert_eq(look(&b).holder, a.key);
		ok(store_file_pr_preempt(&b, a.key, why, sizeof(why)));
		cr_assert_eq(dev.aborts, 1);
		cr_assert_eq(look(&b).owner, STORE_FILE_PR_OURS);
		cr_assert(!look(&a).registered);
		is(store_file_pr_reserve(&a, why, sizeof(why)), -ENOKEY);
		is(store_file_pr_preempt(&a, b.key, why, sizeof(why)), -ENOKEY);
		ok(store_file_pr_release(&a, why, sizeof(why)));
		ok(store_file_pr_unregister(&a, why, sizeof(why)));
		cr_assert_eq(look(&b).owner, STORE_FILE_PR_OURS);
		ok(store_file_pr_release(&b, why, sizeof(why)));
		cr_assert(look(&b).registered && look(&b).owner == STORE_FILE_PR_FREE);
		ok(store_file_pr_unregister(&b, why, sizeof(why)));
		cr_assert(!look(&b).registered);
	}
}

/* The device removes a registration, and that is no reservation. */
Test(store_file_pr, the_wrong_one_is_preempted)
{
	begin(true);
	dev.keys[2] = 3;
	dev.keys[3] = 4;
	ok(store_file_pr_register(&b, why, sizeof(why)));
	dev.holder = 2;
	is(store_file_pr_preempt(&b, 4, why, sizeof(why)), -EBUSY);
	dev.keys[3] = 4;
	dev.holder = -1;
	is(store_file_pr_preempt(&b, 4, why, sizeof(why)), -EAGAIN);
	is(store_file_pr_preempt(&b, b.key, why, sizeof(why)), -EINVAL);
	dev.everybody = true;
	cr_assert_eq(look(&b).owner, STORE_FILE_PR_OTHER);
	is(store_file_pr_preempt(&b, look(&b).holder, why, sizeof(why)), -EINVAL);
	told("no single other host");
}

Test(store_file_pr, a_next_server_of_the_host_keeps_the_reservation)
{
	struct store_file_pr next = a;

	begin(true);
	ok(store_file_pr_register(&a, why, sizeof(why)));
	ok(store_file_pr_reserve(&a, why, sizeof(why)));
	next.key++;
	ok(store_file_pr_register(&next, why, sizeof(why)));
	cr_assert_eq(look(&next).owner, STORE_FILE_PR_OURS);
	cr_assert(!look(&a).registered);
}

Test(store_file_pr, more_keys_than_expected)
{
	for (int scsi = 0; scsi < 2; scsi++) {
		begin(scsi);
		for (int i = 2; i < NHOSTS; i++)
			dev.keys[i] = 5;
		cr_assert(!look(&a).registered);
		dev.keys[NHOSTS - 1] = a.key;
		cr_assert(look(&a).registered);
	}
}

Test(store_file_pr, a_device_has_something_else_to_tell)
{
	for (int scsi = 0; scsi < 2; scsi++) {
		begin(scsi);
		dev.attentions = 3;
		ok(store_file_pr_register(&a, why, sizeof(why)));
		dev.attentions = 3;
		cr_assert(look(&a).registered);
		dev.attentions = 1000;
		is(store_file_pr_register(&a, why, sizeof(why)), -EIO);
	}
}

/* What a device announces is not what it sends. */
Test(store_file_pr, short_answers)
{
	struct store_file_pr_view view;

	begin(true);
	dev.keys[0] = a.key;
	dev.holder = 0;
	dev.sent = 8;
	is(store_file_pr_ask(FD, a.key, &view), -EIO);
	dev.sent = 16;
	is(store_file_pr_ask(FD, a.key, &view), -EIO);
	dev.sent = 4;
	is(store_file_pr_ask(FD, a.key, &view), -EIO);
	dev.holder = -1;
	dev.sent = 8;
	cr_assert(!look(&a).registered);
}

Test(store_file_pr, refusals_name_the_device)
{
	static const struct { int error, rc; const char *text; } cases[] = {
		{ EPERM, -EPERM, "CAP_SYS_ADMIN" },
		{ ENOTTY, -EOPNOTSUPP, "no persistent reservations" },
		{ EOPNOTSUPP, -EOPNOTSUPP, "no persistent reservations" },
		{ ENODEV, -ENODEV, "No such device" },
	};
	struct store_file_pr_view view;

	for_each_case(c, cases) {
		begin(true);
		dev.refuses = c->error;
		is(store_file_pr_register(&a, why, sizeof(why)), c->rc);
		told("'/dev/a' ");
		told(c->text);
		is(store_file_pr_look(&a, &view, why, sizeof(why)), c->rc);
		told("'/dev/a' ");
	}
	for (int format = 0; format < 2; format++) {
		begin(true);
		dev.illegal = true;
		dev.attentions = format;
		is(store_file_pr_look(&a, &view, why, sizeof(why)), -EOPNOTSUPP);
		told("'/dev/a' has no persistent reservations");
	}
	dev.refuses = EPERM;
	is(store_file_pr_look(&a, &view, why, sizeof(why)), -EPERM);
	told("CAP_SYS_RAWIO");
}

Test(store_file_pr, a_key_is_random_and_not_0)
{
	uint64_t key;

	nrandom = 0;
	random_numbers[1] = 7;
	ok(store_file_pr_new_key(&key));
	cr_assert_eq(key, 7);
}

Test(store_file_pr, a_fenced_write_is_known)
{
	cr_assert(store_file_pr_fenced(-EBADE));
	cr_assert(!store_file_pr_fenced(-EIO));
	cr_assert(!store_file_pr_fenced(0));
}
