/* SPDX-License-Identifier: BSD-3-Clause */
/* Unauthenticated connections, which carry the messages of a proof (auth-chap.h); control thread.
 *
 * The happy path: srv_auth_takes() makes queues and memory for the connection and accepts it;
 * guest_wc_recv() gives each message to auth_chap_take() and sends the reply; guest_proven() leaves
 * a pass for the path (srv-pass.c), and the client disconnects after the DONE.
 *
 * Possible failures: a wrong proof is logged, counted and answered, and the connection ends when
 * the answer has left; a connection that is not done within SRV_GUEST_TIMEOUT, or whose place a
 * newcomer takes (unproven.h), is disconnected, with a line in the log.  Whoever disconnects,
 * guest_drained() frees everything when the service (fab-service.h) is gone. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "auth-creds.h"
#include "clock.h"
#include "fab-service.h"
#include "log.h"
#include "secrets.h"
#include "srv-auth.h"
#include "srv-con.h"
#include "srv-state.h"

#define GUEST_QUEUE 4u			/* requests of each kind; messages alternate */
#define GUEST_BUDGET 8

struct srv_guest {
	struct list link;		/* in srv->guests.all */
	struct unproven_place place;	/* in srv->guests.unproven, until the guest is to leave */
	struct srv *srv;
	struct fab_conn *fab;
	struct fab_pd *pd;
	struct ibv_mr *mr;		/* of @msgs */
	struct fab_cqe recv_cqe, send_cqe;
	struct fab_service service;
	struct fab_addr peer;
	bool refused;			/* to leave when the last message has left */
	struct rtrs_conn_req req;
	struct auth_chap chap;
	struct {
		uint8_t in[AUTH_MSG_MAX], out[AUTH_MSG_MAX];
	} *msgs;
};

/* Of their own, so that a flood of one kind does not hide the other. */
static struct log_limit auth_limit = LOG_LIMIT_INIT(20, 10000);
static struct log_limit room_limit = LOG_LIMIT_INIT(5, 10000);

/* ---- the end ---- */

static void guest_free(struct srv_guest *g)
{
	if (g->mr)
		fab_dereg_mr(g->mr);
	if (g->pd)
		fab_pd_destroy(g->pd);
	auth_chap_end(&g->chap);
	free(g->msgs);
	free(g);
}

static void guest_leave(struct srv_guest *g)
{
	if (!unproven_is_in(&g->place))
		return;
	unproven_leave(&g->place);
	fab_service_disconnect(&g->service);
}

/* ---- messages ---- */

static void guest_told(const struct srv_guest *g, struct log_limit *limit, const char *what)
{
	enum srv_refusal reason = limit == &room_limit ? SRV_REFUSED_LIMIT : SRV_REFUSED_AUTH;
	char text[FAB_ADDR_STRLEN], line[1024];

	g->srv->refused[reason]++;
	fab_addr_format(&g->peer, text, sizeof(text));
	snprintf(line, sizeof(line), "connection refused: authentication: %s%s%s", what,
		 *g->chap.peer ? ", claiming to be " : "", g->chap.peer);
	srv_log_again(&g->srv->log, &g->peer, limit, LOG_LEVEL_WARN,
		      LOG_FIELDS(CLIENT_REFUSED, .peer = text,
				 .reason = srv_refusal_names[reason]), text, line);
}

static int guest_recv(struct srv_guest *g)
{
	struct ibv_sge sge = { (uintptr_t)g->msgs->in, sizeof(g->msgs->in), g->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = (uintptr_t)&g->recv_cqe, .sg_list = &sge, .num_sge = 1 };

	return fab_post_recv(g->fab, &wr);
}

static int guest_send(struct srv_guest *g, const struct auth_reply *reply)
{
	struct ibv_sge sge = { (uintptr_t)g->msgs->out, (uint32_t)reply->len, g->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = (uintptr_t)&g->send_cqe, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
	};

	memcpy(g->msgs->out, reply->bytes, reply->len);
	return fab_post_send(g->fab, &wr);
}

