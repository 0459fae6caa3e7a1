/* SPDX-License-Identifier: BSD-3-Clause */
/* Values of the options of metrics, of all programs.  Constant. */
#ifndef METRIC_CONF_H
#define METRIC_CONF_H

#include "metric-host.h"		/* metric_host_check() */
#include "metric-sock.h"		/* metric_sock_check() */

/* Is there a status page beside metrics over HTTP? */
enum metric_page_wanted { METRIC_PAGE_NO, METRIC_PAGE_YES, METRIC_PAGE_N };
/* "no", "yes". */
extern const char *const metric_page_names[METRIC_PAGE_N];

#endif
