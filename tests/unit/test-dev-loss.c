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

/* An epoch that is over does not make later losses older than they are. */
Test(dev_loss, found_in_an_epoch_that_is_over)
{
	struct device d;
	struct dev_cover cover;

	device_init(&d);
	dev_loss_wrote(&d.loss, &d.told);
	dev_loss_found(&d.loss, 4);
	cover = begin(&d);
	dev_loss_found(&d.loss, 2);
	cr_assert_eq(dev_loss_tell(&d.loss, &d.told, &cover, 3, true), 0);
	cr_assert_eq(flush(&d, 4), -EIO);
	cr_assert_eq(flush(&d, 4), 0);
}

/* Each late write of an epoch is a loss; an answer of before is older than all of them. */
Test(dev_loss, two_losses_of_an_epoch)
{
	struct device d;
	struct dev_cover cover;

	device_init(&d);
	dev_loss_wrote(&d.loss, &d.told);
	cover = begin(&d);
	dev_loss_found(&d.loss, 2);
	dev_loss_found(&d.loss, 2);
	cr_assert_eq(dev_loss_tell(&d.loss, &d.told, &cover, 1, true), 0);
	cr_assert_eq(flush(&d, 2), -EIO);
	cr_assert_eq(flush(&d, 2), 0);
}

/* ---- handles that are closed before they were told ---- */

/* What the next FLUSH of a handle says that opens now, and is closed behind it. */
static int flush_of_an_heir(struct device *d)
{
	struct dev_told heir;
	struct dev_cover cover;
	int r;

	dev_told_init(&heir, &d->loss);
	dev_cover_begin(&cover, &heir, &d->loss);
	r = dev_loss_tell(&d->loss, &heir, &cover, d->loss.epoch, true);
	dev_told_fini(&heir, &d->loss);
	return r;
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
	dev_cover_begin(&cover, &heir, &d.loss);
	cr_assert_eq(dev_loss_tell(&d.loss, &heir, &cover, 2, true), -EIO);
	dev_told_init(&d.told, &d.loss);
	cr_assert_eq(flush(&d, 2), 0);
}

/* The loss is found when the handle has gone. */
Test(dev_loss, left_unflushed)
{
	struct device d;

	device_init(&d);
	dev_loss_wrote(&d.loss, &d.told);
	dev_told_fini(&d.told, &d.loss);
	cr_assert_eq(flush_of_an_heir(&d), 0, "nothing is lost yet");
	dev_loss_found(&d.loss, 2);
	cr_assert_eq(flush_of_an_heir(&d), -EIO);
	cr_assert_eq(flush_of_an_heir(&d), 0);
}

/* A handle that opens between the leaving and the finding is told as each handle is, and pays. */
Test(dev_loss, left_unflushed_and_came_back_before_it_was_found)
{
	struct device d;

	device_init(&d);
	dev_loss_wrote(&d.loss, &d.told);
	dev_told_fini(&d.told, &d.loss);
	dev_told_init(&d.told, &d.loss);
	dev_loss_found(&d.loss, 2);
	cr_assert_eq(flush(&d, 2), -EIO);
	cr_assert_eq(flush_of_an_heir(&d), 0);
}

/* Handles whose writes were flushed, by whomever, leave nothing. */
Test(dev_loss, left_flushed)
{
	struct device d;
	struct dev_told other;

	device_init(&d);
	dev_told_init(&other, &d.loss);
	dev_loss_wrote(&d.loss, &other);
	cr_assert_eq(flush(&d, 1), 0);
	dev_told_fini(&other, &d.loss);
	dev_loss_wrote(&d.loss, &d.told);
	dev_loss_found(&d.loss, 2);
	cr_assert_eq(flush_of_an_heir(&d), 0);

	device_init(&d);
	dev_loss_wrote(&d.loss, &d.told);
	dev_told_fini(&d.told, &d.loss);
	dev_told_init(&d.told, &d.loss);
	cr_assert_eq(flush(&d, 1), 0);
	dev_loss_found(&d.loss, 2);
	cr_assert_eq(flush_of_an_heir(&d), 0);
}

/* One that leaves with nothing to lose makes the debt of another one no younger. */
Test(dev_loss, left_flushed_behind_one_unflushed)
{
	struct device d;
	struct dev_told flushed;

	device_init(&d);
	dev_told_init(&flushed, &d.loss);
	dev_loss_wrote(&d.loss, &flushed);
	cr_assert_eq(flush(&d, 1), 0);
	dev_loss_wrote(&d.loss, &d.told);
	dev_told_fini(&d.told, &d.loss);
	dev_told_init(&d.told, &d.loss);
	dev_told_fini(&flushed, &d.loss);
	dev_loss_found(&d.loss, 2);
	cr_assert_eq(flush(&d, 2), -EIO);
	cr_assert_eq(flush_of_an_heir(&d), 0);
}

