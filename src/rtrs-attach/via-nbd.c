/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices of the kernel's NBD client: an NBD server on the session's first loop has one client, the
 * kernel, at the other end of a socket pair.
 *
 * The happy path: nbd_start() makes the server and a pair, and gives the kernel its end with size
 * and flags, which nobody negotiates; driver_remove() has the kernel end the device, which ends the
 * connection, and nbd_stop() the server.  One handle (relay.h) lasts as long as the device, so the
 * kernel is notified once of each lost write, over whatever connection.
 *
 * Possible failures: the process ends at any moment.  The kernel finds its socket dead, keeps all
 * requests, and the next process gives it another socket (connect_device()).  A connection that
 * breaks while both live is replaced in the same way (nbd_news()), when the last of its requests
 * has ended: the kernel sends them again, and no older copy may overtake.  The kernel drops a
 * socket that it does not need, because the old one is not dead yet, and says nothing: then the
 * new connection breaks.
 *
 * ONE CONNECTION.  With several the kernel breaks them all when one request has taken 30 seconds,
 * and sends it again; with one, and without a time limit, it waits. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "attach-nbd.h"
#include "attach.h"
#include "cleanup.h"
#include "clock.h"
#include "log.h"
#include "nbd-server.h"
#include "number.h"
#include "process.h"
#include "relay.h"

#define SOCKET_BYTES (4 << 20)		/* of a direction of the pair: some large requests */
#define SERVER_MEMORY (128u << 20)	/* bytes for data: 32 requests of 4 MiB */
/* The kernel waits at least so long for the next process, whatever io-timeout= is. */
#define DEAD_LEAST_S 60u
#define DEAD_MOST_S 315360000u		/* ten years, in place of for ever */
/* The kernel takes a moment to find out that a socket is dead. */
#define DEAD_NS 20000000
#define GOES_NAPS 50			/* of DEAD_NS */

struct via_nbd {
	struct attach *a;
	struct attach_nbd *kernel;
	struct loop *loop;		/* the rest is the thread's of this loop */
	struct relay relay;
	struct nbd_backend backend;	/* relay_backend, whose handles outlive their connection */
	struct nbd_server *server;	/* NULL: none */
	void *handle;
	int fd;				/* to be served */
	struct nbd_export export;
	enum { VIA_NBD_RUNS, VIA_NBD_STOPS, VIA_NBD_STOPPED } state;	/* of @server */
	struct loop_call *ending;	/* waits for STOPPED, or NULL */
	/* any thread */
	_Atomic(enum { VIA_NBD_SERVES, VIA_NBD_ENDED }) connection;
};

/* ---- on the loop ---- */

/* The connection has ended, and its last request. */
static void connection_ended(void *handle)
{
	struct via_nbd *v = container_of(relay_of(handle), struct via_nbd, relay);

	atomic_store(&v->connection, VIA_NBD_ENDED);
	attach_wake(v->a);
}

static void create_call(struct loop_call *call)
{
	struct via_nbd *v = call->arg;
	struct nbd_server_conf conf = { .memory = SERVER_MEMORY, .backend = &v->backend,
					.arg = &v->relay, .guests = 1, .net_guests = 1 };

	relay_init(&v->relay, v->loop, &v->a->start->run.clt, &v->a->options->session, false);
	v->handle = relay_handle_create(&v->relay, v->a->dev);
	call->rc = v->handle ? nbd_server_create(&v->server, v->loop, &conf) : -ENOMEM;
	if (call->rc == 0)
		v->backend.info(v->handle, &v->export);
	loop_call_end(call);
}

static void serve_call(struct loop_call *call)
{
	struct via_nbd *v = call->arg;

	atomic_store(&v->connection, VIA_NBD_SERVES);
	call->rc = nbd_server_serve(v->server, v->fd, "kernel", v->handle);
	loop_call_end(call);
}

static void look_call(struct loop_call *call)
{
	struct via_nbd *v = call->arg;

	nbd_server_look(v->server);
	loop_call_end(call);
}

static void end_now(struct via_nbd *v)
{
	if (v->server)
		nbd_server_destroy(v->server);
	v->server = NULL;
	if (v->handle)
		relay_handle_destroy(v->handle);
	v->handle = NULL;
	loop_call_end(v->ending);
}

static void server_stopped(void *arg)
{
	struct via_nbd *v = arg;

	v->state = VIA_NBD_STOPPED;
	if (v->ending)
		end_now(v);
}

static void leave_call(struct loop_call *call)
{
	struct via_nbd *v = call->arg;

	v->state = VIA_NBD_STOPS;
	nbd_server_stop(v->server, server_stopped, v);
	loop_call_end(call);
}

