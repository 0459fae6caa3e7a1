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
	bool sends = s->out_len && s->out_state == SIM_STREAM_SENDS;

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

static void stream_send(struct sim_stream *s)
{
	size_t len = stream_piece(s, s->out_len, s->conf.send_max - s->sent);
	ssize_t n = send(s->fd, s->out, len, MSG_NOSIGNAL);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n < 0) {
		s->out_len = 0;		/* what came before the end is still to be read */
		return;
	}
	s->sent += (uint64_t)n;
	s->out_len -= (size_t)n;
	memmove(s->out, s->out + n, s->out_len);
}

static void *grown(void *mem, size_t *room, size_t want)
{
	if (want > *room) {
		*room = want * 2;
		mem = realloc(mem, *room);
		assert(mem);
	}
	return mem;
}

static void stream_receive(struct sim_stream *s)
{
	size_t len = stream_piece(s, PIECE_MAX, s->conf.receive_max - s->received);
	ssize_t n;

	s->in = grown(s->in, &s->in_room, s->in_len + len);
	n = recv(s->fd, s->in + s->in_len, len, 0);
	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		stream_end(s, SIM_STREAM_SERVER);
		return;
	}
	s->received += (uint64_t)n;
	s->in_len += (size_t)n;
}

static void stream_rests(struct sim_stream *s)
{
	if (s->state == SIM_STREAM_ENDED || !s->conf.rest_us)
		return;
	s->state = SIM_STREAM_RESTS;
	sim_event_at(&s->rest, sim_now_us() + sim_rand(s->conf.rest_us));
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
	free(s->out);
	free(s->in);
}

/* ---- fibers ---- */

uint64_t sim_stream_put(struct sim_stream *s, const void *bytes, size_t len)
{
	if (!len)
		return s->put;
	s->out = grown(s->out, &s->out_room, s->out_len + len);
	memcpy(s->out + s->out_len, bytes, len);
	s->out_len += len;
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

	return t->s->in_len >= t->len || t->s->state == SIM_STREAM_ENDED;
}

bool sim_stream_take(struct sim_stream *s, void *buf, size_t len)
{
	struct stream_taking t = { .s = s, .len = len };

	if (!len)
		return true;
	sim_fiber_wait(stream_has, &t);
	if (s->in_len < len)
		return false;
	memcpy(buf, s->in, len);
	s->in_len -= len;
	memmove(s->in, s->in + len, s->in_len);
	return true;
}
