/* SPDX-License-Identifier: BSD-3-Clause */
/* Losses of a device and the handles that are told: the order of epochs, which the simulation meets
 * by chance only. */
#include <errno.h>

#include "dev-loss.h"
#include "unit.h"

struct device {
	struct dev_loss loss;
	struct dev_told told;
};

static void device_init(struct device *d)
{
	dev_loss_init(&d->loss);
	dev_told_init(&d->told, &d->loss);
}

static struct dev_cover begin(struct device *d)
{
	struct dev_cover cover;

	dev_cover_begin(&cover, &d->told, &d->loss);
	return cover;
}

/* A FLUSH from its begin to its end, answered in @epoch. */
static int flush(struct device *d, unsigned epoch)
{
	struct dev_cover cover = begin(d);
	int r = dev_loss_tell(&d->loss, &d->told, &cover, epoch, true);

	if (r == 0)
		dev_loss_flushed(&d->loss, &cover);
	return r;
}

Test(dev_loss, is_told_once)
{
	struct device d;

	device_init(&d);
	cr_assert_eq(flush(&d, 1), 0);
	dev_loss_wrote(&d.loss, &d.told);
	dev_loss_found(&d.loss, 2);
	cr_assert_eq(flush(&d, 2), -EIO);
	cr_assert(dev_loss_unflushed(&d.loss), "a FLUSH that failed covers nothing");
	cr_assert_eq(flush(&d, 2), 0);
	cr_assert(!dev_loss_unflushed(&d.loss));
}

/* The server that answered had all; the loss of the next one is for the next FLUSH. */
Test(dev_loss, later_than_the_answer)
{
	struct device d;
	struct dev_cover cover;

	device_init(&d);
	dev_loss_wrote(&d.loss, &d.told);
	cover = begin(&d);
	dev_loss_found(&d.loss, 2);
	cr_assert_eq(dev_loss_tell(&d.loss, &d.told, &cover, 1, true), 0);
	cr_assert_eq(flush(&d, 2), -EIO);
}

/* Of two losses the first is older than the answer. */
Test(dev_loss, one_before_and_one_behind_the_answer)
{
	struct device d;
	struct dev_cover cover;

	device_init(&d);
	dev_loss_wrote(&d.loss, &d.told);
	cover = begin(&d);
	dev_loss_found(&d.loss, 2);
	dev_loss_found(&d.loss, 4);
	cr_assert_eq(dev_loss_tell(&d.loss, &d.told, &cover, 3, true), -EIO);
	cr_assert_eq(flush(&d, 4), -EIO, "the second loss is told, too");
	cr_assert_eq(flush(&d, 4), 0);
}

/* Counts go round after 2^32 losses, and what was told is told. */
Test(dev_loss, count_goes_round)
{
	struct device d;

	device_init(&d);
	atomic_store(&d.loss.losses, (unsigned long long)UINT32_MAX << 32 | 7);
	dev_told_init(&d.told, &d.loss);
	cr_assert_eq(flush(&d, 7), 0);
	dev_loss_found(&d.loss, 8);
	cr_assert_eq(flush(&d, 8), -EIO);
	cr_assert_eq(flush(&d, 8), 0);
}

Test(dev_loss, left_untold)
{
	struct device d;
	struct dev_told heir;
	struct dev_cover cover;

	device_init(&d);
	dev_loss_wrote(&d.loss, &d.told);
	dev_loss_found(&d.loss, 2);
	dev_told_fini(&d.told, &d.loss);
	dev_told_init(&heir, &d.loss);
	dev_cover_begin(&cover, &heir, &d.loss);
	cr_assert_eq(dev_loss_tell(&d.loss, &heir, &cover, 2, false), -EIO);
	cr_assert_eq(dev_loss_tell(&d.loss, &heir, &cover, 2, true), -EIO);
	dev_told_init(&d.told, &d.loss);
	cr_assert_eq(flush(&d, 2), 0);
}
