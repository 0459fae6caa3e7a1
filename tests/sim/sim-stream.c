/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the client's descriptor and copies of the bytes on their way.  The end of the stream, from
 * either side, closes the descriptor.  One thread. */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sim-fiber.h"
#include "sim-stream.h"
#include "util.h"

#define PIECE_MAX (64u << 10)		/* of one move */

const struct sim_stream_conf sim_stream_defaults = {
	.send_max = UINT64_MAX,
	.receive_max = UINT64_MAX,
};

/* ---- bytes ---- */

static size_t bytes_len(const struct sim_bytes *b)
{
	return b->end - b->pos;
}

/* Returns where the next @len bytes go.  Bytes move only when the room doubles, or half of it is
 * free: each byte moves a few times at most. */
static uint8_t *bytes_room(struct sim_bytes *b, size_t len)
{
	size_t have = bytes_len(b);

	if (b->end + len > b->room) {
		if (have)
			memmove(b->mem, b->mem + b->pos, have);
		b->pos = 0;
		b->end = have;
	}
	if (2 * (have + len) > b->room) {
		b->room = 2 * (have + len);
		b->mem = realloc(b->mem, b->room);
		assert(b->mem);
	}
	return b->mem + b->end;
}

/* ---- the end ---- */

static void stream_end(struct sim_stream *s, enum sim_stream_cause cause)
{
	if (s->state == SIM_STREAM_ENDED)
		return;
	s->state = SIM_STREAM_ENDED;
	s->cause = cause;
	sim_event_cancel(&s->rest);
	sim_actor_del(&s->actor);
	sim_fd_use();
	close(s->fd);
	sim_fd_used();
	s->fd = -1;
}

void sim_stream_close(struct sim_stream *s)
{
	stream_end(s, SIM_STREAM_CLIENT);
}

/* ---- moves ---- */

static short stream_events(const struct sim_stream *s)
{
	bool sends = bytes_len(&s->out) && s->out_state == SIM_STREAM_SENDS;

	return (short)(POLLIN | (sends ? POLLOUT : 0));
}

static bool stream_ready(struct sim_actor *a)
{
	struct sim_stream *s = container_of(a, struct sim_stream, actor);

	return s->state == SIM_STREAM_MOVES &&
	       (sim_fd_ready(s->fd) & (stream_events(s) | POLLHUP | POLLERR));
}

/* Bytes of the next move of at most @len, and @left before the end. */
static size_t stream_piece(const struct sim_stream *s, size_t len, uint64_t left)
{
	size_t most = s->conf.piece ? 1 + sim_rand(s->conf.piece) : PIECE_MAX;

	return MIN(MIN(len, most), left);
}

/* Bytes that may be sent before the next place where a move ends. */
static uint64_t stream_left(const struct sim_stream *s)
{
	return (s->sent < s->conf.split ? s->conf.split : s->conf.send_max) - s->sent;
}

static void stream_rests_until(struct sim_stream *s, uint64_t at_us)
{
	s->state = SIM_STREAM_RESTS;
	sim_event_at(&s->rest, at_us);
}

static void stream_send(struct sim_stream *s)
{
	size_t len = stream_piece(s, bytes_len(&s->out), stream_left(s));
	ssize_t n = send(s->fd, s->out.mem + s->out.pos, len, MSG_NOSIGNAL);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n < 0) {
		s->out.pos = s->out.end;	/* what came before the end is still to be read */
		return;
	}
	s->sent += (uint64_t)n;
	s->out.pos += (size_t)n;
	if (n && s->sent == s->conf.split)
		stream_rests_until(s, sim_now_us() + s->conf.split_us);
}

static void stream_receive(struct sim_stream *s)
{
	size_t len = stream_piece(s, PIECE_MAX, s->conf.receive_max - s->received);
	ssize_t n;

	n = recv(s->fd, bytes_room(&s->in, len), len, 0);
	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		stream_end(s, SIM_STREAM_SERVER);
		return;
	}
	s->received += (uint64_t)n;
	s->in.end += (size_t)n;
}

static void stream_rests(struct sim_stream *s)
{
	if (s->state == SIM_STREAM_MOVES && s->conf.rest_us)
		stream_rests_until(s, sim_now_us() + sim_rand(s->conf.rest_us));
}

static void stream_rested(struct sim_event *ev)
{
	container_of(ev, struct sim_stream, rest)->state = SIM_STREAM_MOVES;
}

static bool stream_at_end(const struct sim_stream *s)
{
	return (s->sent == s->conf.send_max && !s->conf.half) ||
	       s->received == s->conf.receive_max;
}

static void stream_move(struct sim_stream *s)
{
	short events = sim_fd_ready(s->fd);

	if (!stream_at_end(s) && (stream_events(s) & events & POLLOUT))
		stream_send(s);
	if (s->sent == s->conf.send_max && s->out_state == SIM_STREAM_SENDS) {
		s->out_state = SIM_STREAM_IS_SHUT;
		shutdown(s->fd, SHUT_WR);
	}
	if (!stream_at_end(s) && (events & (POLLIN | POLLHUP | POLLERR)))
		stream_receive(s);
	if (stream_at_end(s))
		sim_stream_close(s);
}

static void stream_run(struct sim_actor *a)
{
	struct sim_stream *s = container_of(a, struct sim_stream, actor);

	sim_fd_use();
	stream_move(s);
	sim_fd_used();
	stream_rests(s);
}

/* ---- life ---- */

int sim_stream_open(struct sim_stream *s, const struct sim_stream_conf *conf)
{
	int fds[2], size = (int)conf->buffer;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds))
		abort();
	if (size && setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)))
		abort();
	*s = (struct sim_stream){ .conf = *conf, .fd = fds[0] };
	sim_event_init(&s->rest, stream_rested);
	s->actor.ready = stream_ready;
	s->actor.run = stream_run;
	sim_actor_add(&s->actor);
	if (stream_at_end(s))
		sim_stream_close(s);
	return fds[1];
}

void sim_stream_fini(struct sim_stream *s)
{
	sim_stream_close(s);
	free(s->out.mem);
	free(s->in.mem);
}

/* ---- fibers ---- */

uint64_t sim_stream_put(struct sim_stream *s, const void *bytes, size_t len)
{
	if (!len)
		return s->put;
	memcpy(bytes_room(&s->out, len), bytes, len);
	s->out.end += len;
	s->put += len;
	return s->put;
}

struct stream_taking {
	const struct sim_stream *s;
	size_t len;
};

static bool stream_has(void *arg)
{
	const struct stream_taking *t = arg;

	return bytes_len(&t->s->in) >= t->len || t->s->state == SIM_STREAM_ENDED;
}

bool sim_stream_take(struct sim_stream *s, void *buf, size_t len)
{
	struct stream_taking t = { .s = s, .len = len };

	if (!len)
		return true;
	sim_fiber_wait(stream_has, &t);
	if (bytes_len(&s->in) < len)
		return false;
	memcpy(buf, s->in.mem + s->in.pos, len);
	s->in.pos += len;
	return true;
}