static void stop_call(struct loop_call *call)
{
	struct via_nbd *v = call->arg;

	v->ending = call;
	if (v->state != VIA_NBD_STOPS)
		end_now(v);
}

/* ---- sockets ---- */

/* A request waits for a process as long as it waits for a server. */
static uint64_t dead_seconds(const struct attach *a)
{
	uint64_t ms = a->options->session.sess.io_timeout_ms;

	return ms == CLOCK_NEVER ? DEAD_MOST_S :
				   MIN(MAX(ms / 1000, (uint64_t)DEAD_LEAST_S), DEAD_MOST_S);
}

/* A pair of which the server has one end.  The other end, or -errno. */
static int serve_pair(struct via_nbd *v)
{
	int fds[2], size = SOCKET_BYTES, r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return -errno;
	for (unsigned i = 0; i < 2; i++)
		setsockopt(fds[i], SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size));
	/* The kernel's end waits in its calls. */
	r = fcntl(fds[0], F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
	if (r == 0) {
		v->fd = fds[0];
		r = loop_call(v->loop, serve_call, v);
	} else {
		close(fds[0]);
	}
	if (r == 0)
		return fds[1];
	close(fds[1]);
	return r;
}

/* ---- the device ---- */

/* 0, or -ENOMEM; dev->backend is the caller's to free. */
static int describe(struct via_nbd *v, struct attach_nbd_dev *dev, char *err, size_t len)
{
	const struct rnbd_dev_info *info = dev_info(v->a->dev);

	*dev = (struct attach_nbd_dev){
		.size = dev_size(v->a->dev),
		.block = info->logical_block_size,
		/* One that the kernel knows: others are for clients that negotiate. */
		.flags = (uint16_t)(v->export.flags | NBD_FLAG_HAS_FLAGS),
		.dead_s = dead_seconds(v->a),
		.backend = attach_nbd_backend(v->a->state.name, v->a->state.export_name),
	};
	return dev->backend ? 0 : fmt_error(-ENOMEM, err, len, "no memory");
}

/* The kernel waits for all requests of the device. */
static int nbd_resize(struct attach *a, char *err, size_t len)
{
	struct via_nbd *v = a->own;
	char bytes[24];
	int r;

	if (a->helper.task != ATTACH_HELPS_NOT)
		return -EAGAIN;
	/* ORDER: the kernel uses what it knows of. */
	loop_call(v->loop, look_call, v);
	snprintf(bytes, sizeof(bytes), "%llu", (unsigned long long)dev_size(a->dev));
	r = attach_helper_start(&a->helper, ATTACH_HELPS_RESIZE, ATTACH_RESIZE, a->state.name,
				bytes);
	return r < 0 ? fmt_error(r, err, len, "cannot start " ATTACH_RESIZE ": %s",
				 threads_strerror(r)) : 1;
}

int via_nbd_resize_main(int argc, char **argv)
{
	_cleanup_free_ char *backend = NULL;
	struct attach_nbd *nbd;
	struct attach_state s;
	unsigned long long size;
	char err[256];
	int r;

	if (argc != 3 || sscanf(argv[2], "%llu", &size) != 1)
		return EINVAL;
	r = attach_state_read(&s, argv[1], err, sizeof(err));
	if (r == 0)
		r = attach_nbd_open(&nbd, err, sizeof(err));
	if (r < 0)
		return -r;
	backend = attach_nbd_backend(s.name, s.export_name);
	r = backend ? attach_nbd_resize(nbd, s.index, backend, size) : -ENOMEM;
	attach_nbd_close(nbd);
	return -r;
}

static void nbd_leave(struct attach *a)
{
	struct via_nbd *v = a->own;

	loop_call(v->loop, leave_call, v);
}

static void nbd_stop(struct attach *a)
{
	struct via_nbd *v = a->own;

	loop_call(v->loop, stop_call, v);
	attach_nbd_close(v->kernel);
	free(v);
	a->own = NULL;
}

/* Serve the kernel over a new pair: as the device @index, or, less than 0, as a new one.  Returns
 * the index, or -errno with @err. */
static int connect_device(struct via_nbd *v, int index, char *err, size_t len)
{
	struct attach_nbd_dev dev;
	int r = describe(v, &dev, err, len);

	if (r < 0)
		return r;
	dev.fd = serve_pair(v);
	if (dev.fd < 0) {
		r = fmt_error(dev.fd, err, len, "cannot serve: %s", fds_strerror(dev.fd));
	} else {
		r = index < 0 ? attach_nbd_connect(v->kernel, &dev, err, len) :
				attach_nbd_replace(v->kernel, index, &dev, err, len);
		close(dev.fd);
	}
	free((char *)dev.backend);
	return r < 0 || index < 0 ? r : index;
}

