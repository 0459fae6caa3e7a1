/* SPDX-License-Identifier: BSD-3-Clause */
/* The tcp provider's wire by hand, on a blocking socket.  What does not come in time ends the
 * case. */
#ifndef RAW_H
#define RAW_H

#include "hostile.h"
#include "tcp-frame.h"

/* Where the transport is another one, the case is skipped. */
int raw_connect(void);
/* All of it, or end the case. */
void raw_send(int fd, const void *buf, size_t len);
/* What the server takes before it hangs up. */
void raw_send_some(int fd, const void *buf, size_t len);
/* Send if the server takes it now: false when it does not, or has hung up. */
bool raw_try_send(int fd, const void *buf, size_t len);
/* The server hangs up, whatever it says before. */
void raw_expect_end(int fd);

/* The frame that CONNECT is, with a valid CONN_REQ for a path with one connection; its length. */
size_t raw_connect_frame(uint8_t *buf);
/* The same for INFO_REQ, with the @n-th name of this process. */
size_t raw_info_frame(uint8_t *buf, unsigned n);
#define RAW_FRAME_MAX 512

/* CONNECT and wait for ACCEPT. */
void raw_handshake(int fd);
void raw_expect_accept(int fd);
/* INFO_REQ; @chunks from INFO_RSP. */
void raw_info(int fd, struct rtrs_region *chunks);
void raw_info_named(int fd, unsigned n, struct rtrs_region *chunks);
void raw_expect_info(int fd, struct rtrs_region *chunks);

#endif
