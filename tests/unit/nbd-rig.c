/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the loop, its clock and the disk.  A broken promise of the engine's aborts. */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loop-impl.h"
#include "nbd-rig.h"

/* ---- time and loop ---- */

static uint64_t now_ms = 1000;

uint64_t clock_now_ms(void)
{
	return now_ms;
}

uint64_t clock_now_ns(void)
{
	return now_ms * 1000000;
}

static struct loop loop;
static struct list watches = LIST_INIT(watches), closed = LIST_INIT(closed);

int rig_watch_error;

int loop_watch(struct loop *l, struct loop_watch *w)
{
	if (rig_watch_error)
		return rig_watch_error;
	w->loop = l;
	w->more = false;
	list_init(&w->link);
	list_add_tail(&watches, &w->link);
	return 0;
}

void loop_watch_events(struct loop_watch *w, short events)
{
	w->events = events;
}

void loop_unwatch(struct loop_watch *w)
{
	if (!w->loop)
		return;
	w->loop = NULL;
	list_del(&w->link);
	if (w->closed)
		list_add_tail(&closed, &w->link);
}

/* Returns whether a descriptor had news. */
static bool run_ready(void)
{
	struct loop_watch *w, *next;
	bool any = false;

	list_for_each_safe(w, next, &watches, link) {
		struct pollfd pfd = { .fd = w->fd, .events = w->events };

		if (!w->more && poll(&pfd, 1, 0) <= 0)
			continue;
		/* An end is told without being asked for, again and again. */
		any |= w->more || (pfd.revents & w->events);
		w->more = w->ready(w);
	}
	return any;
}

void rig_run(struct rig *rig)
{
	struct loop_watch *w;
	unsigned idle = 0;

	while (idle < 3) {
		bool any;

		if (list_empty(&loop.tasks))
			loop_run_sleep_tasks(&loop);
		any = run_ready();
		loop_run_timers(&loop, now_ms);
		any |= !list_empty(&loop.tasks);
		loop_run_tasks(&loop);
		while ((w = list_pop_entry(&closed, struct loop_watch, link))) {
			w->closed(w);
			any = true;
		}
		idle = any ? 0 : idle + 1;
	}
}

void rig_pass_time(struct rig *rig, unsigned ms)
{
	now_ms += ms;
	rig_run(rig);
}

/* ---- the disk ---- */

struct handle {
	struct rig *rig;
	uint64_t size;
};

static void rig_list(void *arg, struct nbd_ask *ask)
{
	nbd_ask_name(ask, "disk");
	nbd_ask_name(ask, "large");
	nbd_ask_listed(ask, 0, NULL);
}

static struct handle *new_handle(struct rig *rig, uint64_t size)
{
	struct handle *h = malloc(sizeof(*h));

	assert(h);
	h->rig = rig;
	h->size = size;
	rig->nopen++;
	return h;
}

static void open_handle(struct rig *rig, struct nbd_ask *ask, uint64_t size)
{
	nbd_ask_opened(ask, 0, NULL, new_handle(rig, size));
}

static void rig_open(void *arg, struct nbd_ask *ask, const char *name)
{
	struct rig *rig = arg;

	if (strcmp(name, "disk") && strcmp(name, "large"))
		nbd_ask_opened(ask, -ENOENT, "no such export", NULL);
	else if (rig->mode == RIG_OPENS_LATE)
		rig->late = ask;
	else
		open_handle(rig, ask, strcmp(name, "disk") ? RIG_LARGE : RIG_DISK);
}

void rig_open_now(struct rig *rig)
{
	struct nbd_ask *ask = rig->late;

	assert(ask);
	rig->late = NULL;
	open_handle(rig, ask, RIG_DISK);
	rig_run(rig);
}

static uint64_t size_of(const struct handle *h)
{
	return h->size + h->rig->more;
}

static void rig_info(void *handle, struct nbd_export *export)
{
	const struct handle *h = handle;

	*export = (struct nbd_export){
		.size = size_of(h), .block_min = 1, .block_preferred = 4096,
		.flags = NBD_FLAG_SEND_FLUSH | NBD_FLAG_SEND_FUA | NBD_FLAG_SEND_TRIM |
			 NBD_FLAG_SEND_WRITE_ZEROES | NBD_FLAG_SEND_CACHE,
		.name = "disk", .description = "in memory",
	};
}

static void rig_close(void *handle)
{
	struct handle *h = handle;

	h->rig->nopen--;
	free(h);
}

/* Half of each extent is a hole. */
static void tell_extents(struct nbd_io *io)
{
	for (uint64_t off = 0, n; off < io->len; off += n) {
		n = MIN(io->len - off, (uint64_t)4096);
		if (!nbd_io_extent(io, n, off / 4096 % 2 ? NBD_STATE_HOLE | NBD_STATE_ZERO : 0))
			break;
	}
}

