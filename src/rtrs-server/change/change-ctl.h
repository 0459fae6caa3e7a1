/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes as commands of the control socket. */
#ifndef CHANGE_CTL_H
#define CHANGE_CTL_H

#include "srv-ctl.h"

/* With a struct change as srv_ctl.program. */
extern const struct srv_ctl_ops change_ctl_ops;

#endif
