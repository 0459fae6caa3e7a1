/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing.  Each call opens the driver, which may be missing, and closes it. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "number.h"
#include "ublk-kernel.h"
#include "ublk-disk.h"

int ublk_disk_probe(char why[UBLK_WHY])
{
	struct ublk_ctl *ctl;
	uint64_t features;
	int r = ublk_ctl_open(&ctl, &features, why, UBLK_WHY);

	if (r == 0)
		ublk_ctl_close(ctl);
	return r;
}

int ublk_disk_find(uint64_t mark, char why[UBLK_WHY])
{
	struct ublk_abi_dev info;
	struct ublk_ctl *ctl;
	uint64_t features;
	uint32_t id = 0;
	int r = ublk_ctl_open(&ctl, &features, why, UBLK_WHY);

	if (r < 0)
		return r;
	while ((r = ublk_ctl_next(&id)) == 0) {
		if (ublk_ctl_get(ctl, id, &info) == 0 && info.ours == mark)
			break;
		id++;
	}
	ublk_ctl_close(ctl);
	return r < 0 ? fmt_error(r, why, UBLK_WHY, "there is no such disk") : (int)id;
}

int ublk_disk_mark(int id, uint64_t *mark, char why[UBLK_WHY])
{
	struct ublk_abi_dev info;
	struct ublk_ctl *ctl;
	uint64_t features;
	int r = ublk_ctl_open(&ctl, &features, why, UBLK_WHY);

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
	uint64_t features;
	int r = ublk_ctl_open(&ctl, &features, why, UBLK_WHY);

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
