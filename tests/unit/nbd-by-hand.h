/* SPDX-License-Identifier: BSD-3-Clause */
/* An NBD client by hand for unit tests, on a rig (nbd-rig.h) with 256 MiB for data.  Each call that
 * sends runs the rig.  One thread. */
#ifndef TESTS_NBD_BY_HAND_H
#define TESTS_NBD_BY_HAND_H

#include <sys/types.h>

#include "nbd-rig.h"

extern struct rig rig;
extern unsigned nlines;			/* of the log */
extern char last_line[256];

/* Begin and end a test: at its end every connection is gone. */
void by_hand_begin(void);
void by_hand_end(void);

/* Send all of @bytes, which the socket has room for. */
void say(int fd, const void *bytes, size_t len);
/* Take all that has come.  Returns the bytes; -1: the end of the stream, and nothing in front. */
ssize_t hear(int fd, void *buf, size_t room);
/* Send the flags of a client: fixed newstyle, no zeroes. */
void greet(int fd);
/* Write an option with @len bytes of @data into @buf.  Returns its bytes. */
size_t put_option(uint8_t *buf, uint32_t option, const void *data, uint32_t len);
/* Write the data of GO, for @name and no information.  Returns its bytes. */
uint32_t put_go(uint8_t *buf, const char *name);
/* A connection to the export @name in the transmission phase, with simple replies. */
int serve(const char *name);
/* The header of a request. */
struct nbd_msg_request request(uint16_t type, uint64_t cookie, uint64_t off, uint32_t len);
/* Send a header. */
void ask(int fd, uint16_t type, uint64_t cookie, uint64_t off, uint32_t len);
/* The next reply is @cookie's, with @error. */
void expect_reply(int fd, uint64_t cookie, uint32_t error);
/* The server has ended the connection, without a word. */
void expect_end(int fd);
/* Close @fd, and let the server see the end. */
void leave(int fd);

#endif
