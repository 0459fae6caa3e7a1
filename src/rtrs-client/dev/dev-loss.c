/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing; all state is the caller's, and atomic. */
#include <errno.h>
#include <stdint.h>

#include "dev-loss.h"

static unsigned count_of(uint64_t losses)
{
	return (unsigned)(losses >> 32);
}

static unsigned epoch_of(uint64_t losses)
{
	return (unsigned)losses;
}

/* Let *@seq be @to, unless it is that far already. */
static void advance(atomic_uint *seq, unsigned to)
{
	unsigned old = atomic_load(seq);

	while ((int)(to - old) > 0 && !atomic_compare_exchange_weak(seq, &old, to))
		;
}

void dev_loss_init(struct dev_loss *loss)
{
	atomic_store(&loss->write_seq, 0);
	atomic_store(&loss->flushed_seq, 0);
	atomic_store(&loss->losses, 0);
	atomic_store(&loss->left, false);
}

void dev_loss_found(struct dev_loss *loss, unsigned epoch)
{
	uint64_t old = atomic_load(&loss->losses);
	uint64_t next;

	do
		next = (uint64_t)(count_of(old) + 1) << 32 | epoch;
	while (!atomic_compare_exchange_weak(&loss->losses, &old, next));
}

bool dev_loss_unflushed(const struct dev_loss *loss)
{
	return atomic_load(&loss->write_seq) != atomic_load(&loss->flushed_seq);
}

void dev_told_init(struct dev_told *told, const struct dev_loss *loss)
{
	told->heir = atomic_load(&loss->left);
	atomic_store(&told->losses, count_of(atomic_load(&loss->losses)) - told->heir);
	atomic_store(&told->wrote, false);
}

void dev_told_fini(struct dev_told *told, struct dev_loss *loss)
{
	if (atomic_load(&told->wrote) && atomic_load(&told->losses) != count_of(atomic_load(&loss->losses)))
		atomic_store(&loss->left, true);
}

void dev_cover_begin(struct dev_cover *cover, const struct dev_told *told, const struct dev_loss *loss)
{
	cover->told = atomic_load(&told->losses);
	cover->write_seq = atomic_load(&loss->write_seq);
}

void dev_loss_wrote(struct dev_loss *loss, struct dev_told *told)
{
	if (!atomic_load_explicit(&told->wrote, memory_order_relaxed))
		atomic_store(&told->wrote, true);
	atomic_fetch_add(&loss->write_seq, 1);
}

int dev_loss_tell(struct dev_loss *loss, struct dev_told *told, const struct dev_cover *cover, unsigned epoch,
		  bool tells)
{
	uint64_t losses = atomic_load(&loss->losses);
	unsigned count = count_of(losses);

	/* The last loss came after the server had answered: it is for the next operation. */
	if (epoch < epoch_of(losses))
		count--;
	if ((int)(count - cover->told) <= 0)
		return 0;
	if (tells) {
		advance(&told->losses, count);
		if (told->heir)
			atomic_store(&loss->left, false);
	}
	return -EIO;
}

void dev_loss_flushed(struct dev_loss *loss, const struct dev_cover *cover)
{
	advance(&loss->flushed_seq, cover->write_seq);
}
