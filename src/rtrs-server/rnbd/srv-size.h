/* SPDX-License-Identifier: BSD-3-Clause */
/* The present sizes of exports, and what their paths name: files and devices change while exported
 * (doc/decisions.md D17).  An export that nobody has open, and whose path names other storage, is
 * opened again (export-retry.h).  Control thread. */
#ifndef SRV_SIZE_H
#define SRV_SIZE_H

#include <stdbool.h>
#include <stdint.h>

#include "export.h"
#include "list.h"

struct srv_rnbd;
struct srv_path;
struct srv_req;

/* A wait for an answer about an export. */
struct srv_size_waiter {
	enum export_question question;
	struct srv_path *path;		/* whose failure ends the wait; NULL: none */
	bool spares_openers;		/* leave a smaller size in ex->found while clients have the
					 * export open */
	void (*then)(struct srv_size_waiter *w);
	/* private */
	struct list link;
	struct export *ex;
	unsigned turn;
	uint64_t deadline_ms;
};

/* Begin with no request waiting. */
void srv_size_init(struct srv_rnbd *rnbd);
/* Learn what @ex answers to @w->question now or later.  True: export_size(), or export.named, has
 * the answer, or the storage does not answer.  False: @w->then(@w) follows when one of the two is
 * so, or @w->path fails.  @ex may be off the list of exports then. */
bool srv_size_ask(struct srv_rnbd *rnbd, struct srv_size_waiter *w, struct export *ex);
/* Have @req wait for the answer of @ex to @question, as srv_size_ask() says. */
bool srv_size_ask_for(struct srv_req *req, struct export *ex,
		      enum export_question question,
		      void (*then)(struct srv_size_waiter *w));
/* True if the storage of @ex has answered @w, which waited. */
bool srv_size_is_known(const struct srv_size_waiter *w);
/* End the waits of @path, which is failing; each goes on. */
void srv_size_path_failed(struct srv_path *path);

#endif
