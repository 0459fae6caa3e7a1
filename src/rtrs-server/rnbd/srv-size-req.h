/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that wait for an answer about an export (srv-size.h).  Control thread. */
#ifndef SRV_SIZE_REQ_H
#define SRV_SIZE_REQ_H

#include "srv-rnbd-state.h"
#include "srv-size.h"

/* The request that waits by @w. */
static inline struct srv_req *srv_sized_req(struct srv_size_waiter *w)
{
	return &container_of(w, struct srv_rnbd_req, size)->base;
}

/* Have @req wait for the answer of @ex to @question, as srv_size_ask() says. */
static inline bool srv_size_ask_for(struct srv_req *req, struct export *ex,
				    enum export_question question,
				    void (*then)(struct srv_size_waiter *w))
{
	struct srv_size_waiter *w = &srv_rnbd_req(req)->size;

	w->question = question;
	w->path = req->path;
	w->then = then;
	return srv_size_ask(srv_rnbd(req->path->srv), w, ex);
}

#endif
