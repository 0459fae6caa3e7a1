/* SPDX-License-Identifier: BSD-3-Clause */
/* For rdmacm-events.sh: connections of this machine to its own address, by librdmacm. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OPEN = 7001, NOBODY, SILENT, SHARED, TWICE };
static char memory[4096];
static struct rdma_conn_param how = {.retry_count = 7, .rnr_retry_count = 7};

static void check(int bad, const char *what)
{
	if (bad) {
		printf("%s: %s\n", what, strerror(errno));
		exit(1);
	}
}

/* The name of the next event, within some seconds; id may be NULL. */
static const char *event(struct rdma_event_channel *channel, int seconds, struct rdma_cm_id **id)
{
	struct pollfd p = {.fd = channel->fd, .events = POLLIN};
	struct rdma_cm_event *e;
	const char *name;

	if (poll(&p, 1, seconds * 1000) == 0)
		return "nothing";
	check(rdma_get_cm_event(channel, &e), "rdma_get_cm_event");
	name = rdma_event_str(e->event) + strlen("RDMA_CM_EVENT_");
	if (id)
		*id = e->id;
	rdma_ack_cm_event(e);
	return name;
}

static struct sockaddr_in address(const char *ip, int port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};

	inet_pton(AF_INET, ip, &a.sin_addr);
	return a;
}

/* NULL: listens; otherwise why not. */
static const char *listener(struct rdma_event_channel *channel, const char *ip, int port)
{
	struct sockaddr_in a = address(ip, port);
	struct rdma_cm_id *id;

	check(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
	return rdma_bind_addr(id, (struct sockaddr *)&a) || rdma_listen(id, 8)
		       ? strerrorname_np(errno)
		       : "listens";
}

static void queue_pair(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr q = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
	};

	check(rdma_create_qp(id, NULL, &q), "rdma_create_qp");
}

static struct rdma_cm_id *client(struct rdma_event_channel *channel, int port)
{
	struct sockaddr_in a = address("10.0.2.15", port);
	struct rdma_cm_id *id;

	check(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
	check(rdma_resolve_addr(id, NULL, (struct sockaddr *)&a, 5000), "rdma_resolve_addr");
	event(channel, 20, NULL);
	check(rdma_resolve_route(id, 5000), "rdma_resolve_route");
	event(channel, 20, NULL);
	queue_pair(id);
	check(rdma_connect(id, &how), "rdma_connect");
	return id;
}

static const char *completion(struct rdma_cm_id *id)
{
	struct ibv_wc wc;

	for (int i = 0; i < 300; i++) {
		if (ibv_poll_cq(id->recv_cq, 1, &wc) > 0)
			return ibv_wc_status_str(wc.status);
		usleep(10000);
	}
	return "waits";
}

static void life(void)
{
	struct rdma_event_channel *server = rdma_create_event_channel(),
				  *other = rdma_create_event_channel();
	struct rdma_cm_id *accepted, *id;
	struct ibv_sge sge = {.length = sizeof(memory)};
	struct ibv_recv_wr receive = {.sg_list = &sge, .num_sge = 1}, *bad;
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	struct ibv_mr *mr;

	listener(server, "0.0.0.0", OPEN);
	id = client(other, OPEN);
	printf("server: %s", event(server, 20, &accepted));
	queue_pair(accepted);
	mr = ibv_reg_mr(accepted->pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	check(!mr, "ibv_reg_mr");
	sge.addr = (uintptr_t)memory;
	sge.lkey = mr->lkey;
	check(ibv_post_recv(accepted->qp, &receive, &bad), "ibv_post_recv");
	check(rdma_accept(accepted, &how), "rdma_accept");
	printf(", then %s for 5 s;", event(server, 5, NULL));
	printf(" client takes %s;", event(other, 20, NULL));
	printf(" server: %s\n", event(server, 20, NULL));

	check(rdma_disconnect(id), "rdma_disconnect");
	printf("server: %s", event(server, 20, NULL));
	printf(", its receive %s", completion(accepted));
	check(ibv_query_qp(accepted->qp, &attr, IBV_QP_STATE, &init), "ibv_query_qp");
	printf(", state %s", attr.qp_state == IBV_QPS_RTS ? "RTS" : "other");
	check(rdma_disconnect(accepted), "rdma_disconnect");
	printf("; after its rdma_disconnect: %s\n", completion(accepted));
}

int main(void)
{
	struct rdma_event_channel *c = rdma_create_event_channel(),
				  *silent = rdma_create_event_channel();
	struct rdma_cm_id *id;

	check(!c || !silent, "rdma_create_event_channel");
	listener(silent, "0.0.0.0", SILENT);
	client(c, SILENT);
	life();

	struct rdma_event_channel *other = rdma_create_event_channel();
	id = client(other, NOBODY);
	printf("nobody listens: %s,", event(other, 20, NULL));
	printf(" once more: %s\n", rdma_connect(id, &how) ? strerrorname_np(errno) : "connects");

	other = rdma_create_event_channel();
	printf("any address: %s,", listener(other, "0.0.0.0", SHARED));
	printf(" and one address: %s;", listener(other, "10.0.2.15", SHARED));
	printf(" one address: %s,", listener(other, "10.0.2.15", TWICE));
	printf(" and again: %s\n", listener(other, "10.0.2.15", TWICE));

	printf("silent server: %s,", event(silent, 20, NULL));
	printf(" client in 120 s: %s\n", event(c, 120, NULL));
	fflush(stdout);
	_exit(0);
}