static void disk_do(struct rig *rig, struct nbd_io *io)
{
	const struct handle *h = io->handle;

	assert(range_ok(io->off, io->len, size_of(h)));
	if (io->cmd == NBD_CMD_BLOCK_STATUS)
		tell_extents(io);
	else if (io->cmd == NBD_CMD_READ && h->size == RIG_LARGE)
		memset(io->buf, 'x', MIN(io->len, (uint64_t)4096));
	else if (h->size == RIG_LARGE)
		return;
	else if (io->cmd == NBD_CMD_READ)
		memcpy(io->buf, rig->disk + io->off, io->len);
	else if (io->cmd == NBD_CMD_WRITE)
		memcpy(rig->disk + io->off, io->buf, io->len);
	else if (io->cmd == NBD_CMD_WRITE_ZEROES)
		memset(rig->disk + io->off, 0, io->len);
}

static void rig_start(struct nbd_io *io)
{
	struct rig *rig = ((struct handle *)io->handle)->rig;

	rig->nstarted++;
	memset(io->own, 0x5a, 64);
	if (rig->mode == RIG_HOLDS) {
		assert(rig->nheld < RIG_HELD_MAX);
		rig->held[rig->nheld++] = io;
		return;
	}
	if (rig->mode != RIG_PLACES_NOTHING || io->cmd != NBD_CMD_READ)
		disk_do(rig, io);
	nbd_io_done(io, 0);
}

static void end_held(struct rig *rig, unsigned i, int status)
{
	struct nbd_io *io = rig->held[i];

	rig->held[i] = rig->held[--rig->nheld];
	if (status == 0)
		disk_do(rig, io);
	nbd_io_done(io, status);
}

void rig_finish(struct rig *rig, unsigned i, int status)
{
	end_held(rig, i, status);
	rig_run(rig);
}

void rig_finish_all(struct rig *rig, int status)
{
	while (rig->nheld)
		end_held(rig, rig->nheld - 1, status);
	rig_run(rig);
}

/* ---- TLS without secrets ---- */

/* Bytes go through as they are: what comes in front of the handshake's end is the engine's. */
struct rig_stream {
	struct nbd_stream base;
	int fd;
};

static int fd_of(const struct nbd_stream *s)
{
	return container_of(s, const struct rig_stream, base)->fd;
}

static ssize_t rig_recv(struct nbd_stream *s, const struct iovec *iov, size_t n)
{
	struct msghdr msg = { .msg_iov = (struct iovec *)iov, .msg_iovlen = n };

	return recvmsg(fd_of(s), &msg, MSG_DONTWAIT);
}

static bool rig_pending(const struct nbd_stream *s)
{
	return false;
}

static ssize_t rig_send(struct nbd_stream *s, const struct iovec *iov, size_t n)
{
	return send(fd_of(s), iov[0].iov_base, iov[0].iov_len, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static int rig_flush(struct nbd_stream *s)
{
	return 0;
}

static void rig_bye(struct nbd_stream *s)
{
}

static const char *rig_why(const struct nbd_stream *s)
{
	return "";
}

static void rig_destroy(struct nbd_stream *s)
{
	free(container_of(s, struct rig_stream, base));
}

static const struct nbd_stream_ops rig_stream_ops = {
	.recv = rig_recv, .pending = rig_pending, .send = rig_send, .flush = rig_flush,
	.bye = rig_bye, .why = rig_why, .destroy = rig_destroy,
};

static void rig_secure(const struct nbd_tls *tls, struct nbd_conn *conn, int fd, const char *name)
{
	struct rig_stream *s = malloc(sizeof(*s));

	if (!s)
		abort();
	*s = (struct rig_stream){ .base.ops = &rig_stream_ops, .fd = fd };
	nbd_tls_done(conn, &s->base, NULL);
}

static const struct nbd_tls rig_tls = { .mode = NBD_TLS_ON, .start = rig_secure };

/* ---- life ---- */

static void rig_told(void *handle)
{
	((struct handle *)handle)->rig->ntold++;
}

static const struct nbd_backend backend = {
	.io_size = 64, .list = rig_list, .open = rig_open, .info = rig_info, .close = rig_close,
	.start = rig_start, .told = rig_told,
};

void rig_begin(struct rig *rig, size_t memory)
{
	const struct nbd_server_conf conf = { .memory = memory, .backend = &backend, .arg = rig,
					      .guests = NBD_GUESTS, .net_guests = NBD_NET_GUESTS,
					      .tls = &rig_tls };

	rig->mode = RIG_ANSWERS;
	rig->nheld = rig->nstarted = rig->nopen = 0;
	rig->late = NULL;
	if (loop_init(&loop) < 0 || nbd_server_create(&rig->server, &loop, &conf) < 0)
		abort();
}

void rig_end(struct rig *rig)
{
	assert(!rig->nheld && !rig->nopen && !nbd_server_count(rig->server));
	nbd_server_destroy(rig->server);
	loop_fini(&loop);
}

int rig_connect(struct rig *rig)
{
	return rig_connect_from(rig, NBD_NET_LOCAL);
}

int rig_connect_from(struct rig *rig, uint64_t net)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) < 0 ||
	    nbd_server_add(rig->server, fds[0], "the client", net) != rig_watch_error)
		abort();
	rig_run(rig);
	return fds[1];
}

int rig_serve(struct rig *rig)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) < 0 ||
	    nbd_server_serve(rig->server, fds[0], "the kernel", new_handle(rig, RIG_DISK)) !=
		    rig_watch_error)
		abort();
	return fds[1];
}
