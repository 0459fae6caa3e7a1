/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing.  Calls for any process open the driver, which may be missing, and close it. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "clt-export.h"
#include "number.h"
#include "ublk-dev.h"
#include "ublk-kernel.h"
#include "util.h"

/* ---- what the disk is ---- */

static uint8_t shift_of(uint64_t bytes)
{
	return (uint8_t)ceil_log2(bytes);
}

void ublk_disk_describe(const struct dev *dev, uint32_t io_bytes, struct ublk_abi_params *p)
{
	const struct rnbd_dev_info *info = dev_info(dev);
	uint32_t physical = MAX(info->logical_block_size, info->physical_block_size);

	if (!is_pow2(physical))
		physical = info->logical_block_size;
	*p = (struct ublk_abi_params){
		.types = UBLK_PARAM_BASIC,
		.basic = {
			.logical_shift = shift_of(info->logical_block_size),
			.physical_shift = shift_of(physical),
			.io_min_shift = shift_of(physical),
			.io_opt_shift = shift_of(clt_export_block(dev)),
			.max_sectors = io_bytes / RNBD_SECTOR_SIZE,
			.sectors = dev_size(dev) / RNBD_SECTOR_SIZE,
		},
	};
	if (dev_mode(dev) == RNBD_ACCESS_RO)
		p->basic.attrs |= UBLK_ABI_ATTR_READ_ONLY;
	if (info->rotational)
		p->basic.attrs |= UBLK_ABI_ATTR_ROTATIONAL;
	if (info->writeback)
		p->basic.attrs |= UBLK_ABI_ATTR_WRITE_CACHE;
	if (info->writeback && info->fua)
		p->basic.attrs |= UBLK_ABI_ATTR_FUA;
	if (!dev_can_discard(dev) && !dev_can_zero(dev))
		return;
	p->types |= UBLK_PARAM_DISCARD;
	p->discard = (struct ublk_abi_discard){
		.alignment = info->discard_alignment,
		/* not 0, without discards, too */
		.granularity = MAX(info->discard_granularity, (uint32_t)info->logical_block_size),
		.max_sectors = info->max_discard_sectors,
		.max_zeroes_sectors = dev_can_zero(dev) ? info->max_write_zeroes_sectors : 0,
		.max_segments = 1,
	};
}

int ublk_disk_can(const struct dev *dev, char why[UBLK_WHY])
{
	uint32_t block = dev_info(dev)->logical_block_size;

	if (block <= UBLK_BLOCK_MAX)
		return 0;
	return fmt_error(-EINVAL, why, UBLK_WHY, "export '%.64s' has blocks of %u bytes: a disk of "
			 "this kernel has %u at most", dev_name(dev), block, UBLK_BLOCK_MAX);
}

int ublk_disk_is(const struct dev *dev, uint32_t io_bytes, const struct ublk_abi_params *disk,
		 char why[UBLK_WHY])
{
	const struct ublk_abi_basic *is = &disk->basic;
	const char *name = dev_name(dev);
	struct ublk_abi_params p;

	ublk_disk_describe(dev, io_bytes, &p);
	if (p.basic.sectors < is->sectors)
		snprintf(why, UBLK_WHY, "export '%.64s' has %llu bytes, and the disk %llu: it has "
			 "shrunk, or is another one", name, (unsigned long long)dev_size(dev),
			 (unsigned long long)is->sectors * RNBD_SECTOR_SIZE);
	else if (p.basic.logical_shift > is->logical_shift)
		snprintf(why, UBLK_WHY, "export '%.64s' has blocks of %u bytes, and the disk %u",
			 name, 1u << p.basic.logical_shift, 1u << is->logical_shift);
	else if (p.basic.attrs & ~is->attrs & UBLK_ABI_ATTR_WRITE_CACHE)
		snprintf(why, UBLK_WHY, "export '%.64s' has a write cache, and the disk has none",
			 name);
	else if (is->attrs & ~p.basic.attrs & UBLK_ABI_ATTR_FUA)
		snprintf(why, UBLK_WHY, "export '%.64s' has no FUA any more, and the disk has",
			 name);
	else if (p.basic.attrs & ~is->attrs & UBLK_ABI_ATTR_READ_ONLY)
		snprintf(why, UBLK_WHY, "export '%.64s' is read-only, and the disk is not", name);
	else
		return 0;
	return -EMEDIUMTYPE;
}

/* ---- for any process ---- */

static int disk_open(struct ublk_ctl **ctl, char why[UBLK_WHY])
{
	uint64_t features;

	return ublk_ctl_open(ctl, &features, why, UBLK_WHY);
}

int ublk_disk_probe(char why[UBLK_WHY])
{
	struct ublk_ctl *ctl;
	int r = disk_open(&ctl, why);

	if (r == 0)
		ublk_ctl_close(ctl);
	return r;
}

int ublk_disk_find(uint64_t *mark, uint64_t mask, char why[UBLK_WHY])
{
	struct ublk_abi_dev info;
	struct ublk_ctl *ctl;
	uint32_t id = 0;
	int r = disk_open(&ctl, why);

	if (r < 0)
		return r;
	while ((r = ublk_ctl_next(&id)) == 0) {
		if (ublk_ctl_get(ctl, id, &info) == 0 && (info.ours & mask) == (*mark & mask))
			break;
		id++;
	}
	ublk_ctl_close(ctl);
	if (r < 0)
		return fmt_error(r, why, UBLK_WHY, "there is no such disk");
	*mark = info.ours;
	return (int)id;
}

int ublk_disk_mark(int id, uint64_t *mark, char why[UBLK_WHY])
{
	struct ublk_abi_dev info;
	struct ublk_ctl *ctl;
	int r = disk_open(&ctl, why);

	if (r < 0)
		return r;
	r = ublk_ctl_get(ctl, (uint32_t)id, &info);
	ublk_ctl_close(ctl);
	if (r < 0)
		return fmt_error(r, why, UBLK_WHY, "disk %d: %s", id, strerror(-r));
	*mark = info.ours;
	return 0;
}

int ublk_disk_remove(int id, char why[UBLK_WHY])
{
	struct ublk_ctl *ctl;
	int r = disk_open(&ctl, why);

	if (r < 0)
		return r;
	r = ublk_ctl_stop(ctl, (uint32_t)id);
	if (r == 0)
		r = ublk_ctl_del(ctl, (uint32_t)id);
	ublk_ctl_close(ctl);
	if (r == -ENODEV)
		return fmt_error(r, why, UBLK_WHY, "there is no disk %d", id);
	return r < 0 ? fmt_error(r, why, UBLK_WHY, "disk %d cannot be removed: STOP_DEV: %s", id,
				 strerror(-r)) : 0;
}
