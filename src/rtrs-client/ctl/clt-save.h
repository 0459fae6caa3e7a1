/* SPDX-License-Identifier: BSD-3-Clause */
/* rtrsctl path save: the paths that were added at run time, as a file of the configuration, the
 * program's own of opt-file.h.  It takes its turn among the reloads, so that it sees the paths
 * before or behind a reload. */
#ifndef CLT_SAVE_H
#define CLT_SAVE_H

#include "clt-reload.h"

/* Write the paths of the session of @r that no file of the administrator has, and none that has
 * left.  @done(@arg) follows once, maybe from inside of this call.  Its text is a line for each
 * path that is saved, and for each that was removed and comes back, because a file of the
 * administrator has it; or, if nothing was written, the reasons.  Service thread. */
void clt_save_paths(struct clt_reload *r, clt_reload_done_fn *done, void *arg);

#endif
