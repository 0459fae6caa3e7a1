/* SPDX-License-Identifier: BSD-3-Clause */
/* Our end: a connection of the tcp provider, which hears the messages of the peer in their order,
 * whole and once. */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "fuzz.h"
#include "tls-rig.h"

#define NRECVS 8u

static uint8_t bufs[NRECVS][ROOM], out[ROOM];
static struct fab_cqe cqes[NRECVS], send_cqe;

/* ---- the set-up ---- */

static void post_recv(unsigned i)
{
	struct ibv_sge sge = { .addr = (uintptr_t)bufs[i], .length = ROOM, .lkey = run.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = (uintptr_t)&cqes[i], .sg_list = &sge, .num_sge = 1 };

	must(fab_post_recv(run.conn, &wr) == 0 || fab_conn_cause(run.conn)[0]);
}

static void make_queues(void)
{
	static const struct fab_qp_attr attr = { .max_send_wr = 16, .max_recv_wr = NRECVS,
						 .max_send_sge = 1 };

	must(fab_pd_create(run.conn, &run.pd) == 0);
	run.mr = fab_reg_mr(run.pd, bufs, sizeof(bufs), IBV_ACCESS_LOCAL_WRITE);
	run.out_mr = fab_reg_mr(run.pd, out, sizeof(out), 0);
	must(run.mr && run.out_mr);
	must(fab_create_qp(run.conn, run.pd, &attr) == 0);
	for (unsigned i = 0; i < NRECVS; i++)
		post_recv(i);
}

/* The set-up has ended well: with TLS, or plain because TLS is not required. */
static void set_up(void)
{
	struct fab_identity id;

	fab_conn_identity(run.conn, &id);
	run.secret = id.cipher[0];
	must(run.secret || (run.flags & FLAG_ON));
	must(!run.secret || (run.shaken && run.set_up));
	must(!run.secret || (run.flags & FLAG_ACTIVE) || !strcmp(id.name, "psk:peer"));
}

static void on_event(const struct fab_event *ev)
{
	if (ev->type == FAB_EVENT_CONNECT_REQUEST) {
		must(!run.conn);
		run.conn = ev->conn;
		set_up();
		make_queues();
		if (fab_accept(run.conn, NULL, 0)) {
			fab_disconnect(run.conn);
			run.drained = true;	/* never up */
		}
	} else if (ev->type == FAB_EVENT_ESTABLISHED) {
		run.up = true;
		if (run.flags & FLAG_ACTIVE)
			set_up();
	} else if (ev->type == FAB_EVENT_ROUTE_RESOLVED) {
		make_queues();
		must(fab_connect(run.conn, NULL, 0) == 0);
	} else {
		must(ev->type == FAB_EVENT_UNREACHABLE || ev->type == FAB_EVENT_REJECTED);
	}
}

void end_connect(void)
{
	if (!(run.flags & FLAG_ACTIVE))
		return;
	must(fab_conn_create(sides_cm(run.flags), NULL, &run.conn) == 0);
	must(fab_resolve(run.conn, NULL, sides_dial()) == 0);
	end_step();
}

/* ---- at work ---- */

void end_take(void)
{
	struct ibv_wc wc[4];
	int rc = fab_poll(run.conn, wc, 4);

	run.drained = rc == -ENOTCONN;
	must(rc <= 4 && (rc >= 0 || run.drained));
	for (int i = 0; i < rc; i++) {
		unsigned which = (unsigned)((struct fab_cqe *)(uintptr_t)wc[i].wr_id - cqes);

		if (wc[i].wr_id == (uintptr_t)&send_cqe || wc[i].status != IBV_WC_SUCCESS)
			continue;
		must(which < NRECVS);
		if (run.secret) {
			must(run.heard < run.told);
			message_check(bufs[which], run.heard++, wc[i].byte_len);
		}
		post_recv(which);
	}
}

/* True if the thread of handshakes has a step, or its result is not taken. */
static bool step_is_away(const struct tcp_cm *cm)
{
	const struct tcp_conn *c;
	bool away = false;

	list_for_each(c, &cm->handshakes, hs_link)
		away |= c->step && c->step->away;
	return away;
}

/* The next event, behind all steps of handshakes: a script means the same each time. */
static bool next_event(struct fab_cm *cm, struct fab_event *ev)
{
	struct pollfd ready = { .fd = fab_cm_fd(cm), .events = POLLIN };
	int rc;

	while (!(rc = fab_cm_get_event(cm, ev)) && step_is_away(tcp_cm(cm)))
		must(poll(&ready, 1, 60000) == 1);
	must(rc >= 0);
	return rc;
}

void end_step(void)
{
	struct fab_event ev;
	short events;

	for (unsigned i = 0; next_event(sides_cm(run.flags), &ev); i++) {
		must(i < 100);
		on_event(&ev);
	}
	if (!run.conn || run.drained)
		return;
	if (run.up && !fab_arm(run.conn, &events))
		must(events & POLLIN);
	end_take();
}

bool end_send(size_t len)
{
	struct ibv_sge sge = { .addr = (uintptr_t)out, .length = 4 + (uint32_t)len };
	struct ibv_send_wr wr = { .wr_id = (uintptr_t)&send_cqe, .sg_list = &sge, .num_sge = 1,
				  .opcode = IBV_WR_SEND };

	if (!run.up || run.drained)
		return false;
	sge.lkey = run.out_mr->lkey;
	message_write(out, run.said, sge.length);
	if (fab_post_send(run.conn, &wr) == 0)
		run.said++;
	return true;
}

bool end_blocked(void)
{
	return tcp_conn(run.conn)->tx.blocked;
}

void end_disconnect(void)
{
	if (run.up)
		fab_disconnect(run.conn);
}

/* ---- the end ---- */

void end_finish(void)
{
	const struct tcp_cm *cm = tcp_cm(sides_cm(run.flags));

	/* At least once, for a connection that is not accepted yet. */
	for (unsigned i = 0; !i || cm->unproven.n || (run.conn && !run.drained); i++) {
		must(i < 10000);
		end_step();
	}
	must(list_empty(&cm->handshakes));
	if (run.conn) {
		if (run.pd)
			must(fab_conn_cause(run.conn)[0]);
		fab_conn_destroy(run.conn);
		fab_dereg_mr(run.mr);
		fab_dereg_mr(run.out_mr);
		fab_pd_destroy(run.pd);
	}
	must(list_empty(&cm->events));
}
