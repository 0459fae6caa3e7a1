/* SPDX-License-Identifier: BSD-3-Clause */
/* A client's end of a byte stream, for tests of programs that have sockets: one end of a socket
 * pair.  An actor moves bytes in pieces, with rests between, and can close the stream behind any
 * byte.  Fibers put bytes and wait for bytes.
 *
 * The kernel decides how many bytes a socket takes: a seed replays on kernels that agree. */
#ifndef SIM_STREAM_H
#define SIM_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim-core.h"

struct sim_stream_conf {
	uint32_t piece;			/* most bytes of one move; 0: as many as there are */
	uint32_t rest_us;		/* most time between two moves */
	uint64_t send_max, receive_max;	/* bytes; then the client closes the stream */
	bool half;			/* behind send_max the client only says that it sends no
					 * more, and goes on receiving */
	uint64_t split;			/* bytes; there a move ends, and the next one comes
					 * @split_us later; 0: nowhere */
	uint32_t split_us;
	unsigned buffer;		/* SO_SNDBUF of the server's end; 0: the kernel's */
};

/* As fast as the socket, without an end. */
extern const struct sim_stream_conf sim_stream_defaults;

/* The side that has closed the stream. */
enum sim_stream_cause {
	SIM_STREAM_NOBODY,
	SIM_STREAM_CLIENT,
	SIM_STREAM_SERVER,
};

/* Bytes in a row: from @pos to @end are there. */
struct sim_bytes {
	uint8_t *mem;
	size_t pos, end, room;
};

struct sim_stream {
	struct sim_stream_conf conf;
	int fd;				/* -1: closed */
	struct sim_actor actor;
	struct sim_event rest;
	enum { SIM_STREAM_MOVES, SIM_STREAM_RESTS, SIM_STREAM_ENDED } state;
	enum { SIM_STREAM_SENDS, SIM_STREAM_IS_SHUT } out_state;
	enum sim_stream_cause cause;
	struct sim_bytes out, in;	/* put and not sent; received and not taken */
	uint64_t put, sent, received;	/* bytes, ever */
};

/* Begin @s; the actor belongs to the current host.  Returns the other end, non-blocking. */
int sim_stream_open(struct sim_stream *s, const struct sim_stream_conf *conf);
/* Close @s if the stream is open, and free its memory. */
void sim_stream_fini(struct sim_stream *s);
/* The client closes the stream; bytes not sent are lost. */
void sim_stream_close(struct sim_stream *s);
/* Send @bytes, which are copied, at later steps.  Returns sim_stream.sent of the last byte. */
uint64_t sim_stream_put(struct sim_stream *s, const void *bytes, size_t len);
/* Wait for @len bytes, and take these.  False: the stream has ended before.  Fiber. */
bool sim_stream_take(struct sim_stream *s, void *buf, size_t len);

#endif
