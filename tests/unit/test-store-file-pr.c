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

#include "pr-device.h"
#include "store-file-pr.h"
#include "unit.h"

static char why[256];

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
		for (int i = 2; i < 200; i++)
			dev.keys[i] = 5;
		cr_assert(!look(&a).registered);
		dev.keys[199] = a.key;
		cr_assert(look(&a).registered);
	}
}

/* Our key is the last of so many: a key beyond the limit is not seen. */
Test(store_file_pr, keys_up_to_the_limit)
{
	static const unsigned counts[] = { KEYS_MAX - 1, KEYS_MAX, KEYS_MAX + 1, 4 * KEYS_MAX };

	for (unsigned c = 0; c < 2 * ARRAY_SIZE(counts); c++) {
		unsigned n = counts[c / 2];

		begin(c % 2);
		for (unsigned i = 0; i + 1 < n; i++)
			dev.keys[i] = 5;
		dev.keys[n - 1] = a.key;
		cr_assert_eq(look(&a).registered, n <= KEYS_MAX, "%u", n);
		cr_assert_eq(look(&a).others, n <= KEYS_MAX ? n - 1 : KEYS_MAX, "%u", n);
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
	told("CAP_SYS_RAWIO to ask, and keeps it only if an export has shared=yes at its start");
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
