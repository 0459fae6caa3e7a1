/* SPDX-License-Identifier: BSD-3-Clause */
/* What the verbs provider makes of librdmacm's events, which stand here in its place: what its user
 * is told, and what becomes of the connection. */
#include "unit.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#include "fabric.h"
#include "fsm-rules.h"
#include "verbs-priv.h"

/* ---- librdmacm ---- */

static struct rdma_event_channel channel;
static struct rdma_cm_event *next;	/* to be got, or NULL */
static struct rdma_cm_id *made;		/* the last id */
static struct ibv_context *device;	/* of new ids */
static unsigned nids, nunacked, nlistening, nrejected, nlooks;
static int id_errno;			/* of ids that cannot be made, or 0 */
static struct fab_cm *cm;
static int pipe_fds[2];
static int afonly;			/* option of the last id */
static const char hello[] = "hello";	/* the private data of both ends */

static struct rdma_cm_id *id_create(void *context)
{
	made = calloc(1, sizeof(*made));
	made->context = context;
	made->verbs = device;
	made->route.addr.src_addr.sa_family = AF_INET;
	made->route.addr.dst_addr.sa_family = AF_INET;
	afonly = 0;
	nids++;
	return made;
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
	channel.fd = pipe_fds[0];
	return &channel;
}

void rdma_destroy_event_channel(struct rdma_event_channel *c)
{
}

int rdma_create_id(struct rdma_event_channel *c, struct rdma_cm_id **id, void *context,
		   enum rdma_port_space ps)
{
	errno = id_errno;
	if (id_errno)
		return -1;
	*id = id_create(context);
	return 0;
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
	cr_assert_eq(nunacked, 0, "would wait for itself");
	nids--;
	free(id);
	return 0;
}

int rdma_set_option(struct rdma_cm_id *id, int level, int name, void *value, size_t len)
{
	cr_assert(level == RDMA_OPTION_ID && name == RDMA_OPTION_ID_AFONLY);
	cr_assert_eq(len, sizeof(afonly));
	memcpy(&afonly, value, len);
	return 0;
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	cr_assert_eq(afonly, addr->sa_family == AF_INET6, "both may have a listener");
	memcpy(&id->route.addr.src_storage, addr, sizeof(id->route.addr.src_storage));
	return 0;
}

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	nlistening++;
	return 0;
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src, struct sockaddr *dst, int ms)
{
	cr_assert_eq(ms, 5000);		/* VERBS_RESOLVE_MS, which librdmacm keeps */
	return 0;
}

int rdma_resolve_route(struct rdma_cm_id *id, int ms)
{
	bool held = pthread_mutex_trylock(&verbs_cm(cm)->lock) == EBUSY;

	if (!held)
		pthread_mutex_unlock(&verbs_cm(cm)->lock);
	cr_assert(held, "another thread may destroy the connection");
	cr_assert_eq(ms, 5000);
	return 0;
}

/* doc/protocol.md 1.2 */
static void expect_as_kernel(const struct rdma_conn_param *param)
{
	cr_assert(param->retry_count == 7 && param->rnr_retry_count == 7);
	cr_assert(!param->responder_resources && !param->initiator_depth);
	cr_assert_eq(param->private_data_len, sizeof(hello));
	expect_bytes(param->private_data, hello, sizeof(hello), "the private data");
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	expect_as_kernel(param);
	return 0;
}

int rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t len)
{
	nrejected++;
	if (id->context)		/* there is a connection, and its user rejects */
		expect_bytes(private_data, hello, len, "the private data");
	cr_assert_eq(len, id->context ? sizeof(hello) : 0);
	return 0;
}

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	expect_as_kernel(param);
	return 0;
}

int rdma_get_cm_event(struct rdma_event_channel *c, struct rdma_cm_event **event)
{
	if (!next) {
		errno = EAGAIN;
		return -1;
	}
	*event = next;
	next = NULL;
	nunacked++;
	return 0;
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	nunacked--;
	return 0;
}

int timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *old)
{
	cr_assert(at->it_value.tv_sec || at->it_value.tv_nsec);
	nlooks++;
	return 0;
}

/* ---- a connection over it ---- */

static struct fab_conn *conn;
static struct fab_event ev;