/* A handle pays for those that left before it opened, not for one that left behind that. */
Test(dev_loss, each_debt_has_its_heir)
{
	struct device d;
	struct dev_told first, heir;
	struct dev_cover cover;

	device_init(&d);
	dev_told_init(&first, &d.loss);
	dev_loss_wrote(&d.loss, &first);
	dev_loss_wrote(&d.loss, &d.told);
	dev_loss_found(&d.loss, 2);
	dev_told_fini(&first, &d.loss);
	dev_told_init(&heir, &d.loss);
	dev_told_fini(&d.told, &d.loss);
	dev_cover_begin(&cover, &heir, &d.loss);
	cr_assert_eq(dev_loss_tell(&d.loss, &heir, &cover, 2, true), -EIO);
	cr_assert_eq(flush_of_an_heir(&d), -EIO);
	cr_assert_eq(flush_of_an_heir(&d), 0);
}

Test(dev_loss, new_life)
{
	struct device d;

	device_init(&d);
	dev_loss_wrote(&d.loss, &d.told);
	dev_loss_found(&d.loss, 2);
	dev_told_fini(&d.told, &d.loss);
	dev_loss_reset(&d.loss);
	cr_assert(!dev_loss_unflushed(&d.loss));
	cr_assert_eq(flush_of_an_heir(&d), 0);
}

/* ---- the next process (client-kept.h) ---- */

static struct dev_loss_kept kept;

static void kept_init(struct device *d)
{
	kept = (struct dev_loss_kept){ 0 };
	dev_loss_init(&d->loss);
	dev_loss_keep(&d->loss, &kept);
	dev_told_init(&d->told, &d->loss);
}

/* The process of @d is killed: the device and the handle of the next one. */
static void next_process(struct device *d)
{
	dev_loss_fini(&d->loss);
	dev_loss_init(&d->loss);
	dev_loss_resume(&d->loss, &kept);
	dev_told_init(&d->told, &d->loss);
}

Test(dev_loss, next_process_knows_what_is_unflushed)
{
	struct device d;

	kept_init(&d);
	dev_loss_wrote(&d.loss, &d.told);
	next_process(&d);
	cr_assert(dev_loss_unflushed(&d.loss));
	cr_assert_eq(flush(&d, 1), 0);
	next_process(&d);
	cr_assert(!dev_loss_unflushed(&d.loss));
	cr_assert_eq(flush(&d, 1), 0);
}

/* Found before a handle opens, and behind it. */
Test(dev_loss, next_process_finds_it)
{
	struct device d;

	for (unsigned before = 0; before < 2; before++) {
		kept_init(&d);
		dev_loss_wrote(&d.loss, &d.told);
		next_process(&d);
		dev_loss_found(&d.loss, 2);
		if (before)
			dev_told_init(&d.told, &d.loss);
		cr_assert_eq(flush(&d, 2), -EIO);
		dev_told_arrived(&d.told, &d.loss);
		cr_assert_eq(flush(&d, 2), 0);
		next_process(&d);
		cr_assert_eq(flush(&d, 1), 0);
	}
}

/* Until the user has the answer. */
Test(dev_loss, next_process_tells_once_more)
{
	struct device d;

	kept_init(&d);
	dev_loss_wrote(&d.loss, &d.told);
	dev_loss_found(&d.loss, 2);
	next_process(&d);
	cr_assert_eq(flush(&d, 1), -EIO);
	cr_assert_eq(flush(&d, 1), 0);
	next_process(&d);
	cr_assert_eq(flush(&d, 1), -EIO);
	dev_told_arrived(&d.told, &d.loss);
	next_process(&d);
	cr_assert_eq(flush(&d, 1), 0);
}

/* Operations that were under way when one was told of a loss: their user sends them again. */
Test(dev_loss, next_process_tells_all_that_were_under_way)
{
	struct dev_cover first, second, third;
	struct device d;

	kept_init(&d);
	dev_loss_wrote(&d.loss, &d.told);
	first = begin(&d);
	second = begin(&d);
	third = begin(&d);
	dev_loss_found(&d.loss, 2);
	cr_assert_eq(dev_loss_tell(&d.loss, &d.told, &first, 2, true), -EIO);
	dev_told_arrived(&d.told, &d.loss);
	cr_assert_eq(kept.untold, 1, "two are under way");
	cr_assert_eq(dev_loss_tell(&d.loss, &d.told, &second, 2, true), -EIO);
	dev_cover_fail(&third, &d.told, &d.loss);
	cr_assert_eq(kept.untold, 1, "an error is on its way");
	begin(&d);		/* behind them */
	dev_told_arrived(&d.told, &d.loss);
	cr_assert_eq(kept.untold, 0);
}

/* An error that tells of no loss arrives, too. */
Test(dev_loss, other_errors_arrive)
{
	struct dev_cover cover;
	struct device d;

	kept_init(&d);
	dev_loss_wrote(&d.loss, &d.told);
	cover = begin(&d);
	dev_cover_fail(&cover, &d.told, &d.loss);
	dev_told_arrived(&d.told, &d.loss);
	dev_loss_found(&d.loss, 2);
	cr_assert_eq(kept.untold, 1);
	cr_assert_eq(flush(&d, 2), -EIO);
	cr_assert_eq(kept.untold, 1);
	dev_told_fini(&d.told, &d.loss);
	cr_assert_eq(kept.untold, 0, "the handle was closed in good order");
}
