/* SPDX-License-Identifier: BSD-3-Clause */
/* Conformance: connections come, are refused, and go in every state of being set up. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "conformance.h"

FAB_TEST(setup_connect)
{
	struct fab_addr local, peer;
	struct pair p;

	pair_connect(w, &p, &default_attr);
	check(p.b->pdata_len >= 5);
	check(memcmp(p.b->pdata, "hello", 5) == 0);
	check(p.a->pdata_len >= 7);
	check(memcmp(p.a->pdata, "welcome", 7) == 0);
	fab_conn_addrs(p.a->conn, &local, &peer);
	check_eq(fab_addr_port(&peer), fab_addr_port(&w->addr));
	check(fab_addr_same_host(&peer, &w->addr));
	check(local.len != 0);
	fab_conn_addrs(p.b->conn, &local, NULL);
	check_eq(fab_addr_port(&local), fab_addr_port(&w->addr));
	check(strcmp(fab_conn_cause(p.a->conn), "") == 0);
	pair_close(&p);
}

FAB_TEST(setup_reject)
{
	struct end *a = end_active(w, &w->addr, &default_attr);
	uint8_t why[FAB_REJECT_DATA_MAX], hello[FAB_CONNECT_DATA_MAX];

	memset(why, 0x5a, sizeof(why));
	memset(hello, 0xa5, sizeof(hello));
	check_eq(fab_connect(a->conn, hello, sizeof(hello)), 0);
	world_until(w, w->request);
	check(w->request->pdata_len >= sizeof(hello));
	check(memcmp(w->request->pdata, hello, sizeof(hello)) == 0);
	fab_reject(w->request->conn, why, sizeof(why));
	end_gone(w->request);
	world_until(w, a->rejected);
	check(a->pdata_len >= sizeof(why));
	check(memcmp(a->pdata, why, sizeof(why)) == 0);
	end_free(a);
}

struct gate {
	bool open;
	unsigned asked;
	struct fab_addr peer;
};

static bool gate_admit(void *arg, const struct fab_addr *peer)
{
	struct gate *gate = arg;

	gate->asked++;
	gate->peer = *peer;
	return gate->open;
}

/* Refused by its address alone: told so, and not reported. */
FAB_TEST(setup_admit)
{
	struct gate gate = { 0 };
	const struct fab_cm_conf conf = { .provider = w->p, .admit = gate_admit, .admit_arg = &gate,
					  .refusal = "no entry", .refusal_len = 8,
					  .tls = provider_tls[0] };
	struct fab_addr local;
	struct pair p;
	struct end *a;

	fab_listener_destroy(w->listener);
	fab_cm_destroy(w->cm[0]);
	check_eq(fab_cm_create(&conf, &w->cm[0]), 0);
	check_eq(fab_listen(w->cm[0], &w->addr, &w->listener), 0);
	for (unsigned i = 0; i < 3; i++) {
		a = end_active(w, &w->addr, &default_attr);
		check_eq(fab_connect(a->conn, "hello", 5), 0);
		world_until(w, a->rejected);
		check(a->pdata_len >= 8 && !memcmp(a->pdata, "no entry", 8));
		fab_conn_addrs(a->conn, &local, NULL);
		check(fab_addr_same_host(&gate.peer, &local));
		end_free(a);
		check_eq(gate.asked, i + 1);
		check(!w->request);
	}
	gate.open = true;
	pair_connect(w, &p, &default_attr);
	check_eq(gate.asked, 4);
	pair_close(&p);
}

static struct {
	unsigned calls;
	const char *why;		/* NULL: the data is sealed */
	bool tls;
	uint8_t binding[FAB_BINDING_LEN];
} seal;

static const char *seal_data(struct fab_conn *conn, void *data, size_t len)
{
	seal.calls++;
	check_eq(len, 5);
	check(!memcmp(data, "hello", 5));
	seal.tls = fab_conn_binding(conn, seal.binding);
	if (!seal.why)
		memcpy(data, "HELLO", 5);
	return seal.why;
}

/* The data is sealed when the binding of the connection is known, which both ends have, and no
 * other connection. */
static void seal_and_compare(struct world *w, uint8_t other[FAB_BINDING_LEN])
{
	uint8_t binding[2][FAB_BINDING_LEN];
	struct pair p;

	seal.calls = 0;
	pair_connect(w, &p, &default_attr);
	check_eq(seal.calls, 1);
	check(!memcmp(p.b->pdata, "HELLO", 5));
	check_eq(seal.tls, fab_conn_binding(p.a->conn, binding[0]));
	check_eq(seal.tls, fab_conn_binding(p.b->conn, binding[1]));
	check_eq(seal.tls, provider_tls[0] != NULL);
	check(!memcmp(seal.binding, binding[0], sizeof(seal.binding)));
	check(!memcmp(seal.binding, binding[1], sizeof(seal.binding)));
	check_eq(!memcmp(seal.binding, other, sizeof(seal.binding)), !seal.tls);
	memcpy(other, seal.binding, sizeof(seal.binding));
	pair_close(&p);
}

