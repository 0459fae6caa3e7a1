/* SPDX-License-Identifier: BSD-3-Clause */
/* The present sizes of exports: files and devices change while exported (doc/decisions.md D17).
 * Control thread. */
#ifndef SRV_SIZE_H
#define SRV_SIZE_H

#include <stdbool.h>
#include <stdint.h>

#include "list.h"

struct export;
struct srv_rnbd;
struct srv_path;

/* A wait for the size of an export. */
struct srv_size_waiter {
	struct srv_path *path;		/* whose failure ends the wait; NULL: none */
	void (*then)(struct srv_size_waiter *w);
	/* private */
	struct list link;
	struct export *ex;
	unsigned turn;
	uint64_t deadline_ms;
};

/* Begin with no request waiting. */
void srv_size_init(struct srv_rnbd *rnbd);
/* Learn the size that @ex has now or later.  True: export_size() has this size, or the storage
 * does not answer.  False: @w->then(@w) follows when one of the two is so, or @w->path fails. */
bool srv_size_ask(struct srv_rnbd *rnbd, struct srv_size_waiter *w, struct export *ex);
/* True if the storage of @ex has answered @w, which waited. */
bool srv_size_is_known(const struct srv_size_waiter *w);
/* End the waits of @path, which is failing; each goes on. */
void srv_size_path_failed(struct srv_path *path);

#endif