static void guest_proven(struct srv_guest *g)
{
	char text[FAB_ADDR_STRLEN];

	log_dbg(fab_addr_format(&g->peer, text, sizeof(text)), "authenticated by the key %s",
		g->chap.peer);
	if (srv_pass_give(g->srv, g->fab, &g->req, &g->chap)) {
		guest_told(g, &auth_limit, "no memory");
		guest_leave(g);
	}
}

static void guest_refuse(struct srv_guest *g)
{
	char identity[FAB_IDENTITY_LEN] = "";

	if (*g->chap.peer)
		secret_name_identity(g->chap.peer, identity, sizeof(identity));
	srv_log_refusal(g->srv, &g->peer, identity, NULL, g->chap.why);
	g->refused = true;
	guest_told(g, &auth_limit, g->chap.why);
}

static void guest_wc_recv(struct fab_conn *fab, struct fab_cqe *cqe, const struct ibv_wc *wc)
{
	struct srv_guest *g = container_of(cqe, struct srv_guest, recv_cqe);
	bool is_send = wc->opcode == IBV_WC_RECV && !(wc->wc_flags & IBV_WC_WITH_IMM);
	struct auth_reply reply;
	int rc;

	if (wc->status != IBV_WC_SUCCESS || !unproven_is_in(&g->place)) {
		guest_leave(g);
		return;
	}
	/* An immediate has no bytes. */
	rc = auth_chap_take(&g->chap, g->msgs->in, is_send ? wc->byte_len : 0, &reply);
	if (rc)
		guest_refuse(g);
	else if (g->chap.state == AUTH_PROVEN)
		guest_proven(g);
	/* ORDER: the receive before the message that asks for an answer. */
	if (!rc && g->chap.state != AUTH_PROVEN && guest_recv(g))
		guest_leave(g);
	if (reply.len ? guest_send(g, &reply) : rc)
		guest_leave(g);
}

static void guest_wc_send(struct fab_conn *fab, struct fab_cqe *cqe, const struct ibv_wc *wc)
{
	struct srv_guest *g = container_of(cqe, struct srv_guest, send_cqe);

	/* The client leaves after a DONE that lets it in. */
	if (wc->status != IBV_WC_SUCCESS || g->refused)
		guest_leave(g);
}

/* ---- service ---- */

static void guest_ended(struct fab_service *service)
{
	unproven_leave(&container_of(service, struct srv_guest, service)->place);
}

static void guest_drained(struct fab_service *service)
{
	struct srv_guest *g = container_of(service, struct srv_guest, service);
	struct srv *srv = g->srv;

	fab_conn_destroy(g->fab);
	list_del(&g->link);
	srv->guests.n--;
	guest_free(g);
	srv->part_gone(srv, 0);
}

static const struct fab_service_ops guest_service = {
	.budget = GUEST_BUDGET,
	.ended = guest_ended,
	.gone = guest_drained,
};

/* ---- limits ---- */

static void guest_ends(struct unproven_place *place, enum unproven_why why)
{
	struct srv_guest *g = container_of(place, struct srv_guest, place);

	if (why == UNPROVEN_ONE_TOO_MANY)
		guest_told(g, &room_limit, UNPROVEN_TOO_MANY);
	else if (g->chap.state != AUTH_PROVEN)
		guest_told(g, &room_limit, "not finished in time");
	guest_leave(g);
}

/* ---- the begin ---- */

static void begin_handshake(struct srv_guest *g, const struct rtrs_msg_conn_req *msg,
			    const struct rtrs_msg_conn_rsp *rsp)
{
	struct auth_chance chance;
	struct auth_where where;

	auth_conn_where(&where, msg, rsp, g->fab);
	random_bytes(&chance, sizeof(chance));
	auth_chap_server(&g->chap, &where, g->srv->auth->name, &g->srv->auth->secrets->psks,
			 &chance);
	explicit_bzero(&chance, sizeof(chance));
}

