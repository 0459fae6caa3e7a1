/* SPDX-License-Identifier: BSD-3-Clause */
/* The server's tables: fsm-dot-server path|connection|handshake|lead */
#include "fsm-dot.h"
#include "srv-con.h"
#include "srv-path.h"
#include "store-lead.h"

int main(int argc, char **argv)
{
	static const struct fsm *const fsms[] = { &srv_path_fsm, &srv_con_fsm, &srv_info_fsm,
						  &store_lead_fsm };

	return fsm_dot(argc, argv, fsms, ARRAY_SIZE(fsms), "server");
}
