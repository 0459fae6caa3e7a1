/* SPDX-License-Identifier: BSD-3-Clause */
/* The server and the export that are measured: a session of one attempt, that does not come back
 * when it is lost.  Main thread; functions block. */
#ifndef TARGET_H
#define TARGET_H

#include "clt-run.h"
#include "dev.h"
#include "options.h"

struct target {
	struct clt_run run;		/* all IO is started on its loop */
	struct dev_handle h;		/* h.dev NULL: the export could not be opened */
};

/* 0, or -errno with @why. */
int target_open(struct target *t, const struct options *o, char *why, size_t len);
/* Fill in what @conf leaves open, and see that it fits the export.  0, or -EINVAL with @why, which
 * names options that were given. */
int target_fit(const struct target *t, struct load_conf *conf, char *why, size_t len);
/* No IO is in flight. */
void target_close(struct target *t);

#endif
