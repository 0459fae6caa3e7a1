/* SPDX-License-Identifier: BSD-3-Clause */
/* The text of a path, as users write: "[SRC@]DST[:PORT]", with a transport in front or without, or
 * "unix:PATH". */
#ifndef CLT_ADDR_H
#define CLT_ADDR_H

#include "clt-sess.h"

/* A user's choice of the transport: "auto", "rdma", "tcp". */
enum clt_transport { CLT_TRANSPORT_AUTO, CLT_TRANSPORT_RDMA, CLT_TRANSPORT_TCP, CLT_TRANSPORTS };
extern const char *const clt_transport_names[CLT_TRANSPORTS];

#define CLT_ADDR_TEXT_MAX 1023		/* bytes: two hosts, a transport and a port */

/* Does @text name neither a transport nor a socket of this machine? */
bool clt_addr_is_open(const char *text);
/* Read @text into @addr, over @provider unless @text names another transport; a name stays one.  A
 * @text of more than CLT_ADDR_TEXT_MAX bytes is refused, unless "unix:PATH".  0, or -1 with the
 * reason in @err. */
int clt_addr_parse(const char *text, const struct fab_provider *provider,
		   struct clt_sess_addr *addr, char *err, size_t errlen);

/* Write to @buf the text of @addr with its transport, which reads back as @addr.  Returns @buf. */
const char *clt_addr_url(const struct clt_sess_addr *addr, char buf[CLT_ADDR_TEXT_MAX + 1]);

#endif
