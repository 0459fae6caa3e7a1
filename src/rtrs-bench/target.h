/* SPDX-License-Identifier: BSD-3-Clause */
/* The measured server and export: a session with a single attempt, which does not come back after a
 * loss.  Main thread; functions block. */
#ifndef TARGET_H
#define TARGET_H

#include "clt-run.h"
#include "dev.h"
#include "options.h"

struct target {
	struct clt_run run;		/* all IO is started on run.loop */
	struct dev_handle h;		/* h.dev NULL: the export could not be opened */
};

/* Connect to the server and open the export.  0, or -errno with @why. */
int target_open(struct target *t, const struct options *o, char *why, size_t len);
/* Check that @conf fits the export, and set conf->size, if the user has not.  0, or -EINVAL with
 * @why, which names the given options. */
int target_fit(const struct target *t, struct load_conf *conf, char *why, size_t len);
/* Close the export and the session.  No IO is in flight. */
void target_close(struct target *t);

#endif
