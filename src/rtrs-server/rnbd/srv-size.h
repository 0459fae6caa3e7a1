/* SPDX-License-Identifier: BSD-3-Clause */
/* How large exports are now: files and devices change while they are exported (doc/decisions.md
 * D17).  Control thread. */
#ifndef SRV_SIZE_H
#define SRV_SIZE_H

#include <stdbool.h>

struct export;
struct srv_rnbd;
struct srv_path;
struct srv_req;

void srv_size_init(struct srv_rnbd *rnbd);
/* Find out how large @ex is, not earlier than now.  True: export_size() tells it, or the storage
 * does not answer.  False: @then(@req) follows when one of the two is so, or the path of @req
 * fails.  @req is the control thread's. */
bool srv_size_ask(struct srv_req *req, struct export *ex, void (*then)(struct srv_req *req));
/* @path is failing: its requests wait no longer, and go on. */
void srv_size_path_failed(struct srv_path *path);

#endif