/* What @event of @id has its user told; 0: nothing. */
static int tell(struct rdma_cm_id *id, enum rdma_cm_event_type event, int status)
{
	static const char words[] = "words";
	struct rdma_cm_event e = { .id = id, .event = event, .status = status };

	if (event == RDMA_CM_EVENT_ESTABLISHED || event == RDMA_CM_EVENT_REJECTED) {
		e.param.conn.private_data = words;
		e.param.conn.private_data_len = sizeof(words);
	}
	next = &e;
	return fab_cm_get_event(cm, &ev);
}

static void setup(void)
{
	cr_assert_eq(pipe(pipe_fds), 0);
	cr_assert_eq(fab_cm_create(&(struct fab_cm_conf){ .provider = fab_provider_find("rdma") },
				   &cm), 0);
}

static void teardown(void)
{
	fab_conn_destroy(conn);
	fab_cm_destroy(cm);
	cr_assert_eq(nids, 0);
	cr_assert_eq(nunacked, 0);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
}

TestSuite(verbs_cm, .init = setup, .fini = teardown);

static void resolve_address(void)
{
	struct fab_addr dst = { .provider = fab_provider_find("rdma"),
				.len = sizeof(struct sockaddr_in) };

	dst.ss.ss_family = AF_INET;
	cr_assert_eq(fab_conn_create(cm, NULL, &conn), 0);
	cr_assert_eq(fab_resolve(conn, NULL, &dst), 0);
}

static void resolve_peer(void)
{
	resolve_address();
	cr_assert_eq(tell(made, RDMA_CM_EVENT_ADDR_RESOLVED, 0), 0);
}

static void connect_to_peer(bool answered)
{
	resolve_peer();
	cr_assert_eq(tell(made, RDMA_CM_EVENT_ROUTE_RESOLVED, 0), 1);
	cr_assert_eq(ev.type, FAB_EVENT_ROUTE_RESOLVED);
	cr_assert_eq(fab_connect(conn, hello, sizeof(hello)), 0);
	if (!answered)
		return;
	cr_assert_eq(tell(made, RDMA_CM_EVENT_ESTABLISHED, 0), 1);
	cr_assert_eq(ev.type, FAB_EVENT_ESTABLISHED);
}

static void peer_asks(struct fab_listener **l)
{
	struct fab_addr at = { .provider = fab_provider_find("rdma"),
			       .len = sizeof(struct sockaddr_in) };
	struct rdma_cm_event e = { .event = RDMA_CM_EVENT_CONNECT_REQUEST };

	at.ss.ss_family = AF_INET;
	cr_assert_eq(fab_listen(cm, &at, l), 0);
	e.listen_id = made;
	next = &e;
	e.id = id_create(NULL);
	cr_assert_eq(fab_cm_get_event(cm, &ev), 1);
	cr_assert(ev.type == FAB_EVENT_CONNECT_REQUEST && ev.listener == *l);
	conn = ev.conn;
}

static void accept_peer(struct fab_listener **l)
{
	peer_asks(l);
	cr_assert_eq(fab_accept(conn, hello, sizeof(hello)), 0);
}

/* ---- tests ---- */

#define NOBODY_LISTENS 8
#define TIMED_OUT_THERE 4
#define BY_ITS_USER 28

/* While it is not answered each end of it is told, and the peer's own refusal with the peer's
 * words.  Afterwards none is: its queues fail, and who polls them finds the cause.  A REJ is then
 * the end of a peer that left before our RTU had reached it. */
