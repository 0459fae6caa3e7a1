/* SPDX-License-Identifier: BSD-3-Clause */
/* A client's tables: fsm-dot session|path|connection|service|device|handshake|queue */
#include "clt-fsm.h"
#include "dev-fsm.h"
#include "fab-service.h"
#include "fsm-dot.h"
#include "ublk-queue.h"

int main(int argc, char **argv)
{
	static const struct fsm *const fsms[] = { &clt_sess_fsm, &clt_path_fsm, &clt_con_fsm,
						 &fab_service_fsm, &dev_fsm,
						 &dev_handshake_fsm, &ublk_queue_fsm };

	return fsm_dot(argc, argv, fsms, ARRAY_SIZE(fsms), "client");
}
