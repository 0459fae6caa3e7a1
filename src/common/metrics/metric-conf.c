/* SPDX-License-Identifier: BSD-3-Clause */
#include "metric-conf.h"

const char *const metric_page_names[METRIC_PAGE_N] = { "no", "yes" };
