/* SPDX-License-Identifier: BSD-3-Clause */
#include "rnbd-msg.h"
