/* SPDX-License-Identifier: BSD-3-Clause */
/* The INFO exchange of a path, doc/protocol.md 2.4 and 2.5.  Control thread. */
#ifndef SRV_INFO_H
#define SRV_INFO_H

struct srv;
struct srv_con;
struct srv_path;

void srv_info_init(struct srv_path *path);
/* The one receive that INFO_REQ goes into; before connection 0 is accepted.  0 or -errno. */
int srv_info_post_recv(struct srv_path *path, struct srv_con *con);
/* Send INFO_RSP; receives are posted. */
void srv_info_respond(struct srv_path *path);
/* The path is failing: stop waiting for a name. */
void srv_info_cancel(struct srv_path *path);
/* A path has given up its name: see who waited for it. */
void srv_info_retry(struct srv *srv);

#endif
