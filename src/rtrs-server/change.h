/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes of what a running server exports, one at a time: a change makes another configuration of
 * the one that holds, and has the plan between the two carried out (apply.h).  Main thread. */
#ifndef CHANGE_H
#define CHANGE_H

#include "apply.h"

/* The change holds; or @rc is -errno, and @err says in one line why nothing has changed. */
typedef void change_done_fn(void *arg, int rc, const char *err);

struct change {
	struct srv_conf *conf;		/* the caller's: the configuration that holds */
	struct apply *apply;		/* the caller's */
	/* the change that is under way; done is NULL: none */
	change_done_fn *done;
	void *arg;
	struct srv_conf wanted;		/* conf with other exports */
	struct plan plan;
};

void change_init(struct change *change, struct srv_conf *conf, struct apply *apply);
/* Export what @spec says, too.  @done(@arg) follows, maybe from inside this call. */
void change_export_add(struct change *change, const char *spec, change_done_fn *done, void *arg);
/* Do not export @name any more; a session that has the export open keeps it.  As above. */
void change_export_remove(struct change *change, const char *name, change_done_fn *done,
			  void *arg);

#endif
