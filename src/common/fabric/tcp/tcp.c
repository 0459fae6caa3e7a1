/* SPDX-License-Identifier: BSD-3-Clause */
/* The tcp provider: its table, and small functions of the table.  tcp-conn.h says how tcp is
 * built. */
#include "tcp-cm.h"
#include "tcp-conn.h"
#include "tcp-key.h"
#include "tcp-tls.h"

static int conn_create(struct fab_cm *cm, struct fab_conn **conn)
{
	struct tcp_conn *c;
	int rc = tcp_conn_new(cm, -1, &c);

	if (!rc)
		*conn = &c->base;
	return rc;
}

static void conn_destroy(struct fab_conn *conn)
{
	struct tcp_conn *c = tcp_conn(conn);

	tcp_cm_forget(c);
	tcp_qp_fini(c);
	tcp_conn_free(c);
}

static const struct fab_device_attr device = {
	.max_qp_wr = TCP_QP_MAX_WR, .max_sge = TCP_QP_MAX_SGE, .max_mw = TCP_KEY_MAX,
	.caps = FAB_CAP_DMA_LKEY | FAB_CAP_REREG_MR | FAB_CAP_SUSPEND_MR | FAB_CAP_MW_TYPE_1 |
		FAB_CAP_MW_TYPE_2B,
};

static int query_device(const struct fab_conn *conn, struct fab_device_attr *attr)
{
	*attr = device;
	return 0;
}

static int listener_query_device(const struct fab_listener *l, struct fab_device_attr *attr)
{
	*attr = device;
	return 0;
}

static void conn_identity(const struct fab_conn *conn, struct fab_identity *id)
{
	const struct tcp_conn *c = tcp_conn(conn);

	if (c->tls)
		tcp_tls_identity(c, id);
}

static void conn_mtu(const struct fab_conn *conn, struct fab_mtu *mtu)
{
	fab_mtu_of_socket(tcp_conn(conn)->fd, mtu);
}

static bool conn_trusted(const struct fab_conn *conn)
{
	const struct tcp_conn *c = tcp_conn(conn);

	return !c->tls || tcp_tls_trusts(c);
}

static bool conn_binding(const struct fab_conn *conn, uint8_t out[FAB_BINDING_LEN])
{
	const struct tcp_conn *c = tcp_conn(conn);

	return c->tls && tcp_tls_binding(c, out);
}

static void conn_disconnect(struct fab_conn *conn, const char *cause)
{
	struct tcp_conn *c = tcp_conn(conn);

	if (tcp_conn_state(c) == TCP_UP)
		tcp_conn_fail(c, 0, "%s", cause);
	else
		tcp_conn_set_cause(c, "%s", cause);
}

const struct fab_provider fab_tcp = {
	.name = "tcp",
	.tls = true,
	.cm_create = tcp_cm_create,
	.cm_destroy = tcp_cm_destroy,
	.cm_get_event = tcp_cm_get_event,
	.listen = tcp_listen,
	.listener_query_device = listener_query_device,
	.listener_destroy = tcp_listen_destroy,
	.conn_create = conn_create,
	.conn_destroy = conn_destroy,
	.resolve = tcp_cm_resolve,
	.query_device = query_device,
	.create_qp = tcp_qp_create,
	.qp_memory = tcp_qp_memory,
	.connect = tcp_cm_connect,
	.accept = tcp_cm_accept,
	.reject = tcp_cm_reject,
	.unheard = tcp_cm_unheard,
	.identity = conn_identity,
	.mtu = conn_mtu,
	.trusted = conn_trusted,
	.binding = conn_binding,
	.pd_create = tcp_pd_create,
	.pd_destroy = tcp_pd_destroy,
	.mr_iova = true,
	.reg_mr = tcp_mr_reg,
	.rereg_mr = tcp_mr_rereg,
	.dereg_mr = tcp_mr_dereg,
	.suspend_mr = tcp_mr_suspend,
	.hold_mr = tcp_mr_hold,
	.release_mr = tcp_mr_release,
	.sends_left = tcp_tx_left,
	.mw_zero_based = true,
	.alloc_mw = tcp_mw_alloc,
	.dealloc_mw = tcp_mw_dealloc,
	.post_send = tcp_tx_post,
	.post_recv = tcp_rx_post,
	.poll = tcp_qp_poll,
	.arm = tcp_qp_arm,
	.need_rearm = tcp_qp_need_rearm,
	.disconnect = conn_disconnect,
};
