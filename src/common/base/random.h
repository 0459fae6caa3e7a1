/* SPDX-License-Identifier: BSD-3-Clause */
/* The only source of chance; the simulation brings its own, from a seed.  Any thread. */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <stddef.h>

/* Unpredictable bytes, at most 256, for uuids and jitter. */
void random_bytes(void *buf, size_t len);

#endif