Test(verbs_cm, ends_of_a_connection)
{
	static const struct {
		bool answered;
		enum rdma_cm_event_type event;
		int status;
		int told;		/* enum fab_event_type, or -1 */
		int as;			/* fab_event.status */
		const char *cause;
	} cases[] = {
		{ false, RDMA_CM_EVENT_REJECTED, BY_ITS_USER, FAB_EVENT_REJECTED, 0, "" },
		{ false, RDMA_CM_EVENT_REJECTED, NOBODY_LISTENS, FAB_EVENT_UNREACHABLE,
		  -ECONNREFUSED, "no server listens there" },
		{ false, RDMA_CM_EVENT_REJECTED, TIMED_OUT_THERE, FAB_EVENT_UNREACHABLE,
		  -ECONNRESET, "the connection request was refused" },
		{ false, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, FAB_EVENT_UNREACHABLE, -ETIMEDOUT,
		  "cannot connect: Connection timed out" },
		{ false, RDMA_CM_EVENT_DISCONNECTED, 0, FAB_EVENT_UNREACHABLE, -ECONNRESET,
		  "peer disconnected" },
		{ true, RDMA_CM_EVENT_REJECTED, BY_ITS_USER, -1, 0, "peer disconnected" },
		{ true, RDMA_CM_EVENT_REJECTED, NOBODY_LISTENS, -1, 0, "peer disconnected" },
		{ true, RDMA_CM_EVENT_REJECTED, TIMED_OUT_THERE, -1, 0, "peer disconnected" },
		{ true, RDMA_CM_EVENT_DISCONNECTED, 0, -1, 0, "peer disconnected" },
	};

	for_each_case(c, cases) {
		struct ibv_wc wc;
		int told;

		connect_to_peer(c->answered);
		told = tell(made, c->event, c->status);
		cr_assert_eq(told, c->told >= 0, "case %td", c - cases);
		if (told) {
			cr_assert_eq((int)ev.type, c->told, "case %td", c - cases);
			cr_assert_eq(ev.status, c->as, "case %td", c - cases);
			cr_assert_eq(ev.conn, conn);
		}
		if (told && ev.type == FAB_EVENT_REJECTED)
			expect_bytes(ev.private_data, "words", 6, "the peer's words");
		cr_assert(strstr(fab_conn_cause(conn), c->cause), "case %td: %s", c - cases,
			  fab_conn_cause(conn));
		if (*c->cause)
			cr_assert_eq(fab_poll(conn, &wc, 1), -ENOTCONN, "case %td", c - cases);
		fab_conn_destroy(conn);
		conn = NULL;
	}
}

/* A user who knows that the connection failed is not told again; its device may go all the same. */
Test(verbs_cm, a_failure_is_reported_once)
{
	connect_to_peer(false);
	cr_assert_eq(tell(made, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT), 1);
	cr_assert_eq(tell(made, RDMA_CM_EVENT_DISCONNECTED, 0), 0);
	cr_assert_eq(tell(made, RDMA_CM_EVENT_DEVICE_REMOVAL, 0), 0);
	cr_assert(strstr(fab_conn_cause(conn), "cannot connect"));
}

/* Behind its end, too, because nothing else wakes a poller; once. */
Test(verbs_cm, a_removed_device_is_reported)
{
	connect_to_peer(true);
	cr_assert_eq(tell(made, RDMA_CM_EVENT_DISCONNECTED, 0), 0);
	cr_assert_eq(tell(made, RDMA_CM_EVENT_DEVICE_REMOVAL, 0), 1);
	cr_assert(ev.type == FAB_EVENT_DISCONNECTED && ev.status == -ENODEV);
	cr_assert_eq(nlooks, 1, "verbs_dev_look() is due later");
	cr_assert_eq(tell(made, RDMA_CM_EVENT_DEVICE_REMOVAL, 0), 0);
	fab_conn_destroy(conn);
	conn = NULL;

	connect_to_peer(false);
	cr_assert_eq(tell(made, RDMA_CM_EVENT_DEVICE_REMOVAL, 0), 1);
	cr_assert(ev.type == FAB_EVENT_UNREACHABLE && ev.status == -ENODEV);
	cr_assert_str_eq(fab_conn_cause(conn), "the RDMA device was removed");
}

Test(verbs_cm, set_up_answers_every_event)
{
	fsm_rules(&verbs_setup_fsm);
	for (unsigned s = 0; s < VERBS_SETUP_NSTATES; s++) {
		for (unsigned e = VERBS_SETUP_EV_ESTABLISHED; e < VERBS_SETUP_NEVENTS; e++)
			cr_assert_geq(fsm_next(&verbs_setup_fsm, s, e), 0);
	}
}

/* Nobody has the address, or no route leads there, and the time is over. */
Test(verbs_cm, resolving_has_a_time)
{
	for (unsigned route = 0; route < 2; route++) {
		if (route)
			resolve_peer();
		else
			resolve_address();
		cr_assert_eq(tell(made, route ? RDMA_CM_EVENT_ROUTE_ERROR :
				  RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT), 1);
		cr_assert(ev.type == FAB_EVENT_UNREACHABLE && ev.conn == conn);
		cr_assert_eq(ev.status, -ETIMEDOUT);
		cr_assert_neq(*fab_conn_cause(conn), '\0');
		fab_conn_destroy(conn);
		conn = NULL;
	}
}

