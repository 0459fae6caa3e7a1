/* SPDX-License-Identifier: BSD-3-Clause */
/* The gateway at work: an NBD server for each loop, and the way of a client to its loop.
 *
 * The happy path: gate_start(), on the main thread, makes the servers and watches the listening
 * sockets, which stay the caller's; gate_take() accepts a client on the service loop, loop 0; a
 * message takes each client to its loop (gate_client_arrived()).  gate_leave() accepts no more and
 * stops the servers; gate_stop() waits until all connections are gone.
 *
 * Possible failures: without descriptors to spare clients wait in the backlog (gate_has_room()); a
 * client without memory is refused, with a line in the log; requests without an answer at the end
 * are counted in the log. */
#include <config.h>

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fabric.h"
#include "gate.h"
#include "log.h"
#include "loop.h"

static struct log_limit refused_limit = LOG_LIMIT_INIT(4, 10000);

/* ---- clients arrive ---- */

/* "client 7 of 192.0.2.1:40000" */
static void client_name(struct gate *g, const struct fab_addr *addr, char *buf, size_t size)
{
	char peer[FAB_ADDR_STRLEN];

	g->naccepted++;
	if (fab_addr_is_unix(addr))
		snprintf(buf, size, "client %llu", g->naccepted);
	else
		snprintf(buf, size, "client %llu of %s", g->naccepted,
			 fab_addr_format(addr, peer, sizeof(peer)));
}

/* A client on the way to its loop. */
struct arrival {
	struct loop_msg msg;
	struct gate_loop *to;
	int fd;
	uint64_t net;
	char name[96];
};

static void gate_client_refused(const char *name, int r)
{
	log_event_limited(&refused_limit, LOG_LEVEL_WARN, LOG_FIELDS(CLIENT_REFUSED, .peer = name),
			  name, "refused: %s", strerror(-r));
}

static void gate_client_arrived(struct loop_msg *msg)
{
	struct arrival *a = container_of(msg, struct arrival, msg);
	int r = nbd_server_add(a->to->server, a->fd, a->name, a->net);

	if (r < 0)
		gate_client_refused(a->name, r);
	free(a);
}

/* Clients go to the loops in turns.  @fd is the loop's in any case. */
static void hand_over(struct gate *g, int fd, const char *name, uint64_t net)
{
	struct arrival *a = malloc(sizeof(*a));

	if (!a) {
		close(fd);
		gate_client_refused(name, -ENOMEM);
		return;
	}
	loop_msg_init(&a->msg, gate_client_arrived);
	a->to = &g->loops[g->naccepted % g->nloops];
	a->fd = fd;
	a->net = net;
	snprintf(a->name, sizeof(a->name), "%s", name);
	loop_post(a->to->loop, &a->msg);
}

static void gate_take(struct acceptor *a, int fd, const struct sockaddr_storage *ss, socklen_t len)
{
	struct gate *g = container_of(a, struct gate_listener, acceptor)->gate;
	const struct fab_addr addr = { .ss = *ss, .len = len };
	uint64_t net = NBD_NET_LOCAL;
	int one = 1;
	char name[96];

	if (!fab_addr_is_unix(&addr)) {
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		net = fab_addr_net(&addr);
	}
	client_name(g, &addr, name, sizeof(name));
	hand_over(g, fd, name, net);
}

/* A path that comes back, a command and the log have descriptors in any case. */
static bool gate_has_room(struct acceptor *a)
{
	return clt_start_has_room(container_of(a, struct gate_listener, acceptor)->gate->start);
}

/* ---- start and stop ---- */

static void memory_msg(struct loop_msg *msg)
{
	struct gate_loop *l = container_of(msg, struct gate_loop, memory_msg);

	if (l->server)
		nbd_server_set_memory(l->server, atomic_load(&l->gate->memory));
}

void gate_set_memory(const struct gate_now *now, uint64_t memory)
{
	struct gate *g = now->gate;

	if (!g)
		return;
	atomic_store(&g->memory, (size_t)memory / g->nloops);
	for (unsigned i = 0; i < g->nloops; i++)
		loop_post(g->loops[i].loop, &g->loops[i].memory_msg);
}

