/* SPDX-License-Identifier: BSD-3-Clause */
/* The status page: metric-page.html, which the build makes a constant. */
#ifndef METRIC_PAGE_H
#define METRIC_PAGE_H

/* The page.  Each METRIC_PAGE_NONCE stands for the nonce of an answer, of the same length. */
extern const char metric_page[];

#define METRIC_PAGE_NONCE "NONCENONCENONCENONCENONCENONCE00"

#endif