/* Make the queues and accept.  0 or -errno; with @asked the accept itself has failed. */
static int guest_open(struct srv_guest *g, const struct rtrs_msg_conn_req *msg, bool *asked)
{
	const struct fab_qp_attr attr = { GUEST_QUEUE, GUEST_QUEUE, 1 };
	const struct rtrs_conn_rsp rsp = { .auth = RTRS_AUTHS_ASKS,
					   .auth_version = auth_conn_version(g->fab) };
	struct rtrs_msg_conn_rsp m;
	int rc = fab_pd_create(g->fab, &g->pd);

	if (rc)
		return rc;
	g->mr = fab_reg_mr(g->pd, g->msgs, sizeof(*g->msgs), IBV_ACCESS_LOCAL_WRITE);
	if (!g->mr)
		return -errno;
	rc = fab_create_qp(g->fab, g->pd, &attr);
	if (!rc)
		rc = guest_recv(g);	/* must exist before the accept */
	if (rc)
		return rc;
	rtrs_conn_rsp_encode(&m, &rsp);
	begin_handshake(g, msg, &m);
	*asked = true;
	return fab_accept(g->fab, &m, sizeof(m));
}

static struct srv_guest *guest_create(struct srv *srv, struct fab_conn *conn,
				      const struct rtrs_conn_req *req)
{
	struct srv_guest *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->msgs = calloc(1, sizeof(*g->msgs));
	if (!g->msgs) {
		free(g);
		return NULL;
	}
	g->srv = srv;
	g->fab = conn;
	g->req = *req;
	fab_conn_addrs(conn, NULL, &g->peer);
	g->recv_cqe.done = guest_wc_recv;
	g->send_cqe.done = guest_wc_send;
	fab_service_init(&g->service, &guest_service);
	return g;
}

static void guest_begin(struct srv *srv, struct fab_conn *conn, const struct rtrs_conn_req *req,
			const struct rtrs_msg_conn_req *msg)
{
	struct srv_guest *g = guest_create(srv, conn, req);
	bool asked = false;
	int rc = g ? guest_open(g, msg, &asked) : -ENOMEM;

	if (rc) {
		if (asked)
			fab_conn_destroy(conn);
		else
			srv_con_refuse(conn, rc, RTRS_REFUSES_NOT);
		if (g)
			guest_free(g);
		return;
	}
	fab_conn_set_context(conn, NULL);
	list_add_tail(&srv->guests.all, &g->link);
	srv->guests.n++;
	unproven_enter(&srv->guests.unproven, &g->place, fab_addr_net(&g->peer),
		       SRV_GUEST_TIMEOUT);
	if (fab_service_begin(&g->service, srv_loop(srv), conn))
		guest_leave(g);
}

bool srv_auth_takes(struct srv *srv, struct fab_conn *conn, enum auth_mode mode,
		    const struct rtrs_conn_req *req, const struct rtrs_msg_conn_req *msg)
{
	/* With another version the client is one that does not authenticate. */
	if (req->auth != RTRS_AUTHS_ASKS || mode == AUTH_MODE_NONE || !srv->auth ||
	    req->auth_version != auth_conn_version(conn))
		return false;
	/* The rest of those that were told to leave takes its time. */
	if (srv->life != SRV_RUNNING || srv->guests.n >= 2 * SRV_MAX_GUESTS) {
		srv->refused[SRV_REFUSED_LIMIT]++;
		srv_con_refuse(conn, -ECONNRESET, RTRS_REFUSES_NOT);
	} else {
		guest_begin(srv, conn, req, msg);
	}
	return true;
}

/* ---- the rest ---- */

bool srv_auth_disconnected(struct srv *srv, struct fab_conn *conn)
{
	struct srv_guest *g;

	list_for_each(g, &srv->guests.all, link) {
		if (g->fab == conn) {
			guest_leave(g);
			return true;
		}
	}
	return false;
}

void srv_auth_stop(struct srv *srv)
{
	struct srv_guest *g, *tmp;

	list_for_each_safe(g, tmp, &srv->guests.all, link)
		guest_leave(g);
}

void srv_auth_init(struct srv *srv)
{
	list_init(&srv->guests.all);
	unproven_init(&srv->guests.unproven, srv_loop(srv), SRV_MAX_GUESTS, SRV_MAX_HOST_GUESTS,
		      guest_ends);
	srv_pass_init(&srv->passes);
}
