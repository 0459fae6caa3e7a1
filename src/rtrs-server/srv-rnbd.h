/* SPDX-License-Identifier: BSD-3-Clause */
/* RNBD as the protocol above RTRS (doc/protocol.md 8). */
#ifndef SRV_RNBD_H
#define SRV_RNBD_H

#include "srv-ops.h"

extern const struct srv_ops srv_rnbd_ops;

#endif