/* Its user has accepted it and will poll it; there is nobody to tell of a refusal. */
Test(verbs_cm, rejected_after_it_was_accepted)
{
	struct fab_listener *l;
	struct ibv_wc wc;

	accept_peer(&l);
	cr_assert_eq(tell(made, RDMA_CM_EVENT_REJECTED, BY_ITS_USER), 0);
	cr_assert(strstr(fab_conn_cause(conn), "the connection request was refused"));
	cr_assert_eq(fab_poll(conn, &wc, 1), -ENOTCONN);
	fab_conn_destroy(conn);
	conn = NULL;

	fab_listener_destroy(l);
	accept_peer(&l);
	cr_assert_eq(tell(made, RDMA_CM_EVENT_ESTABLISHED, 0), 1);
	cr_assert_eq(tell(made, RDMA_CM_EVENT_REJECTED, BY_ITS_USER), 0);
	cr_assert_str_eq(fab_conn_cause(conn), "peer disconnected");
	fab_listener_destroy(l);
}

Test(verbs_cm, a_peer_is_rejected_in_words)
{
	struct fab_listener *l;

	peer_asks(&l);
	fab_reject(conn, hello, sizeof(hello));
	cr_assert_eq(nrejected, 1);
	fab_listener_destroy(l);
	resolve_address();
}

Test(verbs_cm, no_id)
{
	struct fab_addr at = { .provider = fab_provider_find("rdma"),
			       .len = sizeof(struct sockaddr_in), .ss.ss_family = AF_INET };
	struct fab_listener *l;

	resolve_address();
	id_errno = ENODEV;
	cr_assert_eq(fab_listen(cm, &at, &l), -ENODEV);
	cr_assert_eq(fab_conn_create(cm, NULL, &(struct fab_conn *){ NULL }), -ENODEV);
}

/* See rdma_bind_addr() above. */
Test(verbs_cm, an_ipv6_listener_leaves_ipv4_to_another)
{
	static const struct {
		sa_family_t family;
		socklen_t len;
	} cases[] = { { AF_INET, sizeof(struct sockaddr_in) },
		      { AF_INET6, sizeof(struct sockaddr_in6) } };

	for_each_case(c, cases) {
		struct fab_addr at = { .provider = fab_provider_find("rdma"), .len = c->len,
				       .ss.ss_family = c->family };
		struct fab_listener *l;

		cr_assert_eq(fab_listen(cm, &at, &l), 0);
		fab_listener_addr(l, &at);
		cr_assert(at.ss.ss_family == c->family && at.len == c->len);
		fab_listener_destroy(l);
	}
	resolve_address();
}

/* iWARP has no RDMA_WRITE_WITH_IMM: neither end begins a connection there, and a listener of all
 * addresses refuses the peers that come by such a device. */
Test(verbs_cm, p32_iwarp_is_refused)
{
	static struct ibv_device iwarp = { .transport_type = IBV_TRANSPORT_IWARP, .name = "siw0" },
				 roce = { .transport_type = IBV_TRANSPORT_IB, .name = "rxe0" };
	static struct ibv_context on_iwarp = { .device = &iwarp }, on_roce = { .device = &roce };
	struct fab_addr at = { .provider = fab_provider_find("rdma"),
			       .len = sizeof(struct sockaddr_in) };
	struct rdma_cm_event e = { .event = RDMA_CM_EVENT_CONNECT_REQUEST };
	struct fab_listener *l;

	at.ss.ss_family = AF_INET;
	device = &on_iwarp;
	cr_assert_eq(fab_listen(cm, &at, &l), -EOPNOTSUPP);
	cr_assert_eq(nlistening, 0);
	resolve_address();
	cr_assert_eq(tell(made, RDMA_CM_EVENT_ADDR_RESOLVED, 0), 1);
	cr_assert(ev.type == FAB_EVENT_UNREACHABLE && ev.status == -EOPNOTSUPP);
	cr_assert(strstr(fab_conn_cause(conn), "no RDMA_WRITE_WITH_IMM"));
	fab_conn_destroy(conn);

	device = NULL;
	cr_assert_eq(fab_listen(cm, &at, &l), 0);
	e.listen_id = made;
	device = &on_iwarp;
	next = &e;
	e.id = id_create(NULL);
	cr_assert_eq(fab_cm_get_event(cm, &ev), 0);
	cr_assert_eq(nrejected, 1);
	device = &on_roce;
	next = &e;
	e.id = id_create(NULL);
	cr_assert_eq(fab_cm_get_event(cm, &ev), 1);
	fab_conn_destroy(ev.conn);
	fab_listener_destroy(l);
	cr_assert_eq(fab_listen(cm, &at, &l), 0);
	fab_listener_destroy(l);
	resolve_address();
	cr_assert_eq(tell(made, RDMA_CM_EVENT_ADDR_RESOLVED, 0), 0);
}
