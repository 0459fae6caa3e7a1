/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing but the lock; all state is the caller's. */
#include <assert.h>
#include <errno.h>

#include "dev-loss.h"
#include "util.h"

/* Set *@seq to @to, unless *@seq is larger already. */
static void loss_advance(atomic_ullong *seq, unsigned long long to)
{
	unsigned long long old = atomic_load(seq);

	while (old < to && !atomic_compare_exchange_weak(seq, &old, to))
		;
}

void dev_loss_init(struct dev_loss *loss)
{
	pthread_mutex_init(&loss->lock, NULL);
	loss->kept = &loss->own;
	dev_loss_reset(loss);
}

void dev_loss_keep(struct dev_loss *loss, struct dev_loss_kept *kept)
{
	loss->kept = kept;
	dev_loss_reset(loss);
}

/* The handles of that process have left, as one handle leaves. */
void dev_loss_resume(struct dev_loss *loss, struct dev_loss_kept *kept)
{
	loss->kept = kept;
	loss->left = 1;
	loss->left_write = atomic_load(&kept->write_seq);
	loss->count = atomic_load(&kept->untold);
	loss->owed = loss->count ? loss->left : 0;
}

void dev_loss_reset(struct dev_loss *loss)
{
	atomic_store(&loss->kept->write_seq, 0);
	atomic_store(&loss->kept->flushed_seq, 0);
	atomic_store(&loss->kept->untold, 0);
	loss->count = loss->count_before = loss->reported = 0;
	loss->epoch = 0;
	loss->left = loss->left_write = 0;
	loss->owed = loss->paid = 0;
}

void dev_loss_fini(struct dev_loss *loss)
{
	pthread_mutex_destroy(&loss->lock);
}

void dev_loss_found(struct dev_loss *loss, unsigned epoch)
{
	pthread_mutex_lock(&loss->lock);
	/* A late write may find a loss of an earlier epoch. */
	if (epoch > loss->epoch) {
		loss->epoch = epoch;
		loss->count_before = loss->count;
	}
	loss->count++;
	atomic_store(&loss->kept->untold, 1);
	if (loss->left_write > atomic_load(&loss->kept->flushed_seq))
		loss->owed = loss->left;
	pthread_mutex_unlock(&loss->lock);
}

bool dev_loss_unflushed(const struct dev_loss *loss)
{
	return atomic_load(&loss->kept->write_seq) != atomic_load(&loss->kept->flushed_seq);
}

void dev_told_init(struct dev_told *told, struct dev_loss *loss)
{
	atomic_store(&told->wrote, 0);
	told->due = 0;
	told->covers = told->old = told->errors = 0;
	pthread_mutex_lock(&loss->lock);
	told->left = loss->left;
	told->count = loss->count - (loss->owed > loss->paid);
	pthread_mutex_unlock(&loss->lock);
}

/* @loss is locked. */
static void told_settle(struct dev_told *told, struct dev_loss *loss)
{
	if (told->old || told->errors)
		return;
	loss->reported = MAX(loss->reported, told->due);
	told->due = 0;
	if (loss->reported == loss->count)
		atomic_store(&loss->kept->untold, 0);
}

void dev_told_arrived(struct dev_told *told, struct dev_loss *loss)
{
	pthread_mutex_lock(&loss->lock);
	told->errors -= told->errors > 0;
	told_settle(told, loss);
	pthread_mutex_unlock(&loss->lock);
}

void dev_told_fini(struct dev_told *told, struct dev_loss *loss)
{
	uint64_t wrote = atomic_load(&told->wrote);

	pthread_mutex_lock(&loss->lock);
	told->errors = 0;
	told_settle(told, loss);
	if (wrote && told->count != loss->count) {
		loss->owed = ++loss->left;
	} else if (wrote > atomic_load(&loss->kept->flushed_seq)) {
		loss->left++;
		loss->left_write = MAX(loss->left_write, wrote);
	}
	pthread_mutex_unlock(&loss->lock);
}

void dev_cover_begin(struct dev_cover *cover, struct dev_told *told, struct dev_loss *loss)
{
	pthread_mutex_lock(&loss->lock);
	cover->told = told->count;
	told->covers++;
	pthread_mutex_unlock(&loss->lock);
	cover->write_seq = atomic_load(&loss->kept->write_seq);
}

/* @loss is locked. */
static void cover_end(const struct dev_cover *cover, struct dev_told *told)
{
	assert(told->covers);
	told->covers--;
	told->old -= cover->told < told->count;
}

void dev_cover_fail(const struct dev_cover *cover, struct dev_told *told, struct dev_loss *loss)
{
	pthread_mutex_lock(&loss->lock);
	cover_end(cover, told);
	told_settle(told, loss);
	pthread_mutex_unlock(&loss->lock);
}

void dev_loss_wrote(struct dev_loss *loss, struct dev_told *told)
{
	loss_advance(&told->wrote, atomic_fetch_add(&loss->kept->write_seq, 1) + 1);
}

int dev_loss_tell(struct dev_loss *loss, struct dev_told *told, const struct dev_cover *cover,
		  unsigned epoch, bool tells)
{
	uint64_t count;
	bool fails;

	pthread_mutex_lock(&loss->lock);
	/* A loss found after the server's answer is for the next operation. */
	count = epoch < loss->epoch ? loss->count_before : loss->count;
	fails = count > cover->told;
	cover_end(cover, told);
	if (fails && tells) {
		if (count > told->count)
			told->old = told->covers;
		told->count = MAX(told->count, count);
		loss->paid = MAX(loss->paid, told->left);
		told->due = told->count;
		told->errors++;
	}
	told_settle(told, loss);
	pthread_mutex_unlock(&loss->lock);
	return fails ? -EIO : 0;
}

void dev_loss_flushed(struct dev_loss *loss, const struct dev_cover *cover)
{
	loss_advance(&loss->kept->flushed_seq, cover->write_seq);
}
