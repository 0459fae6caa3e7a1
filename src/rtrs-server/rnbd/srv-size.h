/* SPDX-License-Identifier: BSD-3-Clause */
/* The present sizes of exports: files and devices change while exported (doc/decisions.md D17).
 * Control thread. */
#ifndef SRV_SIZE_H
#define SRV_SIZE_H

#include <stdbool.h>

struct export;
struct srv_rnbd;
struct srv_path;
struct srv_req;

/* Begin with no request waiting. */
void srv_size_init(struct srv_rnbd *rnbd);
/* Learn the size that @ex has now or later.  True: export_size() has this size, or the storage
 * does not answer.  False: @then(@req) follows when one of the two is so, or the path of @req
 * fails.  @req belongs to the control thread. */
bool srv_size_ask(struct srv_req *req, struct export *ex, void (*then)(struct srv_req *req));
/* End the waiting of the requests of @path, which is failing; each goes on. */
void srv_size_path_failed(struct srv_path *path);

#endif
