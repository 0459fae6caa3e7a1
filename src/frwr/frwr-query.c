/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds out by trying which modes a device can do: a capability flag describes the kernel, not the
 * user library that has to carry the mode out.  Owns nothing that outlives the call; may block. */
#include <errno.h>
#include <stdlib.h>

#include "frwr-priv.h"
#include "util.h"

#define TRIAL_LEN 4096

/* Devices whose windows deviate from the specification, by vendor and part. */
static const struct quirk {
	uint32_t vendor, part;
	unsigned quirks;
} quirks[] = {
	/* soft-RoCE, at the latest Linux 6.12 */
	{ 0xffffff, 0, FRWR_QUIRK_MR_BOUNDS | FRWR_QUIRK_INV_FATAL | FRWR_QUIRK_RETRIED_BIND |
		       FRWR_QUIRK_INV_FLAG },
};

static void try_mw(struct fab_pd *pd, struct frwr_caps *caps, enum frwr_mode mode)
{
	enum ibv_mw_type type = mode == FRWR_MW2 ? IBV_MW_TYPE_2 : IBV_MW_TYPE_1;
	struct ibv_mw *mw;

	if (!(caps->dev.caps & FAB_CAP_MW(type))) {
		caps->rc[mode] = -EOPNOTSUPP;
		caps->why[mode] = mode == FRWR_MW2 ? "the device has no windows of type 2B" :
						     "the device has no windows of type 1";
		return;
	}
	mw = fab_alloc_mw(pd, type);
	if (!mw) {
		caps->rc[mode] = errno ? -errno : -ENOMEM;
		caps->why[mode] = "the device offers windows and did not give one";
		return;
	}
	fab_dealloc_mw(mw);
}

static void try_mr(struct fab_pd *pd, struct frwr_caps *caps)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	void *mem = calloc(1, TRIAL_LEN);
	struct ibv_mr *mr = mem ? fab_reg_mr(pd, mem, TRIAL_LEN, access) : NULL;
	uint32_t old;

	if (!mr) {
		caps->rc[FRWR_STATIC] = caps->rc[FRWR_SUSPEND] = caps->rc[FRWR_REREG] =
			errno ? -errno : -ENOMEM;
		caps->why[FRWR_STATIC] = caps->why[FRWR_SUSPEND] = caps->why[FRWR_REREG] =
			"the device did not register memory for a peer to write";
		free(mem);
		return;
	}
	if (!(caps->dev.caps & FAB_CAP_SUSPEND_MR)) {
		caps->rc[FRWR_SUSPEND] = -EOPNOTSUPP;
		caps->why[FRWR_SUSPEND] = "keys of the device cannot be closed for a while";
	}
	old = mr->rkey;
	if (caps->dev.caps & FAB_CAP_REREG_MR) {
		caps->rc[FRWR_REREG] = fab_rereg_mr(mr, mem, TRIAL_LEN, access);
		caps->why[FRWR_REREG] = "the device did not give registered memory another key";
		if (!caps->rc[FRWR_REREG] && mr->rkey == old)
			caps->rc[FRWR_REREG] = -EOPNOTSUPP;
	}
	fab_dereg_mr(mr);
	free(mem);
}

int frwr_query(struct fab_conn *conn, struct fab_pd *pd, struct frwr_caps *caps)
{
	int rc;

	*caps = (struct frwr_caps){ 0 };
	rc = fab_query_device(conn, &caps->dev);
	if (rc)
		return rc;
	try_mw(pd, caps, FRWR_MW2);
	try_mw(pd, caps, FRWR_MW1);
	try_mr(pd, caps);
	for (unsigned i = 0; i < ARRAY_SIZE(quirks); i++) {
		if (quirks[i].vendor == caps->dev.vendor_id &&
		    quirks[i].part == caps->dev.vendor_part_id)
			caps->quirks |= quirks[i].quirks;
	}
	return 0;
}