FAB_TEST(setup_seal)
{
	const struct fab_cm_conf conf = { .provider = w->p, .seal = seal_data,
					  .tls = provider_tls[1] };
	uint8_t other[FAB_BINDING_LEN] = { 0 };
	unsigned requests;
	struct end *a;
	int rc;

	fab_cm_destroy(w->cm[1]);
	check_eq(fab_cm_create(&conf, &w->cm[1]), 0);
	seal_and_compare(w, other);
	seal_and_compare(w, other);
	seal.why = "not this one";
	requests = w->nrequests;
	a = end_active(w, &w->addr, &default_attr);
	rc = fab_connect(a->conn, "hello", 5);
	if (!rc)
		world_until(w, a->unreachable);
	check_eq(rc ? rc : a->status, -EACCES);
	check(!strcmp(fab_conn_cause(a->conn), "not this one"));
	end_free(a);
	seal.why = NULL;
	seal_and_compare(w, other);
	check_eq(w->nrequests, requests + 1);
}

/* Nobody listens any more. */
FAB_TEST(setup_unreachable)
{
	struct end *a;

	fab_listener_destroy(w->listener);
	w->listener = NULL;
	a = end_active(w, &w->addr, &default_attr);
	if (!a->unreachable) {
		check_eq(fab_connect(a->conn, NULL, 0), 0);
		world_until(w, a->unreachable);
	}
	check(a->status < 0);
	check(!a->established);
	check(fab_conn_cause(a->conn)[0] != '\0');
	end_free(a);
}

static void abort_passive(struct world *w)
{
	struct end *a = end_active(w, &w->addr, &default_attr);

	check_eq(fab_connect(a->conn, NULL, 0), 0);
	world_until(w, w->request);
	end_free(w->request);
	world_until(w, a->unreachable || a->rejected);
	end_free(a);
}

/* The active side goes away between its request and the answer. */
static void abort_active(struct world *w)
{
	struct end *a = end_active(w, &w->addr, &default_attr), *b;

	check_eq(fab_connect(a->conn, NULL, 0), 0);
	world_until(w, w->request);
	end_free(a);
	b = w->request;
	/* Either of them may notice. */
	check_eq(fab_pd_create(b->conn, &b->pd), 0);
	if (fab_create_qp(b->conn, b->pd, &default_attr) == 0 && end_accept(b, NULL, 0) == 0)
		world_until(w, b->drained);
	end_free(b);
}

FAB_TEST(setup_abort)
{
	struct fab_conn *conn;
	struct end *a;

	check_eq(fab_conn_create(w->cm[1], NULL, &conn), 0);
	fab_conn_destroy(conn);
	/* Its event must not come any more. */
	check_eq(fab_conn_create(w->cm[1], NULL, &conn), 0);
	check_eq(fab_resolve(conn, NULL, &w->addr), 0);
	fab_conn_destroy(conn);
	a = end_active(w, &w->addr, NULL);
	end_free(a);
	a = end_active(w, &w->addr, &default_attr);
	end_free(a);
	a = end_active(w, &w->addr, &default_attr);
	check_eq(fab_connect(a->conn, NULL, 0), 0);
	end_free(a);
	world_settle(w, 50);
	if (w->request)
		end_free(w->request);
	abort_passive(w);
	abort_active(w);
}

FAB_TEST(setup_port_in_use)
{
	struct fab_listener *l;

	check_eq(fab_listen(w->cm[0], &w->addr, &l), -EADDRINUSE);
}

/* Several connections of one pd, each with its own context and stream. */
FAB_TEST(setup_many)
{
	struct pair p[4];

	for (int i = 0; i < 4; i++)
		pair_connect(w, &p[i], &default_attr);
	for (int i = 0; i < 4; i++) {
		struct ibv_send_wr wr = wr_write_imm(0, NULL, 0, 0, 100 + (unsigned)i);

		check_eq(post_recvs(p[i].b, 0, 1), 0);
		check_eq(post(p[i].a, &wr, 1), 0);
	}
	for (int i = 0; i < 4; i++) {
		world_until(w, p[i].b->nrecvs == 1);
		check_eq(be32toh(p[i].b->recvs[0].wc.imm_data), 100 + i);
	}
	/* The others do not notice when one goes. */
	end_close(p[1].a);
	world_until(w, p[1].b->drained);
	end_free(p[1].b);
	for (int i = 0; i < 4; i++) {
		if (i != 1)
			pair_close(&p[i]);
	}
}

FAB_TEST(setup_limits)
{
	struct end *a = end_active(w, &w->addr, NULL);
	struct fab_device_attr dev, listens;
	struct fab_qp_attr attr;
	uint8_t big[FAB_PRIVATE_DATA_MAX + 1] = { 0 };

	check_eq(fab_query_device(a->conn, &dev), 0);
	check(dev.max_qp_wr > 0 && dev.max_sge > 1);
	/* One device has the address. */
	check_eq(fab_listener_query_device(w->listener, &listens), 0);
	check_eq(listens.max_qp_wr, dev.max_qp_wr);
	check_eq(listens.max_sge, dev.max_sge);
	check_eq(fab_pd_create(a->conn, &a->pd), 0);
	attr = default_attr;
	attr.max_send_wr = dev.max_qp_wr + 1;
	check_eq(fab_create_qp(a->conn, a->pd, &attr), -EINVAL);
	attr = default_attr;
	attr.max_send_sge = dev.max_sge + 1;
	check_eq(fab_create_qp(a->conn, a->pd, &attr), -EINVAL);
	check_eq(fab_create_qp(a->conn, a->pd, &default_attr), 0);
	check_eq(fab_connect(a->conn, big, FAB_CONNECT_DATA_MAX + 1), -EINVAL);
	/* What a peer may write must be writable here. */
	check(fab_reg_mr(a->pd, big, sizeof(big), IBV_ACCESS_REMOTE_WRITE) == NULL);
	check_eq(errno, EINVAL);
	end_free(a);
}
