/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing: the heartbeat of a path lies in struct srv_path.  Control thread.  The caller
 * hears of a silent peer.  A thread held by the storage gets a line in the log, because silence is
 * the only other sign of such a thread. */
#include "clock.h"
#include "export-ring.h"
#include "log.h"
#include "rtrs-wr.h"
#include "srv-con.h"
#include "srv-hb.h"
#include "srv-path.h"
#include "srv-sess.h"
#include "srv-state.h"

#define STUCK_MS 5000			/* of a thread: long enough for a line in the log */

static struct log_limit stuck_limit = LOG_LIMIT_INIT(4, 60000);

static void hb_check_stuck(const struct srv_path *path)
{
	for (unsigned cid = 1; cid < path->cid_num; cid++) {
		const struct reactor *r = path->cons[cid]->thread->reactor;
		uint64_t ms = export_ring_stuck_ms(r);

		if (ms < STUCK_MS)
			continue;
		srv_log_event_limited(
			path->srv, &path->client, &stuck_limit, LOG_LEVEL_WARN,
			LOG_FIELDS(IO_STUCK, .session = path->sess->name, .peer = path->name,
				   .identity = path->identity),
			path->name,
			"requests wait: the file system has not answered one write "
			"of %s for %llu s",
			reactor_name(r), (unsigned long long)ms / 1000);
		return;
	}
}

void srv_hb_start(struct srv_path *path)
{
	const struct srv_conf *conf = path->srv->conf;
	bool own = path->server.provider == &fab_tcp;
	struct rtrs_hb_conf hb = rtrs_hb_conf(conf->hb_interval_ms, conf->hb_missed_max, own);

	hb.patience = own;
	rtrs_hb_start(&path->hb, clock_now_ms(), &hb);
}

bool srv_hb_tick(struct srv_path *path)
{
	struct srv_con *con = path->cons[0];
	struct ibv_send_wr wr;

	switch (rtrs_hb_tick(&path->hb, clock_now_ms())) {
	case RTRS_HB_DEAD:
		return false;
	case RTRS_HB_SEND:
		rtrs_wr_heartbeat(&wr, (uintptr_t)&con->send_cqe, RTRS_HB_MSG_IMM);
		rtrs_hb_sent(&path->hb, clock_now_ns());
		if (!srv_con_dead(con))
			srv_con_post(con, &wr);
		break;
	case RTRS_HB_NONE:
		break;
	}
	hb_check_stuck(path);
	return true;
}