static void start_call(struct loop_call *call)
{
	struct gate_loop *l = call->arg;
	unsigned nloops = l->gate->nloops;
	/* More memory comes before the first client: listen_call(). */
	const struct nbd_server_conf conf = { .memory = NBD_SERVER_MEMORY_MIN,
					      .backend = &relay_backend, .arg = &l->relay,
					      .guests = NBD_GUESTS / nloops,
					      .net_guests = NBD_NET_GUESTS / nloops,
					      .tls = gate_tls_port_init(&l->tls, &l->gate->tls,
									l->loop, nloops) };

	call->rc = nbd_server_create(&l->server, l->loop, &conf);
	loop_call_end(call);
}

static void listen_call(struct loop_call *call)
{
	struct gate *g = call->arg;

	for (unsigned i = 0; call->rc == 0 && i < g->nlisteners; i++)
		call->rc = acceptor_start(&g->listeners[i].acceptor, g->loops[0].loop);
	if (call->rc == 0) {
		g->now->gate = g;
		gate_set_memory(g->now, g->options->memory);
	}
	loop_call_end(call);
}

static void unlisten_call(struct loop_call *call)
{
	struct gate *g = call->arg;

	g->now->gate = NULL;
	for (unsigned i = 0; i < g->nlisteners; i++)
		acceptor_stop(&g->listeners[i].acceptor);
	loop_call_end(call);
}

static void gate_loop_stopped(void *arg)
{
	struct gate_loop *l = arg;

	l->unanswered = nbd_server_unanswered(l->server);
	nbd_server_destroy(l->server);
	l->server = NULL;
	if (l->ending)
		loop_call_end(l->ending);
}

static void leave_call(struct loop_call *call)
{
	struct gate_loop *l = call->arg;

	if (l->server)
		nbd_server_stop(l->server, gate_loop_stopped, l);
	loop_call_end(call);
}

static void stop_call(struct loop_call *call)
{
	struct gate_loop *l = call->arg;

	l->ending = call;
	if (!l->server)
		loop_call_end(call);
}

static void init_loops(struct gate *g, bool readonly)
{
	struct clt_run *run = &g->start->run;

	g->nloops = run->nloops;
	for (unsigned i = 0; i < g->nloops; i++) {
		struct gate_loop *l = &g->loops[i];

		l->gate = g;
		l->loop = run->loops[i];
		relay_init(&l->relay, l->loop, &run->clt, g->start->conf, readonly);
		loop_msg_init(&l->revoke_msg, gate_clients_revoke_msg);
		loop_msg_init(&l->memory_msg, memory_msg);
	}
}

int gate_start(struct gate *g, const struct gate_listen *l, struct clt_start *start,
	       const struct gate_options *o, struct gate_now *now)
{
	struct clt_run *run = &start->run;
	int r = 0;

	*g = (struct gate){ .start = start, .nlisteners = l->n, .now = now, .options = o,
			    .tls.creds = o->tls };
	init_loops(g, o->readonly);
	for (unsigned i = 0; i < l->n; i++)
		g->listeners[i] = (struct gate_listener){
			.gate = g,
			.acceptor = { .take = gate_take, .has_room = gate_has_room,
				      .watch.fd = l->fds[i] },
		};
	for (unsigned i = 0; r == 0 && i < g->nloops; i++)
		r = loop_call(g->loops[i].loop, start_call, &g->loops[i]);
	if (r == 0)
		r = loop_call(run->loop, listen_call, g);
	if (r < 0) {
		gate_leave(g);
		gate_stop(g);
	}
	return r;
}

void gate_leave(struct gate *g)
{
	loop_call(g->loops[0].loop, unlisten_call, g);
	/* ORDER: behind the clients that were handed over, each in a message to its loop. */
	for (unsigned i = 0; i < g->nloops; i++)
		loop_call(g->loops[i].loop, leave_call, &g->loops[i]);
}

void gate_stop(struct gate *g)
{
	unsigned unanswered = 0;

	for (unsigned i = 0; i < g->nloops; i++) {
		loop_call(g->loops[i].loop, stop_call, &g->loops[i]);
		gate_tls_port_fini(&g->loops[i].tls);
		unanswered += g->loops[i].unanswered;
	}
	if (unanswered)
		log_warn(NULL, "%u request%s had no answer when rtrs-nbd stopped: a client that "
			       "connects again sends them to the next rtrs-nbd", unanswered,
			 unanswered == 1 ? "" : "s");
}
