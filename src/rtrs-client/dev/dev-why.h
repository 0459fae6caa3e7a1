/* SPDX-License-Identifier: BSD-3-Clause */
/* Words for an OPEN that has failed.  Pure: any thread, no memory. */
#ifndef DEV_WHY_H
#define DEV_WHY_H

#include "rnbd-proto.h"

/* Why an OPEN failed with @status, a negative errno, for @refusal, or RNBD_REFUSES_NOT of a server
 * that gives no reason; and what a user can do.  Without a full stop. */
const char *dev_why(int status, enum rnbd_refusal refusal);

#endif