static int nbd_find(struct attach_state *s)
{
	char export[sizeof(s->export_name)];
	int index = attach_nbd_find(s->name, export, sizeof(export));

	if (index < 0)
		return index;
	snprintf(s->disk, sizeof(s->disk), "nbd%d", index);
	if (!*s->export_name)
		memcpy(s->export_name, export, sizeof(export));
	return strcmp(s->export_name, export) ? -EEXIST : index;
}

/* Say in @err why nbd_find() has found no device of @s with @r.  Returns @r. */
static int not_found(int r, const struct attach_state *s, char *err, size_t len)
{
	return r == -EEXIST ? driver_other(s, err, len) :
			      fmt_error(r, err, len, "/sys/block: %s", fds_strerror(r));
}

/* True, too, if nobody knows. */
static bool is_there(const struct attach *a)
{
	struct attach_state s = a->state;
	int index = nbd_find(&s);

	return index == a->state.index || (index < 0 && index != -ENODEV);
}

static int nbd_remove(const struct attach_state *s, char *err, size_t len)
{
	struct attach_state now = *s;
	struct attach_nbd *nbd;
	int index = nbd_find(&now), r;

	if (index < 0)
		return index == -ENODEV ? 0 : not_found(index, &now, err, len);
	r = attach_nbd_open(&nbd, err, len);
	if (r < 0)
		return r;
	r = attach_nbd_disconnect(nbd, index, err, len);
	attach_nbd_close(nbd);
	return r;
}

static int start_device(struct via_nbd *v, char *err, size_t len)
{
	struct attach_state *s = &v->a->state;
	int found = nbd_find(s), index;

	if (found < 0 && found != -ENODEV)
		return not_found(found, s, err, len);
	v->a->found = found >= 0;
	index = connect_device(v, found, err, len);
	if (index < 0)
		return index;
	if (found >= 0)
		log_info(NULL, "takes over /dev/nbd%d", index);
	s->index = index;
	snprintf(s->disk, sizeof(s->disk), "nbd%d", index);
	v->a->size.told = found < 0 ? dev_size(v->a->dev) : driver_node_size(s->disk);
	return 0;
}

static int nbd_start(struct attach *a, char *err, size_t len)
{
	struct via_nbd *v = calloc(1, sizeof(*v));
	int r;

	if (!v)
		return fmt_error(-ENOMEM, err, len, "no memory");
	v->a = a;
	v->loop = a->start->run.loop;
	v->backend = relay_backend;
	v->backend.close = connection_ended;
	v->backend.told = relay_told;
	a->own = v;
	r = attach_nbd_open(&v->kernel, err, len);
	if (r == 0) {
		r = loop_call(v->loop, create_call, v);
		if (r < 0)
			fmt_error(r, err, len, "cannot serve: %s", threads_strerror(r));
	}
	if (r == 0)
		r = start_device(v, err, len);
	if (r < 0 && v->server)
		nbd_leave(a);
	if (r < 0)
		nbd_stop(a);
	return r;
}

/* The kernel refuses a new socket while another program removes the device, and names the device
 * for a moment more. */
static bool goes(const struct attach *a)
{
	const struct timespec nap = { .tv_nsec = DEAD_NS };

	for (unsigned i = 0; i < GOES_NAPS; i++) {
		if (!is_there(a))
			return true;
		nanosleep(&nap, NULL);
	}
	return false;
}

static int nbd_news(struct attach *a)
{
	const struct timespec nap = { .tv_nsec = DEAD_NS };
	struct via_nbd *v = a->own;
	char err[256];
	int r;

	if (atomic_load(&v->connection) == VIA_NBD_SERVES)
		return 0;
	if (!is_there(a))
		return -ENODEV;
	nanosleep(&nap, NULL);
	r = connect_device(v, a->state.index, err, sizeof(err));
	if (r < 0 && goes(a))
		return -ENODEV;
	if (r < 0) {
		log_warn(NULL, "%s", err);
		return r;
	}
	log_info(NULL, "/dev/%s had lost its connection to this process, and has another one",
		 a->state.disk);
	return 0;
}

static int nbd_probe(char *why, size_t len)
{
	struct attach_nbd *kernel;
	int r;

	attach_helper_module("nbd");
	r = attach_nbd_open(&kernel, why, len);
	if (r == 0)
		attach_nbd_close(kernel);
	return r;
}

const struct attach_driver attach_via_nbd = {
	.name = "nbd",
	.find = nbd_find,
	.remove = nbd_remove,
	.probe = nbd_probe,
	.start = nbd_start,
	.news = nbd_news,
	.resize = nbd_resize,
	.leave = nbd_leave,
	.stop = nbd_stop,
};
