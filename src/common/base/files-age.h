/* SPDX-License-Identifier: BSD-3-Clause */
/* How long ago this program has read its configuration and its keys: a file that was changed since
 * waits for a reload.  Any thread. */
#ifndef BASE_FILES_AGE_H
#define BASE_FILES_AGE_H

#include <stdint.h>

/* The files are about to be read at the start, or a reload has taken effect. */
void files_age_reset(void);
/* Nanoseconds since the last reset. */
uint64_t files_age_ns(void);

#endif
