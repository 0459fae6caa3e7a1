/* SPDX-License-Identifier: BSD-3-Clause */
/* A loop (loop.h) around poll(2), on a thread of its own. */
#ifndef BASE_LOOP_POLL_H
#define BASE_LOOP_POLL_H

#include "loop.h"

/* Start the thread @name.  0 or -errno. */
int loop_poll_create(const char *name, struct loop **out);
/* End the thread when what was posted before has run, and free the loop.  What still waits is
 * forgotten.  Not on the loop's thread. */
void loop_poll_destroy(struct loop *loop);

#endif
